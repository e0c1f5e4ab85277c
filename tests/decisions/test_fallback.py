import numpy as np
import pytest

from equipoise.decisions.fallback import last_by_fallback, start_ranks


def slow_fallback(p, shares, risk):
    best, carried = -1, 0.0
    for j in range(len(p)):
        level = carried + shares[j]
        passed = level > 0 and p[j] <= level * risk
        best, carried = (j, level) if passed else (best, 0.0)
    return best


def test_fallback_equals_the_slow_loop():
    rng = np.random.default_rng(0)
    shares = np.array([0.4, 0, 0.2, 0, 0, 0.4, 0, 0])
    for p in rng.uniform(0, 0.12, (200, 8)):
        assert last_by_fallback(p, shares, 0.1) == slow_fallback(p, shares, 0.1)


@pytest.mark.parametrize("n", [60, 100, 500, 1000, 5000, 100_000])
def test_shares_sum_to_one_at_ascending_ranks(n):
    plan = start_ranks(n, 0.05, 0.05)
    assert plan.shares.sum() == pytest.approx(1)
    assert (np.diff(plan.ranks) > 0).all()
    assert plan.ranks[-1] == n
    assert plan.shares[0] > 0


def test_no_ranks_if_nothing_could_pass():
    assert len(start_ranks(58, 0.05, 0.05).ranks) == 0


def test_level_is_kept_for_any_dependence():
    # Independent p-values and equal p-values are two extremes; every hypothesis is true.
    rng, risk = np.random.default_rng(1), 0.1
    shares = np.array([0.4, 0, 0.3, 0, 0.3])
    for p in (rng.random((4000, 5)), np.repeat(rng.random((4000, 1)), 5, axis=1)):
        hits = np.mean([last_by_fallback(one, shares, risk) >= 0 for one in p])
        assert hits <= risk + 3 * np.sqrt(risk * (1 - risk) / 4000)
