"""Every number that the papers print has a run in a shipped comparison."""

import csv
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from equipoise.experiments import read_comparison
from equipoise.experiments.paper_results import find_paper_results, paper_results, paper_results_for
from equipoise.metrics.facts import metric_facts
from equipoise.models import resnet18

SPECS = Path(__file__).resolve().parents[2] / "examples" / "specs"
#: The file, with what is set for other columns of the same table.
OTHERS = {
    "dual-focal-kde.toml": [
        ["model=resnet110_sd", "recipe=kull_resnet110_sd"],
        ["model=densenet40", "recipe=kull_densenet40"],
    ]
}
#: A network whose size is not printed, and numbers that are no column of a table but have one of their own.
WITHOUT = {("CIFAR-100", "Wide-ResNet")}
APART = {"CIFAR-10/SVHN": "svhn", "CIFAR-10/CIFAR-10-C": "cifar10c"}


@cache
def reached():
    found = set()
    for path in SPECS.glob("*.toml"):
        for overrides in [[], *OTHERS.get(path.name, [])]:
            comparison = read_comparison(path, overrides=overrides)
            for spec in comparison.specs:
                for one in comparison.calibrators:
                    found |= {id(row) for row in paper_results_for(spec, calibrator=one.key)}
    return found


@pytest.mark.parametrize(
    ("paper", "table"),
    sorted({(row.paper, row.table) for row in paper_results() if row.dataset not in APART}),
)
def test_every_printed_number_has_a_run(paper, table):
    missing = [
        (row.dataset, row.model, row.method, row.stage, row.note)
        for row in paper_results()
        if (row.paper, row.table) == (paper, table) and id(row) not in reached()
    ]
    assert {(dataset, model) for dataset, model, *_ in missing} <= WITHOUT, missing


def test_foreign_data_are_told_apart_in_a_comparison_of_their_own():
    comparison = read_comparison(SPECS / "dual-focal-ood.toml")
    assert [entry["data"] for entry in comparison.shift] == list(APART.values())
    runs = {(spec.model.name, spec.method.name) for spec in comparison.specs}
    networks = {"ResNet-50": "resnet50", "DenseNet-121": "densenet121"}
    for row in paper_results():
        if row.dataset in APART:
            assert {(networks[row.model], key) for key in row.method_keys} & runs


@pytest.mark.parametrize(
    "name", ["gamma-net-fixed", "gamma-net-sece", "gamma-net-bandwidth", "gamma-net-sees", "gamma-net-cost"]
)
def test_each_question_of_gamma_net_has_a_comparison(name):
    comparison = read_comparison(SPECS / f"{name}.toml")
    methods = [(spec.method.name, *sorted(spec.method.parameters.items())) for spec in comparison.specs]
    wanted = {
        "gamma-net-fixed": {("focal", ("gamma", 1.0)), ("gamma_net",)},
        "gamma-net-sece": {("ce",), ("ce+sece", ("strength", 1.0)), ("gamma_net",)},
        "gamma-net-bandwidth": {("gamma_net", ("bandwidth", width)) for width in (0.001, 0.01, 1.0)},
        "gamma-net-sees": {
            ("gamma_net",),
            *(("gamma_net", ("sees", what)) for what in ("body.layer2", "random", "noise")),
        },
        "gamma-net-cost": {("ce",), ("gamma_net",)},
    }[name]
    assert all(method in methods for method in wanted)
    if name == "gamma-net-cost":
        assert {"seconds", "parameters", "ece_gain"} <= set(comparison.metrics)


def test_what_the_gamma_network_sees_is_a_layer_of_the_network():
    network = resnet18(10)
    assert "body.layer2" in dict(network.named_modules())


def printed_lines():
    folder = files("equipoise.experiments").joinpath("papers")
    for file in folder.iterdir():
        if file.name.endswith(".csv"):
            yield from csv.DictReader(file.read_text(encoding="utf-8").splitlines())


def test_every_metric_that_is_printed_is_one_of_ours():
    keys = {row["metric_key"] for row in printed_lines()}
    assert {metric_facts(key).key for key in keys} == keys
    assert {row.metric for row in paper_results()} == keys


def test_printed_names_have_one_key_each():
    pairs = {(row["metric"], row["metric_key"]) for row in printed_lines()}
    other = {name: key for name, key in pairs if name != key}
    assert other == {
        "auroc": "ood_auroc", "ece_kde": "kde_ece", "error": "accuracy", "miou": "mean_iou", "rbs": "brier"
    }  # fmt: skip
    assert len(pairs) == len(dict(pairs))


def test_areas_of_foreign_data_do_not_stand_under_right_against_wrong():
    assert {row.dataset for row in paper_results() if row.metric == "ood_auroc"} == set(APART)
    assert not find_paper_results(method="ce", metric="auroc")


def test_what_is_printed_as_root_brier_score_cannot_be_the_root():
    # Where a row is wrong, the true class has at most one half and another at least as much, which costs at least 1/2.
    # So the root is at least that of half the error; of ten classes no printed number is that large.
    errors = {
        (row.data_key, row.model, row.method): 1 - row.value
        for row in paper_results()
        if row.paper == "dual_focal" and row.metric == "accuracy" and not row.settings
    }
    printed = [row for row in paper_results() if row.metric == "brier"]
    known = [(row, errors[row.data_key, row.model, row.method]) for row in printed
             if (row.data_key, row.model, row.method) in errors]  # fmt: skip
    assert len(printed) == 48
    assert len(known) > 40
    assert all(row.value >= error / 2 for row, error in known)
    assert all(row.value**2 < error / 2 for row, error in known if row.data_key == "cifar10")
    assert all("it is the Brier score itself" in row.note for row in printed)
