import numpy as np
import pytest
from scipy.stats import binom

from equipoise.decisions.threshold_tests import (
    error_upper_bound,
    fewest_rows,
    last_certified,
    plan_tests,
    rank_p_values,
)


def test_p_value_and_bound_agree_with_the_binomial_distribution():
    assert rank_p_values(np.array([3]), np.array([100]), 0.1) == pytest.approx(binom.cdf(3, 100, 0.1))
    assert rank_p_values(np.array([5]), np.array([5]), 0.1) == 1.0
    assert binom.cdf(3, 100, error_upper_bound(3, 100, 0.05)) == pytest.approx(0.05)


def test_fewest_rows_is_the_first_number_that_can_pass():
    for limit, risk in ((0.05, 0.05), (0.1, 0.01), (0.01, 0.1)):
        n = fewest_rows(limit, risk)
        assert (1 - limit) ** n <= risk < (1 - limit) ** (n - 1)


@pytest.mark.parametrize("n", [60, 100, 500, 1000, 5000, 100_000])
def test_plan_shares_all_risk_between_ascending_ranks(n):
    plan = plan_tests(n, 0.05, 0.05)
    assert plan.shares.sum() == pytest.approx(1)
    assert (np.diff(plan.ranks) > 0).all()
    assert plan.ranks[-1] == n
    assert plan.shares[0] > 0


def test_plan_is_empty_if_nothing_could_pass():
    assert len(plan_tests(58, 0.05, 0.05).ranks) == 0


def one_start_at_a_time(p, shares, risk):
    best = -1
    for m in range(len(p)):
        for a in np.flatnonzero(shares[: m + 1]):
            if p[a : m + 1].max() <= risk * shares[a : m + 1].sum() + 1e-15:
                best = m
    return best


def test_last_certified_equals_the_slow_loops():
    rng = np.random.default_rng(0)
    shares = np.array([0.4, 0, 0.2, 0, 0, 0.4, 0, 0])
    p = rng.uniform(0, 0.12, (200, 8))
    found = last_certified(p, shares, 0.1)
    assert found.tolist() == [one_start_at_a_time(row, shares, 0.1) for row in p]
    # The fallback procedure never certifies more.
    assert (last_certified(p, shares, 0.1, "any") <= found).all()


def test_simes_condition_is_the_closed_test_on_all_sets_of_hypotheses():
    # A hypothesis is rejected if every set that contains it is rejected by the weighted Simes test, in which every
    # start tests its first hypothesis in the set.
    rng = np.random.default_rng(1)
    shares, risk, m = np.array([0.5, 0.0, 0.3, 0.0, 0.2]), 0.1, 5
    starts = np.flatnonzero(shares)

    def local(p, chosen):
        heads = [(p[min(c for c in chosen if c >= s)], shares[s]) for s in starts if max(chosen) >= s]
        return any(one <= risk * sum(w for other, w in heads if other <= one) + 1e-15 for one, _ in heads)

    sets = [[j for j in range(m) if bits >> j & 1] for bits in range(1, 2**m)]
    for _ in range(100):
        p = rng.uniform(0, 0.15, m)
        rejected = [j for j in range(m) if all(local(p, one) for one in sets if j in one)]
        assert max(rejected, default=-1) == last_certified(p, shares, risk)


@pytest.mark.parametrize("curve", ["at the limit", "hole"])
def test_promise_is_broken_rarely(curve):
    # 4,000 samples of 400 rows in every case; the bound has three standard errors on top.
    rng, n, limit, risk, repeats = np.random.default_rng(2), 400, 0.1, 0.1, 4000
    place = np.sort(rng.random((repeats, n)), axis=1)
    steps = {
        "at the limit": lambda u: np.full_like(u, limit * 1.0001),
        "hole": lambda u: (
            limit * np.select([u < 0.05, u < 0.4, u < 0.5, u < 0.9], [3.0, 0.65, 1.6, 0.8], 3.0)
        ),
    }
    grid = np.linspace(0, 1, 10001)
    error = np.cumsum(steps[curve](grid)) / np.arange(1, len(grid) + 1)
    wrong = np.cumsum(rng.random(place.shape) < steps[curve](place), axis=1)
    plan = plan_tests(n, limit, risk)
    best = last_certified(rank_p_values(wrong[:, plan.ranks - 1], plan.ranks, limit), plan.shares, risk)
    found = best >= 0
    true = np.interp(place[np.arange(repeats), plan.ranks[best] - 1], grid, error)
    assert (found & (true > limit)).mean() <= risk + 3 * np.sqrt(risk * (1 - risk) / repeats)
    if curve == "at the limit":
        assert found.mean() > 0.02  # not valid only because nothing is ever certified
