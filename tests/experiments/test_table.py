"""The table: nothing is merged that differs, marks follow the tests, every style can be read back."""

import csv
import io
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from equipoise.core.errors import SpecError
from equipoise.core.predictions import Predictions
from equipoise.experiments import RunFolder, Spec, format_tables, make_tables, write_spec
from equipoise.experiments.results.formatting import format_table
from equipoise.experiments.results.means import Cell
from equipoise.experiments.results.papers import paper_results, paper_results_for
from equipoise.experiments.results.report import report_of_runs
from equipoise.experiments.results.tables import ResultTable, TableRow
from equipoise.experiments.runs.scoring import score_run
from equipoise.experiments.runs.stages import store_predictions
from equipoise.report import to_html, to_markdown
from helpers.tiny_runs import TABLE, quick_options


def predicted(seed, sharpness, split):
    """Give predictions on rows that are the same for all seeds."""
    rng = np.random.default_rng(["calib", "test"].index(split))
    logits = rng.normal(size=(600, 3)) * 2
    uniform = rng.uniform(size=(600, 1))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = (probs.cumsum(1) < uniform).sum(1)
    noise = np.random.default_rng([seed, 7]).normal(size=logits.shape) * 0.01
    return Predictions(logits=sharpness * logits + noise, labels=labels, split=split)


@pytest.fixture
def finish(tmp_path):
    """Make the folder of a finished run whose logits are the truth times a sharpness."""

    def make(
        sharpness=1.0, calibrators=("identity", "temperature"), history="epoch,loss\n0,1.0\n", **changes
    ):
        spec = Spec.from_table({**TABLE, **changes})
        folder = RunFolder(tmp_path / spec.identity)
        folder.path.mkdir()
        write_spec(spec, folder.path / "spec.toml")
        folder.write_record("started", ["spec.toml"])
        (folder.path / "history.csv").write_text(history)
        folder.write_record("trained", ["history.csv"])
        store_predictions(folder, map(partial(predicted, spec.seed, sharpness), ("calib", "test")))
        score_run(folder, spec, quick_options(calibrators=calibrators)["scoring"], score_pixels=None)
        return folder

    return make


def test_runs_that_differ_in_a_setting_never_share_a_cell(finish):
    runs = [
        finish(),
        finish(sharpness=3.0, data={"name": "digits", "options": {"noise": 0.1}}),
        finish(recipe={"name": "quick", "epochs": 3}),
    ]
    tables = make_tables(runs)
    assert [table.data for table in tables] == [
        "digits (noise=0.3, epochs=2)",
        "digits (noise=0.1, epochs=2)",
        "digits (noise=0.3, epochs=3)",
    ]
    assert all(cell.n_seeds == 1 for table in tables for row in table.rows for cell in row.cells.values())
    assert len(make_tables(runs[:1])[0].data.split()) == 1


def test_helping_networks_with_other_options_are_other_methods():
    def label(hidden):
        helper = {"name": "mlp", "options": {"hidden": hidden}}
        method = {"name": "differentiated_mutual_learning", "auxiliary": helper}
        return Spec.from_table({**TABLE, "method": method}).method.label

    assert label([8]) != label([16])


def test_far_apart_is_marked_and_equal_is_tied(finish):
    methods = (("ce", 3.0), ("focal", 1.0), ("brier", 1.0))
    runs = [finish(method=name, sharpness=s, seed=seed) for name, s in methods for seed in range(3)]
    [table] = make_tables(runs)
    raw = {row.method: row for row in table.rows if row.calibrator == "identity"}
    assert [raw[name].versus["ece"] for name in raw] == ["", "better", "better"]
    assert sorted(raw[name].marks["ece"] for name in raw) == ["", "best", "tied"]
    after = [row.versus["ece"] for row in table.rows if row.calibrator == "temperature"]
    assert after == ["", "tie", "tie"]


def test_the_signed_gap_is_best_at_zero(finish):
    runs = [
        finish(method=name, sharpness=s, seed=seed)
        for name, s in (("ce", 0.2), ("focal", 1.0))
        for seed in (0, 1)
    ]
    [table] = make_tables(runs, metrics=["confidence_gap"])
    rows = {row.method: row for row in table.rows if row.calibrator == "identity"}
    assert rows["ce"].cells["confidence_gap"].mean < rows["focal"].cells["confidence_gap"].mean
    assert rows["focal"].marks["confidence_gap"] == "best"
    assert rows["focal"].versus["confidence_gap"] == "better"


def test_a_calibrator_that_some_runs_lack_is_left_out_for_them(finish):
    runs = [finish(calibrators=("identity",)), finish(method="focal")]
    [table] = make_tables(runs)
    assert [(row.method, row.calibrator) for row in table.rows] == [
        ("ce", "identity"),
        ("focal", "identity"),
        ("focal", "temperature"),
    ]
    assert table.rows[-1].versus["ece"] == ""
    assert "focal + temperature" in format_table(table)
    [report] = report_of_runs(runs).values()
    assert [[part.name for part in method.calibrated] for method in report.methods] == [[], ["temperature"]]


def test_a_report_is_made_without_a_record_of_the_machine(finish):
    [report] = report_of_runs([finish(), finish(method="focal")]).values()
    assert ("machine", "not recorded") in report.provenance.facts


def test_a_report_says_in_words_which_runs_are_failing(finish):
    rows = [f"{epoch},1.0,0.0,0.001" for epoch in range(6)]
    failing = "\n".join(["epoch,loss,gamma_min,gamma_max", *rows]) + "\n"
    [report] = report_of_runs([finish(), finish(method="gamma_net", history=failing, seed=3)]).values()
    [note] = report.notes
    assert note.startswith("gamma_net, seed 3: gammas are all below 0.02 since epoch 1")
    assert "the focal loss has become cross-entropy" in to_html(report)
    assert "the focal loss has become cross-entropy" in to_markdown(report)


def test_methods_with_other_seeds_are_compared_on_those_they_share(finish):
    runs = [finish(seed=seed) for seed in (0, 1, 2)]
    runs += [finish(seed=seed, method="focal", sharpness=3.0) for seed in (1, 2)]
    [table] = make_tables(runs)
    assert table.rows[1].versus["nll"] == "worse"
    assert table.rows[1].differences["nll"].n_seeds == 2
    assert "2 to 3 seeds" in table.caption


def test_methods_without_common_seeds_are_compared_by_their_means(finish):
    runs = [finish(seed=seed) for seed in (0, 1, 2)]
    runs += [finish(seed=seed, method="focal", sharpness=3.0) for seed in (3, 4, 5)]
    [table] = make_tables(runs)
    assert table.rows[1].versus["nll"] == "worse"


def test_one_seed_gives_no_verdict_about_methods(finish):
    runs = [finish(seed=0), finish(seed=1), finish(seed=1, method="focal", sharpness=3.0)]
    [table] = make_tables(runs)
    assert table.rows[1].versus["nll"] == "network worse"
    assert table.rows[1].marks["nll"] == ""
    text = format_table(table)
    assert "(-)" in text
    assert "one seed says nothing about the next training." in text
    assert not re.search(r"(better|worse) than ce", text)


def test_marks_do_not_depend_on_the_columns_shown(finish):
    methods = (("ce", 1.5), ("focal", 1.2), ("brier", 1.0), ("label_smoothing", 1.4))
    runs = [finish(method=name, sharpness=s, seed=seed) for name, s in methods for seed in range(3)]
    [every] = make_tables(runs)
    for metric in every.metrics:
        [alone] = make_tables(runs, metrics=[metric])
        for row, one in zip(every.rows, alone.rows, strict=True):
            assert (row.marks[metric], row.versus[metric]) == (one.marks[metric], one.versus[metric])


def test_interval_p_value_and_verdict_agree_for_every_difference(finish):
    methods = (("ce", 1.5), ("focal", 1.2), ("brier", 2.0), ("label_smoothing", 1.49))
    runs = [finish(method=name, sharpness=s, seed=seed) for name, s in methods for seed in range(3)]
    [table] = make_tables(runs)
    found = [one for row in table.rows for one in row.differences.values()]
    assert {one.verdict for one in found} == {"tie", "worse", "better"}
    for one in found:
        assert one.comparisons == 3
        assert (one.verdict == "tie") == (one.low <= 0 <= one.high) == (one.p_value >= 0.05)


def test_ties_state_what_they_could_have_shown_and_margins_rule_out(finish):
    methods = (("ce", 0), ("focal", 3))
    runs = [finish(method=name, seed=first + seed) for name, first in methods for seed in range(3)]
    [table] = make_tables(runs, metrics=["nll"], margins={"nll": 0.2})
    tie = table.rows[1]
    assert tie.versus["nll"] == "tie"
    assert 0 < table.detectable()["identity"]["nll"] < 0.2
    assert tie.equivalent == {"nll": True}
    text = format_table(table)
    assert "Smallest difference from ce that ties here could have shown (80% power): NLL 0." in text
    assert "Equivalent to ce within 0.2000 in NLL: focal, focal + temperature" in text
    [strict] = make_tables(runs, metrics=["nll"], margins={"nll": 1e-6})
    assert strict.rows[1].equivalent == {"nll": False}
    assert "none shown" in format_table(strict)


def test_a_baseline_or_metric_that_is_not_there_is_refused(finish):
    runs = [finish(), finish(method="focal")]
    with pytest.raises(SpecError, match="did you mean 'focal'"):
        make_tables(runs, baseline="focall")
    with pytest.raises(SpecError, match="did you mean 'ece'"):
        make_tables(runs, metrics=["eec"])


def test_reading_a_table_writes_nothing(finish):
    runs = [finish(), finish(method="focal")]
    before = {file: file.stat().st_mtime_ns for run in runs for file in run.path.rglob("*")}
    make_tables(runs)
    assert before == {file: file.stat().st_mtime_ns for run in runs for file in run.path.rglob("*")}


def made(method, metric="ece"):
    cell = Cell(mean=0.05, error=0.01, n_seeds=2)
    row = TableRow(
        method=method,
        calibrator="identity",
        fidelity="ours",
        cells={metric: cell},
        marks={metric: "best"},
        versus={metric: ""},
        printed={metric: "4.00% (paper, table 1)"},
    )
    return ResultTable(
        data="d",
        model="m",
        baseline=method,
        metrics=(metric, "nll"),
        rows=(row,),
        n_seeds=2,
        n_test=9,
        n_bins=15,
    )


def wide(versus="worse"):
    cell = Cell(mean=0.05, error=0.01, n_seeds=2)
    metrics = ("accuracy", "nll", "brier", "ece")
    marks = {"best": "", "tied": "tied"}
    rows = [
        TableRow(
            method=method,
            calibrator="identity",
            fidelity="ours",
            cells=dict.fromkeys(metrics, cell),
            marks=dict.fromkeys(metrics, mark),
            versus=dict.fromkeys(metrics, versus),
            printed={},
        )
        for method, mark in zip(("label_smoothing", "ce"), marks.values(), strict=True)
    ]
    return replace(made("ce"), metrics=metrics, rows=tuple(rows))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_metrics_that_do_not_fit_stand_in_blocks_below(width):
    lines = format_tables([wide()], width=width).splitlines()
    assert max(map(len, lines)) <= width
    heads = [line.split("  ")[0] for line in lines].count("method")
    assert heads > 1
    assert sum(line.startswith("label_smoothing") for line in lines) == heads
    assert sum(line.count("5.00 ± 1.00") + line.count("0.0500 ± 0.0100") for line in lines) == 8


@pytest.mark.parametrize("style", ["text", "markdown", "latex"])
@pytest.mark.parametrize(("versus", "sign"), [("better", "+"), ("worse", "-")])
def test_signs_say_better_or_worse_and_are_explained(style, versus, sign):
    text = format_table(wide(versus), style)
    line = next(line for line in text.splitlines() if "± 0.0100" in line or r"\pm 0.0100" in line)
    assert line.replace(" ± ", "").replace(r"\pm", "").replace("--", "").count(sign) == 4
    assert "+ and -: better and worse than ce" in text
    assert "↑" not in text


def test_csv_of_several_tables_is_one_file():
    label = 'npz(path="a, b", x=1)'
    rows = list(csv.DictReader(io.StringIO(format_tables([made(label), made("ce")], "csv"))))
    assert [row["method"] for row in rows] == [label, "ce"]
    assert float(rows[0]["mean"]) == 0.05
    assert rows[0]["printed"] == "4.00% (paper, table 1)"


def test_latex_is_escaped_and_keeps_what_papers_printed():
    text = format_table(made("a_b{c}^2 & 5%"), "latex")
    assert r"a\_b\{c\}\textasciicircum{}2 \& 5\% & $\mathbf{5.00 \pm 1.00}$ & -- \\" in text
    assert r"4.00\% (paper, table 1)" in text
    assert text.isascii()


def test_markdown_bars_do_not_break_the_table():
    line = format_table(made("a|b"), "markdown").splitlines()[2]
    assert line.startswith(r"| a\|b |")


PLACES = [
    ("cifar10", "resnet50", "ResNet-50"),
    ("cifar100", "resnet34", "ResNet-34"),
    ("cifar10", "resnet110_focal", "ResNet-110"),
    ("cifar100", "wide_resnet_26_10", "Wide-ResNet-26-10"),
    ("cifar10", "densenet121", "DenseNet-121"),
    ("tiny_imagenet", "resnet50_tiny", "ResNet-50"),
    ("imagenet", "resnet50_imagenet", "ResNet-50"),
    ("imagenet_lt", "swinv2_t", "SwinV2-T"),
    ("newsgroups", "global_pooling_cnn", "Global Pooling CNN"),
    ("voc2012", "deeplabv3_resnet34", "DeepLabV3"),
]


@pytest.mark.parametrize(("data", "model", "title"), PLACES)
def test_printed_numbers_are_found_where_we_can_run(data, model, title):
    rows = [
        row
        for name in ("ce", "differentiated_mutual_learning")
        for row in paper_results_for(Spec.from_table({"data": data, "model": model, "method": name}))
    ]
    assert rows
    assert {row.model for row in rows} == {title}


def test_every_printed_place_is_reached_or_known_not_to_be():
    left = {(row.dataset, row.model) for row in paper_results() if not row.model_keys}
    assert left == {("CIFAR-100", "Wide-ResNet")}


def find(data, model, method, calibrator="identity", metric="ece"):
    spec = Spec.from_table({"data": data, "model": model, "method": method})
    return [
        (row.value, row.table)
        for row in paper_results_for(spec, calibrator=calibrator)
        if row.metric == metric
    ]


def test_settings_find_their_own_rows_only():
    diff = "differentiated_mutual_learning"
    assert (pytest.approx(0.0090), "S1") in find(
        "cifar10", "resnet50", {"name": diff, "auxiliary": "resnet18"}
    )
    assert find("cifar10", "resnet50", diff) == [(pytest.approx(0.0064), "S4")]
    two = {"name": diff, "auxiliary": "resnet18", "options": {"n_auxiliaries": 2}}
    assert find("cifar10", "resnet50", two) == [(pytest.approx(0.0063), "S3")]
    assert find("cifar10", "resnet50", "deep_ensemble") == []
    three = {"name": "deep_ensemble", "options": {"n_members": 3}}
    assert find("cifar10", "resnet50", three) == [(pytest.approx(0.0077), "S3")]
    gamma = {"name": "dual_focal", "options": {"gamma": 3.0}}
    assert find("cifar10", "resnet50", gamma) == [(pytest.approx(0.0179), "13")]
    assert find("cifar10", "resnet50", {"name": "dual_focal", "options": {"gamma": 7.0}}) == []
    assert find("newsgroups", "global_pooling_cnn", {"name": "mbls", "options": {"margin": 6.0}})


def test_calibrators_find_their_own_rows_only():
    assert (pytest.approx(0.0135), "1") in find("cifar10", "resnet50", "ce", "temperature_ece")
    assert find("cifar10", "resnet50", "ce", "vector") == [(pytest.approx(0.0058), "S1")]
    assert find("cifar10", "resnet50", "ce", "isotonic", metric="accuracy") == []


def test_the_two_networks_called_resnet110_are_told_apart():
    assert {table for _, table in find("cifar10", "resnet110", "dual_focal")} == {"10"}
    assert "10" not in {table for _, table in find("cifar10", "resnet110_focal", "dual_focal")}
