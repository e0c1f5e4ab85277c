"""After a change: the band and the group that changed, and what a refit would gain."""

import numpy as np
import pytest

from equipoise.calibrators import PlattScaling
from equipoise.core import Predictions
from equipoise.evaluate import AuditState, find_trend
from equipoise.evaluate.refit import changed_parts, refit_gain
from equipoise.metrics.state import CalibrationState


def day(seed, *, n=600, shift=0.0, only=None, above=0.0):
    rng = np.random.default_rng(seed)
    claimed = rng.uniform(0.55, 0.99, n)
    site = np.array(["north", "south", "west"])[rng.integers(0, 3, n)]
    moved = (claimed > above) & ((site == only) if only else True)
    right = rng.random(n) < claimed - shift * moved
    return Predictions(
        confidence=claimed, correct=right, groups={"site": site}, ids=np.arange(n) + 10**6 * seed
    )


def series(*days):
    return {f"day{number}": AuditState.of(one) for number, one in enumerate(days, 1)}


def parts_of(states, place):
    found = list(states.values())
    return changed_parts([one.calibration for one in found], [one.groups for one in found], place)


def test_band_and_group_of_a_change_are_named():
    quiet = [day(seed) for seed in range(8)]
    states = series(*quiet, *(day(20 + seed, shift=0.5, only="south", above=0.7) for seed in range(5)))
    trend = find_trend(states, n_resamples=200)
    assert trend.changes[0].first == "day9"
    named = {(part.column, part.name) for part in trend.parts}
    assert ("site", "south") in named
    assert not named & {("site", "north"), ("site", "west"), ("confidence", "0.5 to 0.7")}
    text = str(trend)
    assert "Most changed: site south: " in text
    assert (
        "Refit the calibrator: fitted on day9 to day12 (2,400 rows), the log-loss of the confidence on day13 goes from"
        in text
    )
    assert trend.to_dict()["refit"]["is_worthwhile"] is True


def test_equal_states_name_a_part_at_most_at_the_level():
    hits = 0
    for seed in range(120):
        states = series(*(day(1000 * seed + number, n=300) for number in range(6)))
        hits += bool(parts_of(states, (3, 6)))
    assert hits <= 14  # 5% of 120; more than 14 has probability 0.001


def test_gain_is_that_of_a_logistic_map_of_the_rows():
    days = [day(seed, shift=0.15) for seed in range(3)]
    states = [AuditState.of(one).calibration for one in days]
    found = refit_gain(states, ["a", "b", "c"], 0)
    fit = Predictions(
        confidence=np.concatenate([one.confidence for one in days[:2]]),
        correct=np.concatenate([one.correct for one in days[:2]]),
    )
    fresh = PlattScaling().fit(fit)(Predictions(confidence=days[2].confidence, correct=days[2].correct))

    def loss(rows):
        p = rows.confidence.astype(float)
        return -np.log(np.where(rows.correct, p, 1 - p)).mean()

    assert found.loss == pytest.approx(loss(days[2]), abs=2e-3)
    assert found.loss_after == pytest.approx(loss(fresh), abs=5e-3)
    assert found.is_worthwhile
    assert found.ece_after < found.ece
    assert (found.first, found.last, found.judged, found.n_fitted) == ("a", "b", "c", 1200)


def test_refits_without_a_reason_are_not_advised():
    advised = 0
    for seed in range(60):
        states = [AuditState.of(day(500 * seed + number)).calibration for number in range(4)]
        advised += refit_gain(states, list("abcd"), 0).is_worthwhile
    assert advised <= 6


def refit_coverage(n_fitted, n_judged, shift, power, repeats):
    """Return how often the interval has the gain on a very large state, and refits are advised that gain nothing."""

    def draw(n):
        claimed = rng.uniform(0.5, 0.99, n) ** power
        state = CalibrationState(2)
        state.update(probs=claimed, labels=(rng.random(n) < claimed - shift).astype(int))
        return state

    rng = np.random.default_rng([n_fitted, n_judged])
    many, hits, wrong_advice = draw(400_000), 0, 0
    for _ in range(repeats):
        fit = draw(n_fitted)
        gain = refit_gain([fit, many], ["fit", "judged"], 0).gain
        found = refit_gain([fit, draw(n_judged)], ["fit", "judged"], 0)
        hits += found.low <= gain <= found.high
        wrong_advice += found.is_worthwhile and gain <= 0
    return hits / repeats, wrong_advice / repeats


@pytest.mark.parametrize(("shift", "power"), [(0.0, 0.2), (0.1, 1.0)])
def test_interval_of_the_gain_covers(shift, power):
    # With the power 0.2, confidences are about 0.95, and few of 100 rows are wrong.
    covered, wrong_advice = refit_coverage(500, 100, shift, power, 150)
    assert covered > 0.9
    assert wrong_advice < 0.07


@pytest.mark.simulation
@pytest.mark.parametrize(("shift", "power"), [(0.0, 1.0), (0.03, 1.0), (0.1, 1.0), (0.0, 0.2)])
@pytest.mark.parametrize("n_judged", [100, 300, 1000])
def test_level_of_the_gain(n_judged, shift, power):
    covered, wrong_advice = refit_coverage(2000, n_judged, shift, power, 1000)
    assert 0.93 < covered < 0.995
    assert wrong_advice < 0.03


def test_a_refit_needs_rows_since_the_change():
    states = series(*(day(seed) for seed in range(6)), day(50, shift=0.3))
    trend = find_trend(states, n_resamples=200)
    assert trend.changes[0].first == "day7"
    assert trend.refit is None
    assert "cannot be judged yet" in str(trend)
    few = [AuditState.of(day(seed, n=40)).calibration for seed in range(3)]
    assert refit_gain(few, list("abc"), 0) is None
