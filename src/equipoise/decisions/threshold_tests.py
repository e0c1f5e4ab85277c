r"""Which of many thresholds keep their errors below a limit: an exact closed test of all of them.

Rows are sorted from the highest score to the lowest. A threshold accepts the first ``m`` rows, of which ``K(m)`` are
wrong, and its p-value is the probability that a binomial count with ``m`` trials and the error limit is at most
``K(m)``. Testing walks from the strictest threshold to the most lenient, as long as ``K(m)`` is small enough. At the
first failure, at rank ``a``, a level ``c(a)`` is fixed, and every later threshold with a p-value of at most ``c(a)`` is
certified too.

Why this is valid: let ``I`` be the set of thresholds whose error exceeds the limit, and ``a`` the strictest of them.
The set is tested by "the walk passes at ``a``, or a later member of the set has a p-value of at most ``c(a)``". If
every error is at the limit, the probability of this event is computed exactly (a backward recursion over ``K``), and
``c(a)`` is the largest level that keeps it at or below the risk. Larger errors, and smaller sets, make the event rarer.
The closure of these tests rejects a threshold exactly if the rule above certifies it. Since the counts of nested sets
of rows are strongly correlated, ``c(a)`` is far above a Bonferroni correction.

If there are many rows, a part of the risk goes to a second walk that starts at a fixed share of the rows.

Reference:
    Angelopoulos et al. (2021), Learn then test (fixed-sequence testing); Marcus, Peritz, Gabriel (1976), closed tests.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import bdtr, bdtri, bdtrik, gammaln

from equipoise.core.arrays import Array, freeze

__all__ = [
    "RankPlan",
    "choose_ranks",
    "error_upper_bound",
    "fewest_rows",
    "last_certified",
    "plan_tests",
    "rank_p_values",
]

#: All ranks up to this one are tested, then ranks that grow by 1%.
_EVERY_RANK = 300
_GROWTH = 1.01
#: From this many times the fewest rows on, a second walk starts at a share of the rows with a part of the risk.
_MANY, _SECOND_START, _SECOND_SHARE = 40, 0.15, 0.3
#: Levels after a failure that are tried, in units of the risk.
_LEVELS = np.geomspace(0.005, 1.0, 40)
#: Standard deviations around the mean count that the recursion looks at.
_WIDTH = 9
_ROUNDING = 1 + 1e-12


class RankPlan(NamedTuple):
    """What is tested, fixed before any label is looked at.

    Attributes:
        ranks: Numbers of accepted rows, ascending.
        max_error: Error limit.
        allowed: Largest number of mistakes at each rank with which the walk goes on.
        levels: Largest p-value that is certified after a failure at each rank.
        second: Index at which a second walk starts; the number of ranks if there is none.
        second_level: Largest p-value with which the second walk goes on.
    """

    ranks: Array
    max_error: float
    allowed: Array
    levels: Array
    second: int
    second_level: float


def fewest_rows(max_error: float, risk: float) -> int:
    """Return how many accepted rows without a mistake certify an error limit: log(risk) / log(1 - max_error).

    Example:
        >>> fewest_rows(0.05, 0.05)
        59
    """
    return math.ceil(math.log(risk) / math.log1p(-max_error) - 1e-9)


def rank_p_values(wrong: Any, ranks: Any, max_error: float) -> Array:
    """Return the probability of so few mistakes among so many rows if each is wrong with probability ``max_error``.

    Example:
        >>> float(rank_p_values(np.array([0]), np.array([59]), 0.05).round(4)[0])
        0.0485
    """
    wrong, ranks = np.broadcast_arrays(wrong, np.asarray(ranks).astype(np.int64))
    result: Array = np.where(wrong >= ranks, 1.0, bdtr(np.minimum(wrong, ranks - 1), ranks, max_error))
    return result


def error_upper_bound(wrong: int, rows: int, risk: float) -> float:
    """Return the one-sided Clopper-Pearson bound of an error rate.

    Example:
        >>> round(error_upper_bound(0, 59, 0.05), 4)
        0.0495
    """
    return 1.0 if wrong >= rows else float(bdtri(wrong, rows, risk))


def choose_ranks(n_rows: int, max_error: float, risk: float) -> Array:
    """Return the ranks to test, for rows without ties; none if there are too few rows.

    Example:
        >>> choose_ranks(1000, 0.05, 0.05)[[0, 1, -1]]
        array([  78,   79, 1000])
    """
    first = fewest_rows(max_error, risk * _first_share(n_rows, max_error, risk))
    ranks = np.arange(first, min(n_rows, _EVERY_RANK) + 1)
    if n_rows > _EVERY_RANK:
        steps = int(math.log(n_rows / _EVERY_RANK) / math.log(_GROWTH)) + 1
        grown = np.round(_EVERY_RANK * _GROWTH ** np.arange(steps)).astype(np.int64)
        ranks = np.unique(np.concatenate([ranks, grown, [n_rows]]))
    return ranks[(ranks >= first) & (ranks <= n_rows)]


def _first_share(n_rows: int, max_error: float, risk: float) -> float:
    """Return the share of the risk that the walk has at least: much if there are few rows, little if there are many.

    With few rows only the most certain ones can be certified, and the walk is all that counts.
    """
    many = n_rows / fewest_rows(max_error, risk)
    return float(np.clip(1.45 - 0.38 * math.log(max(many, 1.0)), 0.1, 0.96))


def plan_tests(ranks: Any, n_rows: int, max_error: float, risk: float) -> RankPlan:
    """Fix the tests for some ranks.

    Args:
        ranks: Numbers of accepted rows, ascending, from :func:`choose_ranks` or the ends of groups of equal scores.
        n_rows: Number of labelled rows.
        max_error: Error limit.
        risk: Probability with which a certified threshold may break the limit.

    Returns:
        The plan; its first rank is the first at which the walk could pass.

    Example:
        >>> plan = plan_tests(choose_ranks(500, 0.1, 0.05), 500, 0.1, 0.05)
        >>> plan.ranks[:2], plan.allowed[:2], (plan.levels[:2] / 0.05).round(2)
        (array([38, 39]), array([0, 0]), array([0.13, 0.13]))
    """
    return _plan(np.asarray(ranks, np.int64).tobytes(), int(n_rows), float(max_error), float(risk))


@lru_cache(maxsize=256)
def _plan(packed: bytes, n_rows: int, max_error: float, risk: float) -> RankPlan:
    first = fewest_rows(max_error, risk * _first_share(n_rows, max_error, risk))
    ranks = np.frombuffer(packed, np.int64)
    ranks = ranks[ranks >= first]
    has_second = n_rows >= _MANY * fewest_rows(max_error, risk)
    second = int(np.searchsorted(ranks, _SECOND_START * n_rows)) if has_second else len(ranks)
    second_level = _SECOND_SHARE * risk if has_second else 0.0
    walk_risk = risk - second_level
    least = np.minimum(walk_risk, risk * _first_share(n_rows, max_error, risk))
    allowed, levels = _exact_levels(ranks, max_error, walk_risk, float(least))
    return RankPlan(freeze(ranks), max_error, freeze(allowed), freeze(levels), second, second_level)


def _exact_levels(ranks: Array, max_error: float, risk: float, least: float) -> tuple[Array, Array]:
    """Return the mistakes allowed in the walk and the level after a failure, at each rank.

    Backward over the ranks, ``later[c, k]`` is the probability that a later rank has a p-value of at most ``c``, given
    ``k`` mistakes now and errors at the limit.
    """
    levels = risk * _LEVELS
    bound = np.stack([_most_wrong(ranks, max_error, level) for level in levels])
    allowed, found = _most_wrong(ranks, max_error, least), np.zeros(len(ranks))
    low, high = _window(ranks, max_error)
    later = np.zeros((len(levels), 0))
    for at in range(len(ranks) - 1, -1, -1):
        counts = np.arange(low[at], high[at] + 1)
        if at == len(ranks) - 1:
            later = np.zeros((len(levels), len(counts)))
        else:
            following = np.arange(low[at + 1], high[at + 1] + 1)
            reached = np.where(following <= bound[:, at + 1, None], 1.0, later)
            later = _step_back(
                reached, low[at : at + 2], high[at : at + 2], ranks[at + 1] - ranks[at], max_error
            )
        mass = _binomial_mass(counts, ranks[at], max_error)
        # The probability of passing now with at most k mistakes, or later after more of them.
        beyond = np.cumsum((mass * later)[:, ::-1], axis=1)[:, ::-1]
        total = np.cumsum(mass) + np.pad(beyond[:, 1:], ((0, 0), (0, 1)))
        within = total[:, allowed[at] - low[at]] <= risk * _ROUNDING
        if within.any():
            chosen = int(np.flatnonzero(within)[-1])
            found[at] = levels[chosen]
            allowed[at] = low[at] + int((total[chosen] <= risk * _ROUNDING).sum()) - 1
    return allowed, found


def _most_wrong(ranks: Array, max_error: float, level: float) -> Array:
    """Return the largest number of mistakes with a p-value of at most a level; -1 if there is none."""
    count = np.floor(np.nan_to_num(bdtrik(level, ranks, max_error), nan=-1.0)).astype(np.int64)
    # The inverse is found numerically, so that one more and one less are tried too.
    candidates = np.maximum(np.stack([count + 1, count, count - 1]), -1)
    passed = (candidates >= 0) & (
        rank_p_values(np.maximum(candidates, 0), ranks, max_error) <= level * _ROUNDING
    )
    most: Array = np.where(passed, candidates, -1).max(axis=0)
    return most


def _window(ranks: Array, max_error: float) -> tuple[Array, Array]:
    mean, reach = ranks * max_error, _WIDTH * np.sqrt(ranks * max_error * (1 - max_error)) + 5
    low = np.maximum(0, np.floor(mean - reach)).astype(np.int64)
    return low, np.minimum(ranks, np.ceil(mean + reach)).astype(np.int64)


def _binomial_mass(counts: Array, trials: int, rate: float) -> Array:
    choose = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    mass: Array = np.exp(choose + counts * math.log(rate) + (trials - counts) * math.log1p(-rate))
    return mass


def _step_back(reached: Array, low: Array, high: Array, step: int, max_error: float) -> Array:
    """Return expected values one rank earlier; counts below the window have passed, and those above it never will."""
    (least,), (most,) = _window(np.array([step]), max_error)
    mass = _binomial_mass(np.arange(least, most + 1), step, max_error)
    start, stop = low[0] + least - low[1], high[0] + most - low[1] + 1
    inside = reached[:, max(start, 0) : min(stop, reached.shape[1])]
    padding = (max(-start, 0), max(stop - reached.shape[1], 0))
    wide = np.concatenate(
        [np.ones((len(reached), padding[0])), inside, np.zeros((len(reached), padding[1]))], axis=1
    )
    if len(mass) <= 8:
        width = wide.shape[1] - len(mass) + 1
        return sum(
            (share * wide[:, j : j + width] for j, share in enumerate(mass)), np.zeros((len(wide), width))
        )
    result: Array = fftconvolve(wide, mass[None, ::-1], mode="valid", axes=1)
    return result


def last_certified(wrong: Array, plan: RankPlan) -> Array:
    """Return the index of the last certified rank, or -1.

    Args:
        wrong: Number of mistakes at every rank of the plan ``(..., m)``.
        plan: The tests.

    Returns:
        One index for every row of counts.

    Example:
        >>> plan = plan_tests(choose_ranks(100, 0.1, 0.05), 100, 0.1, 0.05)
        >>> int(plan.ranks[last_certified(np.zeros(len(plan.ranks), int), plan)])
        100
    """
    wrong = np.asarray(wrong)
    best = np.full(wrong.shape[:-1], -1)
    if wrong.shape[-1] == 0:
        return best
    p_values = rank_p_values(wrong, plan.ranks, plan.max_error)
    failed = wrong > plan.allowed
    level = np.minimum.accumulate(np.where(failed, plan.levels, np.inf), axis=-1)
    certified = np.where(np.isinf(level), True, p_values <= level * _ROUNDING)
    if plan.second < len(plan.ranks):
        worst = np.maximum.accumulate(p_values[..., plan.second :], axis=-1)
        certified[..., plan.second :] |= worst <= plan.second_level * _ROUNDING
    last = wrong.shape[-1] - 1 - np.argmax(certified[..., ::-1], axis=-1)
    return np.where(certified.any(axis=-1), last, best)
