"""What is shown of finished runs: warnings of fits, advice by results, the advisor, order and filters, LaTeX."""

import json

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.calibrators import StructuredVectorScaling
from equipoise.calibrators.loading import KINDS
from equipoise.cli import main
from equipoise.core.errors import SpecError
from equipoise.evaluate import score_detection
from equipoise.experiments import (
    ComparisonSpec,
    Component,
    compare_seeds,
    format_shifts,
    format_table,
    group_runs,
    make_tables,
    report_of_runs,
)
from equipoise.experiments.results.groups import ShownOrder, write_order
from equipoise.experiments.specs.calibrators import calibrator_key, make_calibrator
from equipoise.report import report_of, to_html, to_markdown
from equipoise.report.conclusion import conclusion_of
from helpers.finished_runs import finish_run, rows_of, separable
from helpers.tiny_runs import TABLE

WARNING = "the logits separate the classes"


@pytest.fixture(scope="module")
def warned(tmp_path_factory):
    """Two methods and two seeds, whose temperature was fitted on rows that say nothing about it."""
    base = tmp_path_factory.mktemp("warned")
    return base, [
        finish_run(base, method=name, seed=seed, calib=separable(), sharpness=sharpness)
        for name, sharpness in (("ce", 1.0), ("focal", 1.2))
        for seed in (0, 1)
    ]


def shown(report):
    return " ".join(conclusion_of(report).sentences).replace("\u00a0", " ")


@pytest.mark.parametrize("style", ["text", "markdown", "latex", "csv"])
def test_a_warning_of_a_fit_is_in_every_table(warned, style):
    [table] = make_tables(warned[1])
    text = format_table(table, style)
    assert WARNING in text
    if style != "csv":
        mark = r"$^\dagger$" if style == "latex" else "†"
        marked = [line for line in text.splitlines() if "ce + temperature" in line and mark in line]
        assert marked
        assert "(all 2 seeds)" in text
    assert WARNING in table._repr_html_()


def test_a_warning_of_a_fit_is_in_json(warned, capsys):
    assert main(["table", str(warned[0]), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    for part in ("rows", "table"):
        found = {row["calibrator"]: row["warnings"] for row in content[part]}
        assert WARNING in found["temperature"]
        assert found["identity"] == ""


def test_a_warning_of_a_fit_is_in_the_report(warned):
    [report] = report_of_runs(warned[1]).values()
    for text in (to_html(report), to_markdown(report)):
        assert WARNING in text


def test_a_report_as_json_has_the_warnings_and_the_advice(warned, tmp_path, capsys):
    assert main(["report", str(warned[0]), "-o", str(tmp_path / "report.html"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {(one["method"], one["calibrator"]) for one in content["warnings"]} == {
        ("ce", "temperature"),
        ("focal", "temperature"),
    }
    assert any("What to do: use ce without a calibrator" in one for one in content["sentences"])


def test_a_temperature_near_zero_is_not_shown_as_zero(tmp_path):
    runs = [finish_run(tmp_path, calib=separable().with_scores(logits=1e-3 * separable().logits))]
    [table] = make_tables(runs)
    assert "temperature (0.00)" not in format_table(table)


def test_a_calibrator_that_makes_it_worse_is_not_recommended(warned):
    [report] = report_of_runs(warned[1]).values()
    words = shown(report)
    assert "fit temperature" not in words
    assert "use ce without a calibrator, since temperature makes it worse on the rows scored here" in words
    assert "NLL" in words


def test_one_seed_is_not_told_to_fit_what_makes_it_worse(tmp_path):
    runs = [finish_run(tmp_path, method=name, calib=separable()) for name in ("ce", "focal")]
    [report] = report_of_runs(runs).values()
    assert "do not fit temperature for ce and focal" in shown(report)
    assert WARNING in shown(report)


def test_a_calibrator_whose_effect_cannot_be_told_is_called_so():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(60, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    rows = Predictions(logits=1.05 * logits, labels=labels)
    report = report_of(
        {"a": rows.take(slice(30)), "b": rows.take(slice(30)).with_scores(logits=logits[:30])},
        calib={"a": rows.take(slice(30, 60)), "b": rows.take(slice(30, 60))},
        candidates=["temperature"],
        n_resamples=100,
    )
    assert "do not show whether temperature helps" in shown(report)


def test_a_report_of_one_file_does_not_recommend_what_makes_it_worse():
    rows = rows_of("test")
    report = report_of(rows, calib=separable(), candidates=["temperature"], n_resamples=50)
    assert "Do not use temperature: it makes the predictions scored here worse (NLL" in shown(report)
    assert WARNING in shown(report)
    assert WARNING in to_html(report)
    assert "Do not use temperature" in to_html(report).split('id="advice"')[1]


# the advisor as a calibrator


def test_the_advisor_is_a_calibrator_of_a_comparison(tmp_path):
    runs = [finish_run(tmp_path, seed=seed, sharpness=3.0, calibrators=("auto",)) for seed in (0, 1)]
    assert {run.calibrator("auto").kind for run in runs} <= set(KINDS) - {"identity"}
    [table] = make_tables(runs)
    kinds = {run.calibrator("auto").kind for run in runs}
    [note] = [note for note in table.notes if note.startswith("ce + auto: the advisor chose")]
    assert all(kind in note for kind in kinds)
    rows = {row.calibrator: row.cells["nll"].mean for row in table.rows}
    assert rows["auto"] < rows["identity"]
    [report] = report_of_runs(runs).values()
    assert "the advisor chose" in to_markdown(report)


def test_the_advisor_takes_options_and_refuses_wrong_ones():
    options = {"name": "auto", "options": {"candidates": ["temperature"], "rule": "best"}}
    [_, auto] = ComparisonSpec.from_table({**TABLE, "calibrators": [options]}).calibrators
    assert make_calibrator(auto).fit(rows_of("calib", sharpness=3.0)).kind == "temperature"
    for wrong in ({"rule": "bst"}, {"candidates": ["temprature"]}, {"fold": 3}):
        with pytest.raises(SpecError, match=r"comparison\.calibrators"):
            ComparisonSpec.from_table({**TABLE, "calibrators": [{"name": "auto", "options": wrong}]})


def test_the_advisor_in_a_comparison_of_predictions():
    found = compare_seeds(
        {"ce": rows_of("test", sharpness=3.0)},
        calib={"ce": rows_of("calib", sharpness=3.0)},
        calibrators=["auto"],
        n_resamples=20,
    )
    assert "the advisor chose" in str(found)


# order and filters


@pytest.fixture(scope="module")
def ordered(tmp_path_factory):
    base = tmp_path_factory.mktemp("ordered")
    for name in ("ce", "focal", "brier", "dual_focal"):
        finish_run(base, method=name, calibrators=("temperature", "vector"))
    order = ShownOrder(
        methods=("focal", "brier", "dual_focal", "ce"),
        calibrators=("identity", "vector", "temperature"),
        baseline="ce",
    )
    write_order(base, "mine", order)
    return base


def places(folder, *words, capsys):
    assert main(["table", str(folder), "--json", *words]) == 0
    content = json.loads(capsys.readouterr().out)
    return content, list(dict.fromkeys((row["method"], row["calibrator"]) for row in content["table"]))


def test_a_table_keeps_the_order_and_baseline_of_the_comparison(ordered, capsys):
    content, found = places(ordered, capsys=capsys)
    assert list(dict.fromkeys(method for method, _ in found)) == ["focal", "brier", "dual_focal", "ce"]
    assert list(dict.fromkeys(name for _, name in found)) == ["identity", "vector", "temperature"]
    assert {row["baseline"] for row in content["differences"]} == {"ce"}


def test_a_table_shows_only_the_methods_and_calibrators_asked_for(ordered, capsys):
    words = [
        "--method",
        "ce",
        "--method",
        "*focal",
        "--calibrator",
        "temperature",
        "--calibrator",
        "identity",
    ]
    content, found = places(ordered, *words, capsys=capsys)
    methods = ("focal", "dual_focal", "ce")
    assert found == [(method, name) for name in ("identity", "temperature") for method in methods]
    assert {row["calibrator"] for row in content["rows"]} == {"identity", "temperature"}
    assert {row["method"] for row in content["rows"]} == set(methods)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--method", "focl"], "'focl'"), (["--calibrator", "temprature"], "did you mean 'temperature'")],
)
def test_what_is_not_there_cannot_be_asked_for(ordered, words, sentence, capsys):
    assert main(["table", str(ordered), *words]) == 2
    assert sentence in capsys.readouterr().err


def test_json_has_only_the_metrics_asked_for(ordered, capsys):
    content, _ = places(ordered, "--metric", "ece", "--metric", "nll", capsys=capsys)
    for part in ("rows", "table", "differences"):
        assert {row["metric"] for row in content[part]} == {"ece", "nll"}


# LaTeX


def test_latex_has_rules_a_label_and_no_fidelity_unless_asked(ordered, capsys):
    assert main(["table", str(ordered), "--format", "latex"]) == 0
    text = capsys.readouterr().out
    for command in (r"\toprule", r"\midrule", r"\bottomrule", r"\label{tab:digits-mlp}", r"\centering"):
        assert command in text
    assert r"\hline" not in text
    assert "fidelity" not in text
    assert text.count(r"\midrule") == 3
    assert main(["table", str(ordered), "--format", "latex", "--fidelity"]) == 0
    assert "fidelity" in capsys.readouterr().out
    assert main(["table", str(ordered), "--format", "markdown", "--no-fidelity"]) == 0
    assert "fidelity" not in capsys.readouterr().out


# out-of-distribution scores


def foreign():
    rng = np.random.default_rng(3)
    return Predictions(logits=rng.normal(size=(80, 3)), split="test")


def test_scores_that_read_the_size_of_logits_are_not_offered_where_it_is_lost(tmp_path):
    own = Component(name="helpers.own_maps:Normalized")
    maps = ("svs", "temperature", "isotonic", own)
    run = finish_run(tmp_path, foreign=foreign(), calibrators=maps)
    offered = {name: set(run.scores(name).detection["other"]) for name in run.calibrators()}
    every, two = {"confidence", "entropy", "energy", "max_logit"}, {"confidence", "entropy"}
    assert offered["identity"] == offered["temperature"] == every
    assert offered["svs"] == offered["isotonic"] == offered[calibrator_key(own)] == two
    groups = group_runs([run])
    text = format_shifts(groups, "text")
    assert "energy and max_logit are not shown after" in text
    assert "they normalize the logits of every row" in text
    [report] = report_of_runs([run]).values()
    assert "energy and max_logit are not shown after" in to_html(report)


def test_detection_in_python_is_told_the_calibrator():
    known, other = rows_of("test"), foreign()
    fitted = StructuredVectorScaling().fit(rows_of("calib"))
    found = score_detection(fitted(known), fitted(other), n_resamples=5, calibrator=fitted)
    assert set(found) == {"confidence", "entropy"}


@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_every_calibrator_knows_whether_it_keeps_the_level_of_logits(kind):
    rows = rows_of("calib")
    fitted = KINDS[kind]().fit(rows)
    logits = rows.logits[:50]
    if fitted.gives == "probs":
        assert not fitted.keeps_logit_level
    else:
        is_lost = np.allclose(fitted(logits), fitted(logits + 5.0), atol=1e-6)
        assert fitted.keeps_logit_level != is_lost
    assert fitted.keeps_logit_level == (kind in ("identity", "temperature", "vector", "matrix"))
