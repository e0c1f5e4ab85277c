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
    assert plan_tests(ranks, n, 0.05, 0.05).allowed.max() >= 0


@pytest.mark.parametrize(("n", "risk"), [(100, 0.1), (200, 0.01)])
def test_few_rows_leave_risk_for_thresholds_after_a_failure(n, risk):
    ranks = choose_ranks(n, 0.1, risk)
    assert ranks[-1] == n
    later = np.array([rank for rank in ranks[:-1] if binom.cdf(1, rank, 0.1) <= risk])
    most = binom.ppf(risk, later, 0.1)
    most -= binom.cdf(most, later, 0.1) > risk * (1 + 1e-12)
    assert binom.cdf(most, later, 0.1).max() <= 0.8 * risk
    assert len(later) > 20


def test_no_ranks_if_nothing_could_pass():
    assert len(choose_ranks(58, 0.05, 0.05)) == 0
    assert last_certified(np.zeros(0, int), plan_tests([], 58, 0.05, 0.05)) == -1


def counts_of_all_orders(n):
    """Return the mistakes among the first rows for every order of right and wrong rows, and the number of mistakes."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.cumsum(bits, axis=1), bits.sum(axis=1)


def levels_after(wrong, at, plan):
    """Return the largest p-value that a rank and each later one may have, after more mistakes than allowed."""
    more = np.maximum(wrong - plan.allowed[at] - 1, 0)
    level = plan.levels[at] * plan.decay**more
    level = np.where(level < plan.least_level * (1 - 1e-9), 0.0, level)
    return np.asarray(level)[..., None] * plan.profile[at:] * (1 + 1e-12)


@pytest.mark.parametrize(("limit", "risk"), [(0.3, 0.1), (0.4, 0.05), (0.5, 0.2), (0.6, 0.2), (0.7, 0.3)])
def test_every_local_test_keeps_its_level_exactly(limit, risk):
    # All 2**14 outcomes with their probabilities: the test of the thresholds from rank a on.
    n = 14
    counts, wrong = counts_of_all_orders(n)
    probability = limit**wrong * (1 - limit) ** (n - wrong)
    plan = plan_tests(np.arange(1, n + 1), n, limit, risk)
    p = rank_p_values(counts[:, plan.ranks - 1], plan.ranks, limit)
    for at in range(len(plan.ranks)):
        wrong_now = counts[:, plan.ranks[at] - 1]
        passed = wrong_now <= plan.allowed[at]
        later = (p[:, at:] <= levels_after(wrong_now, at, plan)).any(axis=1)
        assert probability[passed | later].sum() <= risk * (1 + 1e-9)
    certified = last_certified(counts[:, plan.ranks - 1], plan) >= 0
    assert probability[certified].sum() <= risk * (1 + 1e-9)
    assert probability[certified].sum() > 0.3 * risk


@pytest.mark.parametrize(("ranks", "limit", "risk"), [((14, 104), 0.2, 0.2), ((29, 214), 0.1, 0.2)])
def test_two_groups_of_tied_scores_far_apart_keep_the_risk(ranks, limit, risk):
    # Levels that suit the last rank are above 1 at the first, where every count would pass.
    plan = plan_tests(np.array(ranks), ranks[1], limit, risk)
    first, more = np.arange(ranks[0] + 1)[:, None], np.arange(ranks[1] - ranks[0] + 1)[None, :]
    mass = binom.pmf(first, ranks[0], limit) * binom.pmf(more, ranks[1] - ranks[0], limit)
    certified = last_certified(np.stack(np.broadcast_arrays(first, first + more), axis=-1), plan) >= 0
    assert 0.1 * risk < mass[certified].sum() <= risk * (1 + 1e-9)


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
            later = levels_after(wrong[a], a, plan)
            return wrong[a] <= plan.allowed[a] or any(p[j] <= later[j - a] for j in chosen)

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
    # P(the walk passes at 60, or a later rank passes the level that the mistakes leave), by summing over all counts.
    total = binom.cdf(plan.allowed[0], 60, 0.1)
    more = np.arange(701)
    for wrong in range(plan.allowed[0] + 1, 61):
        at_60, at_200, at_900 = levels_after(wrong, 0, plan)
        assert binom.cdf(wrong, 60, 0.1) > at_60
        counts = wrong + np.arange(141)
        hit = binom.cdf(counts[:, None] + more, 900, 0.1) <= at_900
        later = np.where(
            binom.cdf(counts, 200, 0.1) <= at_200, 1.0, (hit * binom.pmf(more, 700, 0.1)).sum(axis=1)
        )
        total += binom.pmf(wrong, 60, 0.1) * (binom.pmf(np.arange(141), 140, 0.1) * later).sum()
    assert 0.7 * 0.05 < total <= 0.05 * (1 + 1e-9)


@pytest.mark.parametrize(("limit", "risk"), [(0.05, 0.05), (0.1, 0.01), (0.02, 0.1)])
def test_the_fewest_rows_without_a_mistake_are_certified(limit, risk):
    n = fewest_rows(limit, risk)
    plan = plan_tests(choose_ranks(n, limit, risk), n, limit, risk)
    assert last_certified(np.zeros(len(plan.ranks), int), plan) == 0
    assert len(choose_ranks(n - 1, limit, risk)) == 0


def test_a_further_mistake_never_certifies_more():
    # The proof requires it: moving wrong rows up in the order must not certify more.
    rng = np.random.default_rng(0)
    plan = plan_tests(choose_ranks(200, 0.1, 0.1), 200, 0.1, 0.1)
    wrong = rng.random((300, 200)) < np.linspace(0, 0.2, 200)
    worse = wrong.copy()
    worse[np.arange(300), rng.integers(0, 200, 300)] = True
    counts, more = (np.cumsum(one, axis=1)[:, plan.ranks - 1] for one in (wrong, worse))
    assert (last_certified(more, plan) <= last_certified(counts, plan)).all()


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
