import numpy as np
import pytest

from equipoise.core import Predictions
from equipoise.core.errors import DataError, SplitError
from equipoise.decisions import plan_labels, powered_rate


def draw(n, seed, power=1.0):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1, n)
    right = rng.random(n) < confidence**power
    return Predictions(
        predicted=np.ones(n, int),
        confidence=confidence,
        labels=right.astype(int),
        ids=np.arange(n) + 10**6 * seed,
    )


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_interval_covers_and_is_shorter(power):
    hits, ratios = 0, []
    truth = (np.linspace(0, 1, 200_001)[1:-1] ** (3 + power) * 4).mean()
    for seed in range(200):
        found = powered_rate(draw(100, seed, power), draw(2000, 1000 + seed, power))
        hits += found.low <= truth <= found.high
        ratios.append(found.width_ratio)
    assert hits >= 180
    assert np.mean(ratios) < 0.98


def test_useless_confidences_do_no_harm():
    rng = np.random.default_rng(0)
    rows = Predictions(
        predicted=np.ones(5000, int), confidence=rng.random(5000), labels=(rng.random(5000) < 0.8) * 1
    )
    found = powered_rate(rows.take(slice(0, 2000)), rows.take(slice(2000, 5000)))
    assert found.weight < 0.1
    assert found.width_ratio == pytest.approx(1, abs=0.05)


def test_edges_of_powered_rates():
    with pytest.raises(DataError, match="at least 10 labelled rows"):
        powered_rate(draw(5, 0), draw(50, 1))
    with pytest.raises(SplitError, match="50 of 50 labelled rows are among the unlabelled rows"):
        powered_rate(draw(50, 0), draw(50, 0))
    always = Predictions(predicted=np.ones(20, int), confidence=np.ones(20), labels=np.ones(20, int))
    found = powered_rate(always, draw(50, 1))
    assert found.value == 1
    assert found.low < 0.9
    assert found.high == pytest.approx(1)


def test_plan_gives_intervals_of_the_requested_width():
    rows = draw(50_000, 3)
    plan = plan_labels(rows, width=0.04)
    assert len(plan.rows) < plan.n_random
    assert plan.weight.sum() == pytest.approx(50_000)
    assert (np.diff(plan.rows) > 0).all()
    same = plan_labels(rows, width=0.04)
    assert (same.rows == plan.rows).all()
    estimates = []
    for seed in range(60):
        one = plan_labels(rows, width=0.04, seed=seed)
        estimates.append(np.average(rows.correct[one.rows], weights=one.weight))
    # A 95% interval is four standard deviations wide.
    assert 4 * np.std(estimates) < 0.045
    assert np.mean(estimates) == pytest.approx(rows.correct.mean(), abs=0.004)
    with pytest.raises(DataError, match="Ask for a wider interval"):
        plan_labels(draw(100, 1), width=0.01)
