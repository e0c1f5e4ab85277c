"""Additional test sets of runs: predicted beside test when asked for, scored with the calibrators of clean rows."""

import csv
import shutil

import numpy as np
import pytest

from equipoise import Predictions, score
from equipoise.calibrators import TemperatureScaling
from equipoise.core.errors import DataError, SpecError
from equipoise.evaluate import score_detection
from equipoise.experiments import (
    ComparisonSpec,
    Spec,
    find_runs,
    format_shifts,
    group_runs,
    report_of_runs,
    run,
    run_comparison,
)
from equipoise.experiments.build.data import load_data
from equipoise.experiments.results.shift import shift_scores
from equipoise.metrics import expected_calibration_error, out_of_distribution_auroc
from equipoise.report import to_html
from helpers.tiny_runs import QUICK, TABLE

NOISE = {"corruption": "gaussian_noise", "severity": [1, 5]}
#: Digits turned on their heads would do; their noisy selves are foreign enough for a tiny network.
FOREIGN = {"data": "digits", "kind": "ood", "name": "other", "options": {"noise": 1.0}}


def compare(folder, **more):
    table = {**TABLE, "name": "tiny", "recipe": {"name": "quick", "epochs": 2}, **more}
    return run_comparison(ComparisonSpec.from_table(table), folder, **QUICK, workers=1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shifted")
    return folder, compare(folder, shift=[NOISE, FOREIGN], method=["ce", "focal"])


def test_sets_are_predicted_and_scored_beside_test(finished):
    folder, outcome = finished
    found = find_runs(folder)[0]
    names = {"test-gaussian_noise_1", "test-gaussian_noise_5", "test-other"}
    assert {file.stem for file in (found.path / "predictions").iterdir()} == {"tune", "calib", "test"} | names
    for calibrator in ("identity", "temperature"):
        scores = found.scores(calibrator)
        assert {"test", "test-gaussian_noise_1", "test-gaussian_noise_5"} <= set(scores.cards)
        assert set(scores.detection["other"]) == {"confidence", "entropy", "energy", "max_logit"}
    with (folder / "tiny.results.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert names <= {row["split"] for row in rows}
    assert "ood_fpr95_energy" in {row["metric"] for row in rows}
    keys = [tuple(row[k] for k in ("run", "split", "calibrator", "metric")) for row in rows]
    assert len(keys) == len(set(keys))
    assert outcome.summary.is_whole


def test_predictions_are_those_of_the_corrupted_rows(finished):
    folder, _ = finished
    found = find_runs(folder)[0]
    clean, noisy = (found.predictions(name) for name in ("test", "test-gaussian_noise_5"))
    assert np.array_equal(clean.labels, noisy.labels)
    assert not np.array_equal(clean.logits, noisy.logits)
    assert (
        found.scores().cards["test-gaussian_noise_5"]["accuracy"].value
        < found.scores().test["accuracy"].value
    )


def test_foreign_rows_have_no_labels_and_what_needs_them_is_refused(finished):
    folder, _ = finished
    foreign = find_runs(folder)[0].predictions("test-other")
    assert not foreign.has_labels
    for use in (score, expected_calibration_error, TemperatureScaling().fit):
        with pytest.raises(DataError, match="label"):
            use(foreign)


def test_maps_are_fitted_on_clean_rows_alone(finished, tmp_path):
    folder, _ = finished
    compare(tmp_path, method=["ce", "focal"])
    for with_sets, without in zip(find_runs(folder), find_runs(tmp_path), strict=True):
        assert with_sets.name == without.name, "additional test sets are no part of a run's identity"
        assert with_sets.scores("temperature").temperature == without.scores("temperature").temperature
        assert with_sets.scores("temperature").test["nll"] == without.scores("temperature").test["nll"]


def test_sets_that_are_added_later_are_all_that_is_predicted(finished, tmp_path):
    folder, _ = finished
    compare(tmp_path, shift=[{**NOISE, "severity": 1}], method=["ce", "focal"])
    files = [*tmp_path.glob("*/last.pt"), *tmp_path.glob("*/predictions/*.npz")]
    before = {file: file.stat().st_mtime_ns for file in files}
    compare(tmp_path, shift=[NOISE, FOREIGN], method=["ce", "focal"])
    assert {file: file.stat().st_mtime_ns for file in files} == before
    for late, early in zip(find_runs(tmp_path), find_runs(folder), strict=True):
        assert late.scores().detection == early.scores().detection
        assert late.rows() != []


def test_what_was_predicted_stays_when_it_is_not_asked_for(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    compare(tmp_path, method=["ce", "focal"])
    assert "test-gaussian_noise_5" in find_runs(tmp_path)[0].scores().cards


def test_a_deleted_checkpoint_is_missed_in_a_sentence(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for file in tmp_path.glob("*/last.pt"):
        file.unlink()
    assert compare(tmp_path, shift=[NOISE], method=["ce", "focal"]).summary.is_whole
    failed = compare(tmp_path, shift=[{**NOISE, "severity": 3}], method=["ce", "focal"]).summary.failed
    assert all(
        "was deleted, so no additional test set can be predicted" in sentence for sentence in failed.values()
    )
    assert len(failed) == 2


def test_tables_and_report_show_severity_and_detection(finished):
    folder, outcome = finished
    [group] = group_runs(find_runs(folder))
    assert [one.name for one in shift_scores(group)] == [
        "ce",
        "focal",
        "ce + temperature",
        "focal + temperature",
    ]
    assert list(shift_scores(group)[0].curves["gaussian_noise"]) == [0, 1, 5]
    for style in ("text", "markdown", "latex"):
        text = format_shifts(outcome.groups, style)
        assert "FPR95" in text
        assert "severity" in text
    assert "| ECE % |" in (folder / "tiny.table.md").read_text()
    [report] = report_of_runs(find_runs(folder)).values()
    page = to_html(report)
    assert "Additional test sets" in page
    assert "Test rows against other" in page


def test_printed_areas_stand_beside_the_score_they_were_computed_from(finished, monkeypatch):
    _, outcome = finished
    asked = []

    def printed(spec, calibrator, columns, *, tuned, ood):
        asked.append((spec.method.name, calibrator, tuple(columns), ood))
        return {"ood_auroc": "94.32% (paper, table 9)"} if spec.method.name == "ce" else {}

    assert "table 9" not in format_shifts(outcome.groups, "markdown")
    monkeypatch.setattr("equipoise.experiments.results.shift.printed_for", printed)
    lines = format_shifts(outcome.groups, "markdown").splitlines()
    beside = [line for line in lines if "94.32% (paper, table 9)" in line]
    assert [line.split("|")[2].strip() for line in beside] == ["entropy", "entropy"]
    assert ("ce", "temperature", ("ood_auroc",), {"data": "digits", "noise": 1.0}) in asked


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"corruption": "gausian_noise"}, "did you mean 'gaussian_noise'"),
        ({"corruption": "contrast", "severity": 7}, "must be 1 to 5"),
        ({"severity": 3}, "either 'corruption' or 'data'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(entry, sentence):
    with pytest.raises(SpecError, match=sentence):
        ComparisonSpec.from_table({**TABLE, "shift": [entry]})


def test_any_dataset_may_have_a_long_tail(table):
    table["data"]["options"]["long_tail"] = 10
    spec = Spec.from_table(table)
    counts = load_data(spec.data).class_counts("train")
    assert counts.max() >= 8 * counts.min()
    with pytest.raises(SpecError, match="did you mean 'long_tail'"):
        Spec.from_table({**table, "data": {"name": "digits", "options": {"long_tial": 10}}})


def test_a_long_tail_is_another_run(table, tmp_path):
    plain = Spec.from_table(table).identity
    table["data"]["options"]["long_tail"] = 10
    table["recipe"]["epochs"] = 1
    assert run(Spec.from_table(table), tmp_path, **QUICK).name != plain


def test_detection_by_hand():
    known = Predictions(logits=[[4.0, 0.0], [3.0, 0.0], [2.0, 0.0], [0.2, 0.0]], labels=[0] * 4)
    foreign = Predictions(logits=[[2.5, 0.0], [0.1, 0.0]], labels=[0, 0])
    found = score_detection(known, foreign, n_resamples=50)
    for scores in found.values():  # one logit is 0, so all four scores order rows alike
        assert scores["ood_auroc"].value == pytest.approx(6 / 8)
        assert scores["ood_fpr95"].value == pytest.approx(1 / 2)
        assert scores["ood_aupr"].value == pytest.approx((1 + 1 + 3 / 4 + 4 / 5) / 4)
        assert all(one.low <= one.value <= one.high for one in scores.values())
    assert found["entropy"]["ood_auroc"].value == out_of_distribution_auroc(known, foreign, score="entropy")


def test_detection_needs_logits_for_two_of_its_scores():
    known = Predictions(probs=[[0.9, 0.1]], labels=[0])
    assert set(score_detection(known, known, n_resamples=5)) == {"confidence", "entropy"}
