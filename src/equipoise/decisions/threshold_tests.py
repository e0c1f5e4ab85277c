r"""Which of many thresholds keep their errors below a limit: valid tests of all of them at once.

Rows are sorted from the highest score to the lowest. A threshold accepts the first ``m`` rows, of which ``K(m)`` are
wrong, and its p-value is the probability that a binomial count with ``m`` trials and the error limit is at most
``K(m)``. Testing starts at a few ranks. Each start owns a share of the allowed risk. A threshold is certified if, since
some start, every p-value was at most the sum of the shares of the starts that were passed.

This is a closed test with Simes' inequality. For any set of thresholds whose error exceeds the limit, the counts
``K(m)`` at these ranks are stochastically at least those of independent errors at the limit, whatever the error curve.
Such counts are positively dependent, so that Simes' inequality holds. The set in which earlier p-values are worst
decides, and its test is the condition above. For scores with ties, ranks are rounded to groups of equal scores, and
simulations show that the level is kept.

Reference:
    Angelopoulos et al. (2021), Learn then test (one start); Wiens and Dmitrienko (2005), The fallback procedure;
    Benjamini and Hochberg (1997), Multiple hypotheses testing with weights (weighted Simes test).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtri

from equipoise.core.arrays import Array, freeze

__all__ = ["RankPlan", "error_upper_bound", "fewest_rows", "last_certified", "plan_tests", "rank_p_values"]

Dependence = Literal["positive", "any"]

_MOST_STARTS = 5
#: Share of the risk that every start but the first owns, by the number of starts.
_LATER_SHARE = (0.0, 0.0, 0.15, 0.2, 0.2, 0.2)
#: If there are many rows, the last start is at this share of them.
_LAST_START = 0.15
#: All ranks up to this one are tested, then ranks that grow by 1%.
_EVERY_RANK = 300
_GROWTH = 1.01
_ROUNDING = 1 + 1e-12


class RankPlan(NamedTuple):
    """Ranks that are tested, and the share of the risk that testing starts with at each.

    Attributes:
        ranks: Numbers of accepted rows, ascending.
        shares: Shares of the risk, zero except at starts; they sum to one.
    """

    ranks: Array
    shares: Array


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


@lru_cache(maxsize=256)
def plan_tests(n_rows: int, max_error: float, risk: float) -> RankPlan:
    """Choose the ranks to test and where testing starts, before any label is looked at.

    The first start is the smallest rank that its share could certify. The others follow at doubled ranks, up to five;
    if there are many rows they are spread up to 15% of them. Each is moved to the next rank at which one more mistake
    is allowed.

    Args:
        n_rows: Number of labelled rows.
        max_error: Error limit.
        risk: Probability with which a certified threshold may break the limit.

    Returns:
        The plan; without ranks if there are too few rows.

    Example:
        >>> plan = plan_tests(1000, 0.05, 0.05)
        >>> plan.ranks[plan.shares > 0], plan.shares[plan.shares > 0]
        (array([ 77, 165, 371, 730]), array([0.4, 0.2, 0.2, 0.2]))
    """
    if fewest_rows(max_error, risk) > n_rows:
        return RankPlan(freeze(np.zeros(0, np.int64)), freeze(np.zeros(0)))
    base = fewest_rows(max_error, risk / _MOST_STARTS)
    count = 1
    while count < _MOST_STARTS and base * 2**count <= n_rows:
        count += 1
    shares = np.full(count, _LATER_SHARE[count])
    shares[0] = 1 - shares[1:].sum()
    growth = 2.0
    if count == _MOST_STARTS:
        growth = max(2.0, (_LAST_START * n_rows / base) ** (1 / (count - 1)))
    targets = base * growth ** np.arange(count)
    starts = [fewest_rows(max_error, risk * shares[0])]
    starts += [
        _near_start(round(rank), n_rows, max_error, risk * share)
        for rank, share in zip(targets[1:], shares[1:], strict=True)
    ]
    ranks = np.arange(starts[0], min(n_rows, _EVERY_RANK) + 1)
    if n_rows > _EVERY_RANK:
        steps = int(math.log(n_rows / _EVERY_RANK) / math.log(_GROWTH)) + 1
        grown = np.round(_EVERY_RANK * _GROWTH ** np.arange(steps)).astype(np.int64)
        ranks = np.concatenate([ranks, grown, [n_rows]])
    ranks = np.unique(np.concatenate([ranks, starts]))
    ranks = ranks[(ranks >= starts[0]) & (ranks <= n_rows)]
    at = np.zeros(len(ranks))
    np.add.at(at, np.searchsorted(ranks, starts), shares)
    return RankPlan(freeze(ranks), freeze(at))


def _near_start(rank: int, n_rows: int, max_error: float, risk: float) -> int:
    """Return the rank nearest to a given one at which the number of allowed mistakes grows."""
    allowed = -1
    while bdtr(allowed + 1, rank, max_error) <= risk:
        allowed += 1
    before, after = (_first_rank(k, max_error, risk) for k in (max(allowed, 0), allowed + 1))
    return before if after > n_rows or rank - before <= after - rank else after


def _first_rank(wrong: int, max_error: float, risk: float) -> int:
    """Return the smallest number of rows of which so many may be wrong."""
    low, high = wrong + 1, math.ceil(10 * (wrong + 10 - math.log(risk)) / max_error)
    while low < high:
        middle = (low + high) // 2
        if bdtr(wrong, middle, max_error) <= risk:
            high = middle
        else:
            low = middle + 1
    return low


def last_certified(p_values: Array, shares: Array, risk: float, dependence: Dependence = "positive") -> Array:
    """Return the index of the last certified threshold, or -1.

    Args:
        p_values: ``(..., m)``, from the strictest threshold to the most lenient.
        shares: Share of the risk at every threshold ``(m,)`` or ``(..., m)``; zero where testing does not start.
        risk: Probability with which a certified threshold may break the limit.
        dependence: ``"positive"`` for counts of mistakes among nested sets of rows (weighted Simes test); ``"any"`` for
            p-values of any kind (fallback procedure: shares add up only while every test passes).

    Returns:
        One index for every row of p-values.

    Example:
        >>> shares = np.array([0.5, 0.0, 0.5, 0.0])
        >>> int(last_certified(np.array([0.04, 0.03, 0.04, 0.2]), shares, 0.05))
        2
        >>> int(last_certified(np.array([0.04, 0.03, 0.04, 0.2]), shares, 0.05, "any"))
        -1
    """
    m = p_values.shape[-1]
    best = np.full(p_values.shape[:-1], -1)
    if m == 0:
        return best
    limit = risk * _ROUNDING
    if dependence == "any":
        level = np.zeros(best.shape)
        for j in range(m):
            level = level + shares[..., j]
            passed = (level > 0) & (p_values[..., j] <= level * limit)
            best, level = np.where(passed, j, best), np.where(passed, level, 0.0)
        return best
    total = np.cumsum(shares, axis=-1)
    for start in np.flatnonzero(shares):
        worst = np.maximum.accumulate(p_values[..., start:], axis=-1)
        passed = worst <= (total[start:] - total[start] + shares[start]) * limit
        last = m - 1 - np.argmax(passed[..., ::-1], axis=-1)
        best = np.maximum(best, np.where(passed.any(axis=-1), last, -1))
    return best
