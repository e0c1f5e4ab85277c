import numpy as np
import pytest

from equipoise import Predictions, compare
from equipoise.core.errors import SplitError
from equipoise.metrics import CalibrationState
from equipoise.metrics.facts import FACTS
from equipoise.metrics.influence import CORP_KEYS, influence_table
from equipoise.metrics.inputs import top_label
from equipoise.metrics.values import state_metrics
from helpers.metric_samples import draw, softmax


def pair(n=1500, k=3, *, seed=0, noise=0.3):
    """A model that is too sure, and one nearly calibrated that makes slightly other mistakes."""
    probs, labels = draw(n, k, seed=seed, sharpness=1.8)
    rng = np.random.default_rng(seed + 1)
    other = softmax(np.log(probs) / 1.8 + noise * rng.normal(size=probs.shape))
    first = Predictions(probs=probs, labels=labels)
    return first, first.with_scores(probs=other)


def values_of(part):
    acting = influence_table(top_label(part, None, where="test").cells).values
    return {**state_metrics(CalibrationState.of(part)), **acting}


def test_values_are_those_of_each_model():
    first, second = pair()
    for row in compare(first, second, n_resamples=20):
        before, after = (values_of(part)[row.metric] for part in (first, second))
        assert (row.before, row.after) == (pytest.approx(before, abs=1e-9), pytest.approx(after, abs=1e-9))
        assert row.difference == pytest.approx(after - before, abs=1e-9)
        assert row.low <= row.difference <= row.high


def test_a_model_ties_with_itself():
    first, _ = pair()
    for row in compare(first, first, n_resamples=50):
        assert (row.difference, row.low, row.high) == (0.0, pytest.approx(0.0), pytest.approx(0.0))
        assert row.p_value == 1.0
        assert row.verdict == "tie"


def test_swapping_flips_the_sign():
    first, second = pair()
    for there, back in zip(compare(first, second), compare(second, first), strict=True):
        assert back.difference == -there.difference
        width = there.high - there.low
        assert back.low == pytest.approx(-there.high, abs=0.15 * width)
        assert back.high == pytest.approx(-there.low, abs=0.15 * width)
        assert {there.verdict, back.verdict} in ({"tie"}, {"worse", "better"})


def test_the_better_calibrated_model_wins_where_it_is_better():
    found = {row.metric: row for row in compare(*pair())}
    for key in ("ece", "nll", "ece_over", "confidence_gap", "rms_ce"):
        assert found[key].verdict == "better", key
        assert found[key].p_value < 0.01, key
        if FACTS[key].better == "lower":
            assert found[key].high < 0


@pytest.mark.parametrize("k", [2, 10])
def test_interval_agrees_with_a_bootstrap_of_the_rows(k):
    first, second = pair(1000, k)
    rng = np.random.default_rng(0)
    found = {row.metric: row for row in compare(first, second, n_resamples=2000)}
    draws = {key: [] for key in found}
    for _ in range(200):
        index = rng.integers(0, 1000, 1000)
        one, two = (values_of(part.take(index)) for part in (first, second))
        for key, values in draws.items():
            values.append(two[key] - one[key])
    # The error of a coverage is taken from its interval, and a bootstrap makes isotonic fits too good.
    for key in set(found) - {"under_confidence", "mce", "coverage_at_5", *CORP_KEYS}:
        low, high = np.quantile(draws[key], [0.025, 0.975])
        ratio = (found[key].high - found[key].low) / (high - low)
        assert 0.75 < ratio < 1.35, (key, ratio)


def test_p_values_are_even_between_equals():
    found = []
    for seed in range(60):
        probs, labels = draw(300, 3, seed=seed)
        rng = np.random.default_rng(1000 + seed)
        models = [softmax(np.log(probs) + 0.4 * rng.normal(size=probs.shape)) for _ in range(2)]
        first, second = (Predictions(probs=model, labels=labels) for model in models)
        found.append(
            [row.p_value for row in compare(first, second, metrics=["nll", "accuracy"], n_resamples=200)]
        )
    nll, accuracy = np.array(found).T
    assert 0.36 < nll.mean() < 0.64
    assert np.count_nonzero(nll < 0.05) <= 9
    assert np.count_nonzero(accuracy < 0.05) <= 9


def test_pairing_sees_what_two_separate_intervals_cannot():
    first, _ = pair()
    slightly = first.with_scores(probs=softmax(0.95 * np.log(first.probs)))
    row = compare(first, slightly, metrics=["nll"])[0]
    assert row.verdict == "better"


def test_top1_compares_what_it_can():
    first, second = pair()
    top = Predictions(
        predicted=first.predicted, confidence=first.confidence, labels=first.labels, n_classes=3
    )
    names = {row.metric for row in compare(top, second, n_resamples=20)}
    assert "ece" in names
    assert names.isdisjoint({"nll", "brier"})
    with pytest.raises(ValueError, match="no metric to compare"):
        compare(top, second, metrics=["nll"])


def test_text_is_a_table():
    lines = str(compare(*pair(), metrics=["ece", "nll"], n_resamples=50)).splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("ECE")
    assert lines[2].endswith(("better", "tie"))


def test_the_rows_must_be_the_same():
    first, second = pair(100)
    with pytest.raises(ValueError, match="same rows in the same order"):
        compare(first, second.take(slice(0, 99)))
    with pytest.raises(ValueError, match="same rows in the same order"):
        compare(first, second.take(np.arange(100)[::-1]))
    one = Predictions(probs=[0.9, 0.8], labels=[1, 1], ids=[1, 2])
    two = Predictions(probs=[0.9, 0.8], labels=[1, 1], ids=[2, 3])
    with pytest.raises(ValueError, match="must have the same ids"):
        compare(one, two)


def test_the_weights_must_be_the_same():
    first, second = pair(100)
    with pytest.raises(ValueError, match="same weights"):
        compare(first, second.with_weights(np.arange(1, 101)))


def test_leaks_and_odd_arguments_are_refused():
    first, second = pair(200)
    with pytest.raises(SplitError, match="score on 'test'"):
        compare(first, second.with_scores(probs=second.probs, fitted_on=first.rows))
    with pytest.raises(ValueError, match="did you mean 'ece'"):
        compare(first, second, metrics=["ecee"])
    with pytest.raises(ValueError, match="1000 is usual"):
        compare(first, second, n_resamples=0)
