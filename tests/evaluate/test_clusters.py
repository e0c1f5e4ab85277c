"""Intervals, tests and slices of dependent rows keep their level, and are passed on wherever rows are judged."""

import numpy as np
import pytest

from equipoise import Predictions, compare, compare_seeds, score
from equipoise.core.errors import DataError
from equipoise.evaluate import Audit, AuditState, Scorecard, audit, score_extra
from equipoise.metrics import CalibrationState
from equipoise.report import report_of
from helpers.cluster_trials import AUTHORS, IMAGES, Design, draw_models, simulate

DIRECT = ("accuracy", "nll", "brier", "ece")


@pytest.fixture(scope="module")
def models():
    return draw_models(np.random.default_rng(1), IMAGES)


def _off(share, expected, n_sets):
    """Return by how many standard errors of the simulation a share is above what is expected."""
    return (share - expected) / np.sqrt(expected * (1 - expected) / n_sets)


@pytest.mark.parametrize("design", [IMAGES, AUTHORS], ids=["images", "authors"])
def test_intervals_and_tests_keep_their_level(design):
    n_sets = 40
    found = simulate(design, n_sets=n_sets, n_resamples=200)
    for key in DIRECT:
        assert _off(1 - found.coverage[key], 0.05, n_sets) < 3, key
        assert _off(found.compare[key], 0.05, n_sets) < 3, key
    assert _off(found.consistency, 0.05, n_sets) < 3
    assert _off(found.slices, 0.05, n_sets) < 3


def test_without_clusters_they_do_not():
    found = simulate(IMAGES, n_sets=40, n_resamples=200, clustered=False)
    assert max(found.coverage[key] for key in DIRECT) < 0.6
    assert min(found.consistency, found.slices, found.compare["accuracy"]) > 0.3


@pytest.mark.simulation
@pytest.mark.parametrize("sharpness", [1.0, 2.0])
@pytest.mark.parametrize("design", [IMAGES, AUTHORS], ids=["images", "authors"])
def test_level_and_coverage_in_many_data_sets(design, sharpness):
    n_sets = 400
    found = simulate(design, sharpness=sharpness, n_sets=n_sets)
    error = 2 * np.sqrt(0.05 * 0.95 / n_sets)
    for key in DIRECT:
        assert 0.92 - error <= found.coverage[key] <= 0.98 + error, key
        assert found.compare[key] <= 0.07 + error, key
    for key, share in found.coverage.items():
        assert share >= 0.92 - error, key
    if sharpness == 1:
        assert found.consistency <= 0.07 + error
        assert found.slices <= 0.07 + error
    else:
        assert found.consistency > 0.95


def test_a_scorecard_says_which_clusters_were_resampled(models):
    card = score(models[0], clusters="cluster", n_resamples=100)
    found = card.clusters
    assert (found.column, found.n_clusters, found.n_effective) == ("cluster", 20, 20)
    assert found.design_effect > 10
    line = (
        f"Intervals resample 20 clusters (cluster), not 8,000 rows: design effect {found.design_effect:.0f}."
    )
    assert line in str(card)
    assert line in card._repr_html_()
    again = Scorecard.from_dict(card.to_dict())
    assert again.clusters == found
    assert score(models[0], n_resamples=100).clusters is None


def test_values_are_those_of_all_rows(models):
    clustered, plain = (score(models[0], clusters=c, n_resamples=100) for c in ("cluster", None))
    for key in plain:
        assert clustered[key].value == plain[key].value
        low, value, high = clustered[key].low, clustered[key].value, clustered[key].high
        assert low <= value <= high


def test_an_audit_passes_clusters_on(models):
    rows = models[0]
    found = audit(rows, clusters="cluster", n_resamples=100)
    plain = audit(rows, n_resamples=100)
    assert found.card["ece"] == score(rows, clusters="cluster", n_resamples=100)["ece"]
    assert found.groups == {}
    assert list(plain.groups) == ["cluster"]
    assert list(audit(rows, by=["cluster"], clusters="cluster", n_resamples=100).groups) == ["cluster"]
    for wide, narrow in zip(sorted(found.classes), sorted(plain.classes), strict=True):
        assert wide.gap == narrow.gap
        assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
        assert wide.p_value >= narrow.p_value
    assert "Intervals resample 20 clusters (cluster)" in str(found)
    assert Audit.from_dict(found.to_dict()).card.clusters == found.card.clusters


def test_chunks_are_held_for_clusters(models):
    chunks = (models[0].take(slice(start, start + 1000)) for start in range(0, 8000, 1000))
    found = audit(chunks, clusters="cluster", n_resamples=100)
    assert found.card.to_dict() == audit(models[0], clusters="cluster", n_resamples=100).card.to_dict()


def test_states_keep_no_clusters(models):
    with pytest.raises(DataError, match=r"score: a state keeps no clusters"):
        score(CalibrationState.of(models[0]), clusters="cluster")
    with pytest.raises(DataError, match=r"audit: a state keeps no clusters"):
        audit(AuditState.of(models[0]), clusters="cluster")


def test_models_are_compared_by_clusters(models):
    first, second = models
    clustered, plain = (compare(first, second, clusters=c, n_resamples=300) for c in ("cluster", None))
    for row, narrow in zip(clustered, plain, strict=True):
        assert row.difference == pytest.approx(narrow.difference)
        assert row.error.rows_df == 19
    assert clustered.of("accuracy").error.rows > 3 * plain.of("accuracy").error.rows
    array = compare(first, second, clusters=first.groups["cluster"], n_resamples=300)
    assert array == clustered


def test_methods_are_compared_by_clusters_over_seeds():
    rng = np.random.default_rng(3)
    design = Design("", (50,) * 12)
    first, second = draw_models(rng, design)
    seeds = {"a": [first, first], "b": [second, second]}
    found = compare_seeds(seeds, clusters="cluster", n_resamples=100)
    plain = compare_seeds(seeds, n_resamples=100)
    assert found.table.clusters.column == "cluster"
    assert "Intervals resample 12 clusters (cluster), not 600 rows" in str(found)
    assert "clusters" not in str(plain)
    wide, narrow = (part.table.rows[1].differences["accuracy"].error for part in (found, plain))
    assert wide.rows_df == 11
    assert wide.rows > narrow.rows
    calibrated = compare_seeds(seeds, calib=_other_rows(design), clusters="cluster", n_resamples=100)
    assert all(row.differences["nll"].error.rows_df == 11 for row in calibrated.table.rows if row.differences)


def _other_rows(design):
    first, second = draw_models(np.random.default_rng(4), design)
    return {"a": [first, first], "b": [second, second]}


def test_slow_errors_leave_out_clusters_as_wholes(models):
    rows = models[0].take(slice(0, 8000, 8))
    clustered, plain = (score_extra(rows, _accuracy, clusters=c) for c in ("cluster", None))
    assert clustered.value == plain.value
    assert clustered.high - clustered.low > 1.5 * (plain.high - plain.low)


def _accuracy(rows):
    return float(rows.correct.mean())


def test_a_report_says_which_clusters_were_resampled(models):
    report = report_of({"a": models[0], "b": models[1]}, clusters="cluster", n_resamples=100)
    facts = dict(report.provenance.facts)
    assert facts["clusters"].startswith("Intervals resample 20 clusters (cluster), not 8,000 rows")
    assert report.methods[1].versus.of("accuracy").error.rows_df == 19
    assert report.methods[0].first.clusters.n_clusters == 20


def test_a_report_calibrates_with_clusters(models):
    calib = Predictions(probs=models[1].probs, labels=models[1].labels, split="calib")
    report = report_of(
        models[0].with_split("test"),
        calib=calib,
        candidates=["temperature"],
        clusters="cluster",
        n_resamples=50,
    )
    [after] = report.methods[0].calibrated
    assert after.scores[0].clusters.n_clusters == 20
    assert after.versus.of("nll").error.rows_df == 19
