import numpy as np
import pytest
from scipy.stats import binom

from equipoise.decisions.threshold_tests import (
    choose_ranks,
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
def test_ranks_ascend_to_the_last_row(n):
    ranks = choose_ranks(n, 0.05, 0.05)
    assert (np.diff(ranks) > 0).all()
    assert ranks[-1] == n
    assert plan_tests(ranks, n, 0.05, 0.05).allowed.min() >= 0


def test_no_ranks_if_nothing_could_pass():
    assert len(choose_ranks(58, 0.05, 0.05)) == 0
    assert last_certified(np.zeros(0, int), plan_tests([], 58, 0.05, 0.05)) == -1


def counts_of_all_orders(n):
    """Return the mistakes among the first rows for every order of right and wrong rows, and the number of mistakes."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.cumsum(bits, axis=1), bits.sum(axis=1)


@pytest.mark.parametrize(("limit", "risk"), [(0.3, 0.1), (0.4, 0.05), (0.5, 0.2)])
def test_every_local_test_keeps_its_level_exactly(limit, risk):
    # All 2**14 outcomes with their probabilities: the test of the thresholds from rank a on.
    n = 14
    counts, wrong = counts_of_all_orders(n)
    probability = limit**wrong * (1 - limit) ** (n - wrong)
    plan = plan_tests(np.arange(1, n + 1), n, limit, risk)
    p = rank_p_values(counts[:, plan.ranks - 1], plan.ranks, limit)
    for at in range(len(plan.ranks)):
        passed = counts[:, plan.ranks[at] - 1] <= plan.allowed[at]
        later = (p[:, at + 1 :] <= plan.levels[at] * (1 + 1e-12)).any(axis=1)
        assert probability[passed | later].sum() <= risk * (1 + 1e-9)
    certified = last_certified(counts[:, plan.ranks - 1], plan) >= 0
    assert probability[certified].sum() <= risk * (1 + 1e-9)
    assert probability[certified].sum() > 0.3 * risk


def test_rule_is_the_closed_test_on_all_sets_of_hypotheses():
    # A threshold is rejected if every set that contains it is rejected by the test of its strictest member.
    n, limit, risk = 12, 0.4, 0.2
    counts, _ = counts_of_all_orders(n)
    plan = plan_tests(np.arange(1, n + 1), n, limit, risk)
    m = len(plan.ranks)
    sets = [[j for j in range(m) if bits >> j & 1] for bits in range(1, 2**m)]
    some = counts[np.random.default_rng(0).choice(len(counts), 60, replace=False)][:, plan.ranks - 1]
    for wrong, found in zip(some, last_certified(some, plan), strict=True):
        p = rank_p_values(wrong, plan.ranks, limit)

        def local(chosen, wrong=wrong, p=p):
            a = chosen[0]
            return wrong[a] <= plan.allowed[a] or any(
                p[j] <= plan.levels[a] * (1 + 1e-12) for j in chosen[1:]
            )

        rejected = [j for j in range(m) if all(local(one) for one in sets if j in one)]
        assert max(rejected, default=-1) == found


def test_many_rows_have_a_second_walk():
    plan = plan_tests(choose_ranks(20_000, 0.1, 0.05), 20_000, 0.1, 0.05)
    assert plan.ranks[plan.second] == pytest.approx(3000, rel=0.01)
    wrong = np.full(len(plan.ranks), 20_000)
    wrong[plan.second : plan.second + 3] = 0
    assert last_certified(wrong, plan) == plan.second + 2


def test_levels_do_not_depend_on_the_window_of_the_recursion():
    plan = plan_tests([60, 200, 900], 900, 0.1, 0.05)
    # P(the walk passes at 60, or a later p-value is at most the level), by summing over all counts.
    first, level = plan.allowed[0], plan.levels[0]
    k = np.arange(61)
    at_200 = np.arange(201)
    later = np.empty(201)
    for j in at_200:
        p200 = binom.cdf(j, 200, 0.1)
        more = np.arange(701)
        hit = binom.cdf(j + more, 900, 0.1) <= level
        later[j] = 1.0 if p200 <= level else binom.pmf(more[hit], 700, 0.1).sum()
    total = binom.cdf(first, 60, 0.1)
    for wrong in k[k > first]:
        total += (
            binom.pmf(wrong, 60, 0.1)
            * (binom.pmf(np.arange(141), 140, 0.1) * later[wrong : wrong + 141]).sum()
        )
    assert 0.7 * 0.05 < total <= 0.05 * (1 + 1e-9)


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
    plan = plan_tests(choose_ranks(n, limit, risk), n, limit, risk)
    best = last_certified(wrong[:, plan.ranks - 1], plan)
    found = best >= 0
    true = np.interp(place[np.arange(repeats), plan.ranks[best] - 1], grid, error)
    assert (found & (true > limit)).mean() <= risk + 3 * np.sqrt(risk * (1 - risk) / repeats)
    if curve == "at the limit":
        assert found.mean() > 0.02  # not valid only because nothing is ever certified
