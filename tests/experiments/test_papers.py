"""Every number that the papers print has a run in a shipped comparison."""

import csv
import re
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from runpy import run_path

import pytest

from equipoise.experiments import Spec, read_comparison
from equipoise.experiments.results.papers import (
    find_paper_results,
    paper_results,
    paper_results_for,
    printed_for,
)
from equipoise.experiments.results.tables import COLUMNS
from equipoise.experiments.specs.calibrators import calibrator_key
from equipoise.experiments.tuning.samplers import first_settings
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
#: A network whose size is not printed.
WITHOUT = {("CIFAR-100", "Wide-ResNet")}
#: Numbers about out-of-distribution data, which stand in a table of their own.
OUTSIDE = {"CIFAR-10/SVHN": "svhn", "CIFAR-10/CIFAR-10-C": "cifar10c"}


def rows_beside(comparison):
    """Return the printed rows that stand beside ours in the tables of a comparison."""
    shown = comparison.metrics or COLUMNS
    runs = [(spec, ()) for spec in comparison.specs if spec.method.label in comparison.methods]
    for tuned in comparison.tuned:
        first = tuned.method_at(first_settings(tuned)[0])
        runs += [(spec, tuple(tuned.space)) for spec in comparison.specs if spec.method == first]
    for (spec, tuned), key in product(runs, map(calibrator_key, comparison.calibrators)):
        sets = [{"data": shift.data, **shift.options} for shift in comparison.shift]
        for ood in ({}, *sets):
            known = {"tuned": tuned, "ood": ood}
            text = printed_for(spec, key, ["ood_auroc"] if ood else shown, **known)
            rows = paper_results_for(spec, calibrator=key, **known)
            yield from (row for row in rows if stands_in(row, text.get(row.metric, "")))


def stands_in(row, text):
    """Whether a number stands in a cell with its table."""
    start = re.escape(f"{metric_facts(row.metric).text(row.value)} ({row.paper}, table")
    lists = re.findall(rf"(?:^| and ){start}s? ([\w, ]+?)(?:, doubtful|\))", text)
    return any(row.table in re.findall(r"\w+", found) for found in lists)


@cache
def reached(pattern="*.toml"):
    found = set()
    for path in SPECS.glob(pattern):
        for overrides in [[], *OTHERS.get(path.name, [])]:
            found |= {id(row) for row in rows_beside(read_comparison(path, overrides=overrides))}
    return found


@pytest.mark.parametrize(("paper", "table"), sorted({(row.paper, row.table) for row in paper_results()}))
def test_every_printed_number_stands_beside_ours_in_a_table(paper, table):
    missing = [
        (row.dataset, row.model, row.method, row.metric, row.stage, row.note)
        for row in paper_results()
        if (row.paper, row.table) == (paper, table) and id(row) not in reached()
    ]
    assert {(dataset, model) for dataset, model, *_ in missing} <= WITHOUT, missing


def test_table_13_is_one_table():
    rows = [row for row in paper_results() if (row.paper, row.table) == ("dual_focal", "13")]
    assert len(rows) == 25
    assert {id(row) for row in rows} <= reached("dual-focal-gamma.toml")


def test_numbers_about_out_of_distribution_data_stand_in_their_comparison():
    rows = [row for row in paper_results() if row.dataset in OUTSIDE]
    assert len(rows) == 54
    assert {id(row) for row in rows} <= reached("dual-focal-ood.toml")


@pytest.mark.parametrize("name", ["", "-tiny", "-newsgroups", "-ood", "-seeds"])
def test_gammas_of_dual_focal_are_chosen_as_in_the_paper_and_fixed_in_a_variant(name):
    main, fixed = (read_comparison(SPECS / f"dual-focal{name}{end}.toml") for end in ("", "-fixed"))
    chosen = {one.method.name: one for one in main.tuned}
    assert set(chosen) == {"dual_focal", "inverse_focal"}
    assert {one.rule for one in chosen.values()} == {"best"}
    printed = {row.settings["gamma"] for row in paper_results() if row.table == "13"}
    assert set(chosen["dual_focal"].space["gamma"]) == printed
    assert not fixed.tuned
    assert set(main.methods) - {one.label for one in main.tuned} < set(fixed.methods)
    assert {"dual_focal", "inverse_focal"} < set(fixed.methods)


def test_a_gamma_that_was_chosen_matches_the_paper_that_chose_it_only():
    table = {
        "data": "cifar10",
        "model": "resnet50",
        "method": {"name": "dual_focal", "options": {"gamma": 3.0}},
    }
    spec = Spec.from_table(table)
    assert {row.table for row in paper_results_for(spec)} == {"13"}
    assert "1" in {row.table for row in paper_results_for(spec, tuned=["gamma"])}
    margin = {"name": "cals_alm", "options": {"margin": 5.0}}
    cals = Spec.from_table({"data": "tiny_imagenet", "model": "resnet50_tiny", "method": margin})
    assert not paper_results_for(cals, tuned=["margin"])


def test_cross_entropy_without_the_papers_weight_decay_is_another_method():
    table = {"data": "cifar10", "model": "resnet50", "method": "ce", "recipe": "focal_cifar"}
    without = {**table, "recipe": {"name": "focal_cifar", "weight_decay": 0.0}}
    assert any(row.paper == "dual_focal" for row in paper_results_for(Spec.from_table(table)))
    assert not any(row.paper == "dual_focal" for row in paper_results_for(Spec.from_table(without)))
    # A method that sets its own weight decay is another one for papers that do not say theirs.
    own = {**table, "method": {"name": "ce", "recipe": {"weight_decay": 0.01}}}
    assert paper_results_for(Spec.from_table(own)) == []
    same = {**table, "method": {"name": "ce", "recipe": {"weight_decay": 5e-4}}}
    assert {row.paper for row in paper_results_for(Spec.from_table(same))} == {"dual_focal"}


def test_newsgroups_is_trained_with_the_optimizer_that_the_paper_names():
    recipe = read_comparison(SPECS / "dual-focal-newsgroups.toml").specs[0].training
    assert (recipe.optimizer, recipe.momentum, recipe.weight_decay) == ("SGD", 0.9, 5e-4)
    assert read_comparison(SPECS / "dual-focal-newsgroups-adam.toml").specs[0].training.optimizer == "Adam"


def paper_specs():
    return sorted(
        path
        for path in SPECS.glob("*.toml")
        if path.name.startswith(
            ("dual-focal", "cals", "gamma-net", "diff-dml", "losses", "voc", "weight-decay")
        )
        or path.name == "newsgroups.toml"
    )


def test_the_page_of_the_papers_names_every_comparison_and_no_other():
    page = (SPECS.parents[1] / "docs" / "papers.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w-]+\.toml", page))
    assert named <= {path.name for path in SPECS.glob("*.toml")}
    assert {path.name for path in paper_specs() if not path.stem.endswith("-fixed")} <= named


def test_trainings_and_steps_on_the_page_are_those_of_the_comparisons():
    tool = run_path(str(SPECS.parents[1] / "tools" / "papers" / "gpu_hours.py"))
    page = (SPECS.parents[1] / "docs" / "papers.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([\w-]+)` \| (\d+) \| ([\d,]+) \| [\d,]+ \| [\d,.]+ \|$", page, re.MULTILINE)
    found = []
    for path in paper_specs():
        specs = read_comparison(path).specs
        steps = sum(map(tool["n_steps"], specs))
        found.append((path.stem, str(len(specs)), f"{steps / 1e3:,.0f}"))
    assert sorted(told) == sorted(found)


@pytest.mark.parametrize("path", paper_specs(), ids=lambda path: path.stem)
def test_the_header_says_what_is_ours(path):
    text = path.read_text(encoding="utf-8")
    header = text[: text.index("\nname = ")]
    assert all(line.startswith("# ") for line in header.splitlines())
    assert any(word in header for word in ("Ours", "Unlike the paper", "As in the paper")), path.name


@pytest.mark.parametrize("path", paper_specs(), ids=lambda path: path.stem)
def test_the_papers_have_one_validation_set(path):
    for spec in read_comparison(path).specs:
        whole = spec.data.options.get("validation") == "whole"
        # Neither source says what was held out.
        assert whole != path.name.startswith(("diff-dml", "losses", "weight-decay"))


@pytest.mark.parametrize("path", sorted(SPECS.glob("gamma-net*.toml")), ids=lambda path: path.stem)
def test_gamma_net_holds_out_the_same_rows_everywhere(path):
    for spec in read_comparison(path).specs:
        options = spec.data.options
        n_train = {"cifar10": 50_000, "cifar100": 50_000, "tiny_imagenet": 100_000}[spec.data.name]
        assert spec.training.meta == 0.5
        assert options["tune"] + options["calib"] == 0.2 * n_train


def test_gamma_net_is_compared_as_its_paper_does():
    assert {spec.data.name for spec in read_comparison(SPECS / "gamma-net-bandwidth.toml").specs} == {
        "cifar100"
    }
    assert read_comparison(SPECS / "gamma-net-cost.toml").baseline == "focal"
    for name in ("gamma-net", "gamma-net-tiny"):
        assert {"ece", "mce", "ada_ece", "classwise_ece"} <= set(
            read_comparison(SPECS / f"{name}.toml").metrics
        )


def test_figure_s1_of_diff_dml_has_a_comparison():
    comparison = read_comparison(SPECS / "diff-dml-cifar100.toml")
    assert {spec.data.name for spec in comparison.specs} == {"cifar100"}
    names = {spec.method.name for spec in comparison.specs}
    assert names == {"ce", "focal+mdca", "differentiated_mutual_learning"}


@pytest.mark.parametrize(
    ("name", "option", "main"), [("penalties", "penalty", "phr"), ("margins", "margin", 10.0)]
)
def test_figure_3c_of_cals_has_a_comparison(name, option, main):
    comparison = read_comparison(SPECS / f"cals-{name}.toml")
    settings = comparison.tuned[0].space[option]
    assert main in settings
    listed = {spec.method.options[option] for spec in comparison.specs}
    assert listed == set(settings)
    assert {"accuracy", "ece"} <= set(comparison.metrics)


def test_weight_decay_has_a_comparison():
    comparison = read_comparison(SPECS / "weight-decay.toml")
    decays = {spec.training.weight_decay for spec in comparison.specs}
    assert {0.0, 5e-4} < decays
    assert len(comparison.methods) == len(decays)


@pytest.mark.parametrize(
    "name", ["gamma-net-fixed", "gamma-net-sece", "gamma-net-bandwidth", "gamma-net-sees", "gamma-net-cost"]
)
def test_each_question_of_gamma_net_has_a_comparison(name):
    comparison = read_comparison(SPECS / f"{name}.toml")
    methods = [(spec.method.name, *sorted(spec.method.options.items())) for spec in comparison.specs]
    wanted = {
        "gamma-net-fixed": {("focal", ("gamma", 1.0)), ("gamma_net",)},
        "gamma-net-sece": {("ce",), ("ce+sece", ("strength", 1.0)), ("gamma_net",)},
        "gamma-net-bandwidth": {("gamma_net", ("bandwidth", width)) for width in (0.001, 0.01, 1.0)},
        "gamma-net-sees": {
            ("gamma_net",),
            *(("gamma_net", ("sees", what)) for what in ("body.layer2", "random", "noise")),
        },
        "gamma-net-cost": {("focal",), ("flsd",), ("gamma_net",)},
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
    assert {row.dataset for row in paper_results() if row.metric == "ood_auroc"} == set(OUTSIDE)
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


def test_the_page_of_the_papers_counts_the_steps_of_every_comparison():
    page = (SPECS.parents[1] / "docs" / "papers.md").read_text(encoding="utf-8").partition("## GPU hours")[2]
    rows = {
        name: counts for name, *counts in re.findall(r"^\| `([\w-]+)` \| ([\d,]+) \| ([\d,]+) \|", page, re.M)
    }
    assert rows.keys() == {path.stem for path in paper_specs()}
    for path in paper_specs():
        comparison = read_comparison(path)
        assert int(rows[path.stem][0].replace(",", "")) == len(comparison.specs)
    # 45,000 images in batches of 128 are 351 steps, 350 times, for each of six trainings.
    assert rows["dual-focal-gamma"] == ["6", f"{round(6 * 350 * 351 / 1000)}"]
