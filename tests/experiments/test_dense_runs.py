"""Segmentation in runs: all pixels are counted, a stated sample is kept, and mIoU stands in the table."""

import csv

import numpy as np
import pytest

from equipoise.core.errors import DataError, SpecError
from equipoise.experiments import ComparisonSpec, find_runs, format_table, run_comparison
from equipoise.experiments.results.groups import group_runs
from equipoise.experiments.runs import segmentation as dense_runs
from equipoise.experiments.runs.json_files import read_json
from helpers.tiny_runs import QUICK, TABLE

DENSE = {
    "name": "dense",
    "data": {"name": "scenes", "options": {"n": 40, "tune": 8, "calib": 8, "test": 12}},
    "model": {"name": "small_fcn", "options": {"width": 8}},
    "method": ["ce", "mbls"],
    "recipe": {"name": "quick", "epochs": 1, "batch_size": 6},
}
N_TEST = 12 * 30 * 32


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dense")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense_runs, "N_PIXELS", 2000)
        return folder, run_comparison(ComparisonSpec.from_table(DENSE), folder, **QUICK, workers=1)


def test_rows_on_disk_are_a_stated_sample(finished):
    folder, outcome = finished
    assert outcome.summary.failed == {}
    run = find_runs(folder)[0]
    assert len(run.predictions("test")) == 2000
    assert run.record("predicted")["sample"]["test"] == pytest.approx(2000 / N_TEST)
    table = read_json(run.path / dense_runs.DENSE)["test"]
    assert (table["n_pixels"], table["n_images"]) == (2000, 12)


def test_scores_count_every_pixel(finished):
    folder, outcome = finished
    scores = find_runs(folder)[0].scores()
    cards = scores.cards
    assert cards["test"].n_samples == N_TEST
    assert (cards["tune"].n_samples, cards["test-sample"].n_samples) == (8 * 30 * 32, 2000)
    assert cards["test-pixels-boundary"].n_samples + cards["test-pixels-inside"].n_samples == N_TEST
    sample, whole = cards["test-sample"]["accuracy"], cards["test"]["accuracy"]
    assert sample.low <= whole.value <= sample.high
    [table] = outcome.tables
    row = next(row for row in table.rows if (row.method, row.calibrator) == ("ce", "identity"))
    assert row.cells["ece"].mean == cards["test"]["ece"].value
    assert "fitted on a random sample of at most 100,000 pixels" in format_table(table)


def test_methods_are_compared_on_all_pixels_with_the_same_resamples_of_images(finished):
    folder, outcome = finished
    one, other = (run.scores().draws for run in find_runs(folder))
    assert one.plan == other.plan
    assert (one.plan.n_rows, one.plan.n_units) == (N_TEST, 12)
    for run, draws in zip(find_runs(folder), (one, other), strict=True):
        card = run.scores().test
        for key in ("accuracy", "nll", "brier", "ece"):
            assert draws.values[key] == pytest.approx(card[key].value, rel=1e-9)
    [table] = outcome.tables
    row = next(row for row in table.rows if (row.method, row.calibrator) == ("mbls", "identity"))
    wanted = other.values["nll"] - one.values["nll"]
    assert abs(row.differences["nll"].difference) == pytest.approx(abs(wanted), rel=1e-6)


def test_bins_of_pixels_that_are_not_kept_cannot_be_changed_afterwards(finished):
    with pytest.raises(DataError, match="was scored by all pixels with 15 bins"):
        group_runs(find_runs(finished[0]), n_bins=25)


def test_other_bins_score_all_pixels_again(tmp_path):
    table = {**DENSE, "method": "ce", "calibrators": []}
    for closed in ("right", "left"):
        comparison = ComparisonSpec.from_table({**table, "closed": closed})
        outcome = run_comparison(comparison, tmp_path, **QUICK, workers=1)
        assert outcome.summary.failed == {}
        assert find_runs(tmp_path)[0].scores().test.closed == closed
    (tmp_path / find_runs(tmp_path)[0].name / "last.pt").unlink()
    outcome = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    [message] = outcome.summary.failed.values()
    assert "pixels cannot be scored with other settings" in message


def test_mean_iou_stands_in_table_and_results(finished):
    folder, outcome = finished
    [table] = outcome.tables
    assert "mean_iou" in table.metrics
    assert "mIoU %" in format_table(table)
    with (folder / "dense.results.csv").open(newline="") as stream:
        found = {row["metric"]: row for row in csv.DictReader(stream) if row["calibrator"] == "identity"}
    assert {"mean_iou", "iou_0", "iou_3"} <= set(found)
    assert (
        float(found["mean_iou"]["low"])
        <= float(found["mean_iou"]["value"])
        <= float(found["mean_iou"]["high"])
    )


def test_rows_of_two_splits_are_never_the_same(finished):
    run = find_runs(finished[0])[0]
    hashes = [set(run.predictions(split).rows.hashes.tolist()) for split in ("tune", "calib", "test")]
    assert not hashes[0] & hashes[1] | hashes[1] & hashes[2] | hashes[0] & hashes[2]


def test_errors_that_are_asked_for_are_columns(tmp_path):
    table = {**TABLE, "name": "tiny", "metrics": ["accuracy", "kde_ece", "sece"]}
    outcome = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    [found] = outcome.tables
    assert found.metrics == ("accuracy", "kde_ece", "sece")
    for row in found.rows:
        assert all(np.isfinite(cell.mean) and cell.high > cell.low for cell in row.cells.values())
    before = find_runs(tmp_path)[0].scores().extras
    plain = {key: value for key, value in table.items() if key != "metrics"}
    run_comparison(ComparisonSpec.from_table(plain), tmp_path, **QUICK, workers=1)
    assert find_runs(tmp_path)[0].scores().extras == before, "what was scored stays"


@pytest.mark.parametrize(
    ("metrics", "sentence"), [(["eec"], "did you mean 'ece'"), ([], "metrics: is an empty list")]
)
def test_unknown_metrics_are_reported(metrics, sentence):
    with pytest.raises(SpecError, match=sentence):
        ComparisonSpec.from_table({**TABLE, "metrics": metrics})


def test_intervals_of_pixels_resample_images(finished):
    run = find_runs(finished[0])[0]
    scores = run.scores()
    assert sorted(set(run.predictions("test").groups["image"].tolist())) == list(range(12))
    for name in ("test", "tune", "calib", "test-sample", "test-pixels-boundary", "test-pixels-inside"):
        assert scores.cards[name].clusters.column == "image", name
        assert scores.cards[name].clusters.n_clusters == {"tune": 8, "calib": 8}.get(name, 12)
    assert scores.draws.plan.n_units == 12
    # A sample of pixels says hardly less than all of them: their images are the same.
    sample, whole = (scores.cards[name]["accuracy"] for name in ("test-sample", "test"))
    assert sample.high - sample.low == pytest.approx(whole.high - whole.low, rel=0.5)


def test_scores_after_a_calibrator_count_every_pixel(finished):
    folder, outcome = finished
    run = find_runs(folder)[0]
    plain, found = run.scores(), run.scores("temperature")
    cards = found.cards
    assert (cards["test"].n_samples, cards["test-sample"].n_samples) == (N_TEST, 2000)
    assert cards["test-pixels-boundary"].n_samples + cards["test-pixels-inside"].n_samples == N_TEST
    # A temperature leaves the class of every pixel as it is.
    assert cards["test"]["accuracy"].value == plain.test["accuracy"].value
    assert found.extras["mean_iou"] == plain.extras["mean_iou"]
    assert cards["test"]["nll"].value != plain.test["nll"].value
    sample = cards["test-sample"]["nll"]
    assert sample.value != cards["test"]["nll"].value
    assert sample.low <= cards["test"]["nll"].value <= sample.high
    [table] = outcome.tables
    row = next(row for row in table.rows if (row.method, row.calibrator) == ("ce", "temperature"))
    assert row.cells["nll"].mean == cards["test"]["nll"].value


def test_calibrated_pixels_resample_images(finished):
    plain, found = (find_runs(finished[0])[0].scores(key) for key in ("identity", "temperature"))
    assert found.test.clusters.n_clusters == 12
    assert found.draws.plan == plain.draws.plan
    assert found.draws.values["nll"] == pytest.approx(found.test["nll"].value, rel=1e-9)


def test_another_calibrator_needs_the_weights(tmp_path):
    table = {**DENSE, "method": "ce", "calibrators": []}
    run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    more = ComparisonSpec.from_table({**table, "calibrators": ["vector"]})
    assert run_comparison(more, tmp_path, **QUICK, workers=1).summary.failed == {}
    assert find_runs(tmp_path)[0].scores("vector").test.n_samples == N_TEST
    (tmp_path / find_runs(tmp_path)[0].name / "last.pt").unlink()
    assert run_comparison(more, tmp_path, **QUICK, workers=1).summary.failed == {}
    another = ComparisonSpec.from_table({**table, "calibrators": ["platt"]})
    [message] = run_comparison(another, tmp_path, **QUICK, workers=1).summary.failed.values()
    assert "pixels cannot be scored after another calibrator" in message


def test_losses_for_segmentation_train_from_a_spec(tmp_path):
    table = {**DENSE, "name": "for-pixels", "method": ["nacl", "ce+l1_ace"]}
    outcome = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    assert outcome.summary.failed == {}
    losses = [float(run.history()[-1]["loss"]) for run in find_runs(tmp_path)]
    assert len(losses) == 2
    assert all(np.isfinite(losses))
