"""The final test of `auto`: what is chosen, on which rows, and how often wrongly."""

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core.errors import DataError, SplitError
from equipoise.evaluate.final_test import choose_and_test, choosing_nll, cross_fitted


def made(seed, n=600, k=4, noise=0.0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return Predictions(logits=logits + noise * rng.normal(size=logits.shape), labels=labels)


def noisy(rows, seed, noise=1.5):
    """Return the same rows with noise on the logits."""
    rng = np.random.default_rng([seed, 1])
    return rows.with_scores(logits=rows.logits + noise * rng.normal(size=rows.logits.shape))


def test_a_better_source_is_chosen_with_its_evidence():
    rows = made(0)
    found = choose_and_test({"ce": noisy(rows, 0), "mean": rows}, planned="mean")
    assert found.answer.source == "mean"
    assert not found.is_baseline
    test = found.test
    assert test.n_rows == len(rows)  # a planned source is tested on all rows
    low, high = test.interval
    assert 0 < low < test.gain < high
    assert test.p_value < 0.001
    assert test.gain == pytest.approx(test.baseline_nll - test.nll)
    assert "ce + temperature" in found.statement
    assert f"{test.gain:.4f}" in found.statement


def test_a_worse_source_is_not_chosen():
    rows = made(1)
    found = choose_and_test({"ce": rows, "bad": noisy(rows, 1)}, planned="bad")
    assert found.is_baseline
    assert found.answer.label == "ce + temperature"
    assert "not shown to be better" in found.statement


def test_a_chosen_source_is_tested_on_the_kept_half():
    rows = made(2)
    found = choose_and_test({"ce": noisy(rows, 2), "mean": rows}, calibrators=["temperature"])
    assert not found.is_baseline
    assert found.tests[0].n_rows == found.n_choosing == 300
    assert found.tests[0].needed == pytest.approx(0.05)
    # Kept rows decide nothing before the test: with other labels there, the same finalist comes out.
    half = np.isin(np.arange(600), choosing_rows(rows))
    labels = np.where(half, rows.labels, np.random.default_rng(0).integers(0, 4, 600))
    other = {
        name: Predictions(logits=one.logits, labels=labels)
        for name, one in {"ce": noisy(rows, 2), "mean": rows}.items()
    }
    again = choose_and_test(other, calibrators=["temperature"])
    assert [one.nll for one in again.candidates] == [one.nll for one in found.candidates]
    assert again.tests[0].finalist == found.tests[0].finalist
    assert again.is_baseline


def choosing_rows(rows):
    """Return the rows of the choosing half: those that change the NLL on it."""
    from equipoise.evaluate.final_test import _halves

    return np.flatnonzero(_halves(rows, 0)[0])


def test_the_ladder_reads_the_choosing_half_only():
    rows = made(3)
    labels = rows.labels.copy()
    kept = np.setdiff1d(np.arange(600), choosing_rows(rows))
    labels[kept] = 0
    assert choosing_nll(rows) == choosing_nll(Predictions(logits=rows.logits, labels=labels))


def test_a_richer_calibrator_is_found():
    rows = made(4, n=3000)
    shifted = rows.with_scores(logits=rows.logits + np.array([0.0, 1.5, 0.0, -1.5]))
    found = choose_and_test({"": shifted})
    assert found.answer.calibrator in ("vector", "sms", "svs", "platt", "beta")
    assert found.baseline.label == "temperature"
    scored = cross_fitted(shifted, found.calibrator)
    assert -np.log(scored.probs[np.arange(3000), scored.labels]).mean() < found.tests[0].baseline_nll


def test_rows_with_one_id_stay_together():
    rows = made(5, n=300)
    ids = np.arange(300) // 3
    named = Predictions(logits=rows.logits, labels=rows.labels, ids=ids)
    half = np.isin(np.arange(300), choosing_rows(named))
    assert all(len(set(half[ids == one])) == 1 for one in range(100))


def test_errors_have_remedies():
    rows = made(6)
    with pytest.raises(DataError, match=r"at least 60 held-out rows.*got 20\. Hold out more"):
        choose_and_test({"ce": rows.take(slice(0, 20))})
    with pytest.raises(SplitError, match="Choose on 'calib'"):
        choose_and_test({"ce": rows.with_split("test")})
    with pytest.raises(DataError, match="Add a column of labels"):
        choose_and_test({"ce": Predictions(logits=rows.logits)})
    with pytest.raises(DataError, match="equipoise calibrate"):
        choose_and_test({"ce": Predictions(confidence=np.linspace(0, 1, 100), correct=[0, 1] * 50)})
    with pytest.raises(DataError, match="same rows"):
        choose_and_test({"ce": rows, "other": made(7)})
    with pytest.raises(ValueError, match=r"between 0\.5 and 1"):
        choose_and_test({"ce": rows}, level=0.05)


@pytest.mark.simulation
def test_the_level_holds_when_nothing_is_better():
    """Sources of equal quality: a change is wrong, and occurs in at most 5% of the cases (3 standard errors)."""
    changed = []
    for seed in range(400):
        rows = made(seed, n=200)
        sources = {name: noisy(rows, 10 * seed + place) for place, name in enumerate(("ce", "a", "b"))}
        found = choose_and_test(sources, planned="a", calibrators=["temperature", "ets", "vector"])
        changed.append(not found.is_baseline)
    assert np.mean(changed) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
