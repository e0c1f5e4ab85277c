"""Every promise of a decision, simulated where the truth is known: 200 samples each day, more with `simulation`.

Scores are uniform. The confidence of a row is its score, and its error rate is a known function of the score.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.core import Predictions
from equipoise.decisions import (
    AcceptRule,
    PredictionSets,
    certify_threshold,
    check_decision,
    least_cost_actions,
)
from equipoise.decisions import certify as certify_module
from equipoise.decisions.threshold_tests import choose_ranks, last_certified, plan_tests

DAILY, LONG = 200, 3000
repeats_daily_and_long = pytest.mark.parametrize(
    "repeats", [DAILY, pytest.param(LONG, marks=pytest.mark.simulation)]
)
GRID = np.linspace(0, 1, 20001)
LIMIT = 0.1

#: Error rate by depth: the share of the rows with higher scores.
CURVES = {
    "steep": lambda u: 0.01 + 0.6 / (1 + np.exp(-(u - 0.6) / 0.04)),
    "flat": lambda u: LIMIT * (0.2 + 5.2 * u),
    "all": lambda u: LIMIT * (0.5 + u),
    "none": lambda u: np.full_like(u, LIMIT * 1.000001),
    "hole": lambda u: LIMIT * np.where(u < 0.02, 4.0, np.where(u < 0.3, 0.25, 3.0)),
    "waves": lambda u: LIMIT * (1.02 + 0.9 * np.sin(25 * u)),
}


@pytest.fixture(autouse=True)
def _without_best_bound(monkeypatch):
    """Leave out the search for the best bound of samples without a threshold, which takes most of the time."""
    monkeypatch.setattr(certify_module, "_best_bound", lambda *_: (None, None))


def most(repeats, risk):
    """Return the largest number of broken promises that chance explains (one in a thousand tests fails)."""
    return binom.ppf(0.999, repeats, risk)


def true_error(curve, threshold):
    """Return the error among scores of at least a threshold."""
    depth = np.clip(1 - np.asarray(threshold, float), 1e-9, 1)
    rate = curve(GRID)
    total = np.concatenate([[0], np.cumsum((rate[1:] + rate[:-1]) / 2)]) * GRID[1]
    return np.interp(depth, GRID, total) / depth


def sample(rng, n, curve, **more):
    score = rng.random(n)
    right = rng.random(n) >= np.clip(curve(1 - score), 0, 1)
    return Predictions(predicted=np.ones(n, int), confidence=score, labels=right.astype(int), **more)


@pytest.mark.parametrize("risk", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("n", [60, 100, 200, 500])
@pytest.mark.parametrize("repeats", [DAILY, pytest.param(10_000, marks=pytest.mark.simulation)])
def test_thresholds_of_known_curves(n, risk, repeats, record_property):
    rng = np.random.default_rng([n, round(100 * risk)])
    plan = plan_tests(choose_ranks(n, LIMIT, risk), n, LIMIT, risk)
    for name, curve in CURVES.items():
        depth = np.sort(rng.random((repeats, n)), axis=1)
        counts = np.cumsum(rng.random(depth.shape) < curve(depth), axis=1)[:, plan.ranks - 1]
        best = last_certified(counts, plan)
        found = best >= 0
        if found.any():
            at = depth[np.flatnonzero(found), plan.ranks[best[found]] - 1]
            broken = (true_error(curve, 1 - at) > LIMIT).sum()
            record_property(name, float(broken / repeats))
            assert broken <= most(repeats, risk)


@repeats_daily_and_long
def test_every_group_keeps_the_limit(repeats, record_property):
    # One group of four is fully certified and passes its risk on; two are at the limit.
    rng, risk, n = np.random.default_rng(1), 0.1, 150
    curves = {
        "a": lambda u: np.full_like(u, 0.01),
        "b": CURVES["none"],
        "c": CURVES["none"],
        "d": CURVES["flat"],
    }
    broken = passed_on = 0
    for _ in range(repeats):
        parts = [sample(rng, n, curve) for curve in curves.values()]
        rows = Predictions(
            predicted=np.ones(4 * n, int),
            confidence=np.concatenate([one.confidence for one in parts]),
            labels=np.concatenate([one.labels for one in parts]),
            groups={"site": np.repeat(list(curves), n)},
        )
        found = certify_threshold(rows, max_error=LIMIT, confidence=1 - risk, by="site").certificate.groups
        passed_on += found["a"].coverage == 1
        broken += any(
            one.certified and true_error(curves[name], one.threshold) > LIMIT for name, one in found.items()
        )
    record_property("broken", float(broken / repeats))
    assert broken <= most(repeats, risk)
    assert broken > 0.2 * risk * repeats  # not valid only because nothing is certified
    assert passed_on > 0.5 * repeats


@repeats_daily_and_long
def test_one_threshold_for_all_groups_keeps_the_limit_in_each(repeats, record_property):
    rng, risk, n = np.random.default_rng(2), 0.1, 150
    curves = {"a": lambda u: np.full_like(u, 0.02), "b": CURVES["none"]}
    broken = certified = 0
    for _ in range(repeats):
        parts = [sample(rng, n, curve) for curve in curves.values()]
        rows = Predictions(
            predicted=np.ones(2 * n, int),
            confidence=np.concatenate([one.confidence for one in parts]),
            labels=np.concatenate([one.labels for one in parts]),
            groups={"site": np.repeat(list(curves), n)},
        )
        one = certify_threshold(
            rows, max_error=LIMIT, confidence=1 - risk, by="site", shared=True
        ).certificate
        certified += one.certified
        broken += one.certified and any(true_error(curve, one.threshold) > LIMIT for curve in curves.values())
    record_property("broken", float(broken / repeats))
    assert broken <= most(repeats, risk)
    assert certified > 0


@repeats_daily_and_long
@pytest.mark.parametrize("coverage", [0.3, 0.8])
def test_least_error_at_a_coverage_is_a_bound(coverage, repeats, record_property):
    rng, risk, curve = np.random.default_rng(3), 0.1, CURVES["flat"]
    broken, bounds = 0, []
    for _ in range(repeats):
        one = certify_threshold(
            sample(rng, 200, curve), min_coverage=coverage, confidence=1 - risk
        ).certificate
        bounds.append(one.error_bound)
        broken += true_error(curve, one.threshold) > one.error_bound
    record_property("broken", float(broken / repeats))
    assert broken <= most(repeats, risk)
    assert broken > 0.3 * risk * repeats
    assert np.mean(bounds) < true_error(curve, 1 - coverage) + 0.1


@repeats_daily_and_long
@pytest.mark.parametrize("coverage", [None, 0.5])
def test_weighted_error_by_betting(coverage, repeats, record_property):
    # Heavy rows are wrong more often, so that the weighted error is above the unweighted one.
    rng, risk, n = np.random.default_rng(4), 0.1, 300
    broken = certified = 0
    for _ in range(repeats):
        score, heavy = rng.random(n), rng.random(n) < 0.5
        wrong = rng.random(n) < np.where(heavy, 0.12, 0.07)
        rows = Predictions(
            predicted=np.ones(n, int),
            confidence=score,
            labels=(~wrong).astype(int),
            weights=np.where(heavy, 1.5, 1.0),
        )
        asked = {"max_error": 0.0999} if coverage is None else {"min_coverage": coverage}
        one = certify_threshold(rows, confidence=1 - risk, **asked).certificate
        certified += one.certified
        # The weighted error is (1.5 * 0.12 + 0.07) / 2.5 = 10% at every threshold.
        broken += one.certified and one.error_bound < 0.1
    record_property("broken", float(broken / repeats))
    assert broken <= most(repeats, risk)
    assert certified > (0 if coverage is None else 0.9 * repeats)


def sorted_by_class(rng, n):
    """Return weighted rows of a file that is sorted by class, whose weighted error is 10% at every threshold."""
    label = np.sort(rng.integers(0, 2, n))
    wrong = rng.random(n) < np.where(label == 0, 0.02, 0.18)
    return Predictions(
        predicted=np.where(wrong, 1 - label, label),
        confidence=rng.uniform(0.6, 0.99, n),
        labels=label,
        weights=rng.uniform(0.5, 1.5, n),
    )


@repeats_daily_and_long
@pytest.mark.parametrize("coverage", [None, 0.5])
def test_weighted_promise_of_a_file_that_is_sorted_by_class(coverage, repeats, record_property):
    rng, risk, n = np.random.default_rng(14), 0.1, 400
    asked = {"max_error": 0.0999} if coverage is None else {"min_coverage": coverage}
    broken = 0
    for _ in range(repeats):
        one = certify_threshold(sorted_by_class(rng, n), confidence=1 - risk, **asked).certificate
        broken += one.certified and one.error_bound < 0.1
    record_property("broken", float(broken / repeats))
    assert broken <= most(repeats, risk)


@repeats_daily_and_long
def test_a_weighted_check_has_its_level_and_sees_a_broken_promise(repeats, record_property):
    rng, level = np.random.default_rng(15), 0.1
    free = np.random.default_rng(0)
    certified = certify_threshold(
        Predictions(confidence=free.uniform(0.6, 0.99, 4000), correct=free.random(4000) > 0.05), max_error=0.1
    )
    assert certified.certificate.coverage > 0.99
    false, found, missed = 0, 0, 0
    for _ in range(repeats):
        rows = sorted_by_class(rng, 400)
        strict = AcceptRule(certificate=replace(certified.certificate, max_error=0.05), score="confidence")
        checked = certified.check(rows, level=level)
        false += not checked.kept
        missed += not checked.error_low <= 0.1 <= checked.error_high
        found += not strict.check(rows, level=level).kept
    record_property("false", float(false / repeats))
    record_property("found", float(found / repeats))
    record_property("missed", float(missed / repeats))
    assert missed <= most(repeats, 0.05)
    assert false <= most(repeats, level)
    assert found > 0.5 * repeats


@pytest.mark.parametrize(
    "repeats",
    [DAILY, pytest.param(LONG, marks=pytest.mark.simulation)],
)
def test_intervals_of_costs_cover_the_true_costs(repeats, record_property):
    # Probabilities are too high by a tenth of the distance to 1; costs follow from the true error.
    rng, n, level = np.random.default_rng(5), 400, 0.95
    shown = np.linspace(0.5, 1, 200_001)
    accept = (1 - shown) * 10 < 1
    expected = np.where(accept, (1 - shown) * 10, 1).mean()
    realized = np.where(accept, (1 - shown) * 1.1 * 10, 1).mean()
    missed = np.zeros(3, int)
    for _ in range(repeats):
        confidence = rng.uniform(0.5, 1, n)
        right = rng.random(n) >= 1.1 * (1 - confidence)
        rows = Predictions(predicted=np.ones(n, int), confidence=confidence, labels=right.astype(int))
        one = least_cost_actions(rows, wrong=10, abstain=1).summary(level=level)
        ends = (
            (one.expected_low, expected, one.expected_high),
            (one.realized_low, realized, one.realized_high),
            (one.gap_low, realized - expected, one.gap_high),
        )
        missed += [not low <= true <= high for low, true, high in ends]
    record_property("missed", (missed / repeats).tolist())
    # Intervals of skewed means are approximate: half a point is added to the risk of 5%.
    assert missed.max() <= most(repeats, 0.055)


def sets_sample(rng, n):
    """Return rows of three classes and two groups of unequal frequency."""
    logits = 2 * rng.normal(size=(n, 3)) + [1.0, 0.0, -0.5]
    labels = (logits + rng.gumbel(size=(n, 3))).argmax(1)
    site = np.where(rng.random(n) < 0.2, "small", "large")
    return Predictions(logits=logits, labels=labels, ids=rng.integers(0, 2**62, n), groups={"site": site})


conditions = pytest.mark.parametrize(
    ("conditional", "by"), [(None, None), ("class", None), ("group", "site")]
)


@repeats_daily_and_long
@conditions
def test_checks_of_sets_keep_their_level(repeats, conditional, by, record_property):
    # Many test rows and few calibration rows: given the calibration set, the coverage is often below the requested one.
    rng = np.random.default_rng(6)
    broken = 0
    for _ in range(repeats):
        sets = PredictionSets("lac", coverage=0.9, conditional=conditional, by=by).fit(sets_sample(rng, 300))
        broken += not check_decision(sets, sets_sample(rng, 3000)).kept
    record_property("broken", float(broken / repeats))
    assert broken <= most(repeats, 0.05)


@repeats_daily_and_long
@conditions
def test_expected_coverage_contains_the_coverage(repeats, conditional, by, record_property):
    rng = np.random.default_rng(7)
    many = sets_sample(rng, 50_000)
    missed = 0
    for _ in range(repeats):
        sets = PredictionSets("lac", coverage=0.9, conditional=conditional, by=by).fit(sets_sample(rng, 300))
        low, high = sets.expected_coverage()
        missed += not low <= sets(many).covered.mean() <= high
    record_property("missed", float(missed / repeats))
    assert binom.ppf(0.001, repeats, 0.04) <= missed <= most(repeats, 0.055)
