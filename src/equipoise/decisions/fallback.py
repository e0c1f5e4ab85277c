"""The fallback procedure: valid tests of many thresholds for p-values that depend on each other in any way.

Testing starts at a few ranks, each with a share of the risk. From a start, ever more rows are accepted while the tests
pass at the sum of the shares of the starts passed on the way.

Reference:
    Wiens and Dmitrienko (2005), The fallback procedure for evaluating a single family of hypotheses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from equipoise.core.arrays import Array
from equipoise.decisions.threshold_tests import fewest_rows

__all__ = ["RankShares", "last_by_fallback", "start_ranks"]

_MOST_STARTS = 5
_FIRST_SHARE = 0.4
_GROWTH = 1.05
_ROUNDING = 1 + 1e-12


class RankShares(NamedTuple):
    """Ranks that are tested, and the share of the risk that testing starts with at each.

    Attributes:
        ranks: Numbers of accepted rows, ascending.
        shares: Shares of the risk, zero except at starts; they sum to one.
    """

    ranks: Array
    shares: Array


def start_ranks(n_rows: int, max_error: float, risk: float) -> RankShares:
    """Choose ranks to test and where testing starts: at the fewest rows, and at doubled numbers up to five times.

    Example:
        >>> plan = start_ranks(1000, 0.05, 0.05)
        >>> plan.ranks[plan.shares > 0]
        array([ 77, 180, 360, 720])
    """
    if fewest_rows(max_error, risk) > n_rows:
        return RankShares(np.zeros(0, np.int64), np.zeros(0))
    base = fewest_rows(max_error, risk / _MOST_STARTS)
    later = [base * 2**j for j in range(1, _MOST_STARTS) if base * 2**j <= n_rows]
    shares = np.full(len(later) + 1, (1 - _FIRST_SHARE) / max(len(later), 1))
    shares[0] = _FIRST_SHARE if later else 1.0
    starts = np.array([fewest_rows(max_error, risk * shares[0]), *later])
    if starts[0] > n_rows:
        return RankShares(np.zeros(0, np.int64), np.zeros(0))
    steps = int(np.log(n_rows / starts[0]) / np.log(_GROWTH)) + 1
    grown = np.round(starts[0] * _GROWTH ** np.arange(steps)).astype(np.int64)
    ranks = np.unique(np.concatenate([grown, starts, [n_rows]]))
    at = np.zeros(len(ranks))
    np.add.at(at, np.searchsorted(ranks, starts), shares)
    return RankShares(ranks, at)


def last_by_fallback(p_values: Array, shares: Array, risk: float) -> int:
    """Return the index of the last certified threshold, or -1.

    Args:
        p_values: ``(m,)``, from the strictest threshold to the most lenient.
        shares: Share of the risk at every threshold ``(m,)``; zero where testing does not start.
        risk: Probability with which a certified threshold may break the limit.

    Example:
        >>> shares = np.array([0.5, 0.0, 0.5, 0.0])
        >>> last_by_fallback(np.array([0.02, 0.03, 0.02, 0.2]), shares, 0.05)
        2
    """
    best, level = -1, 0.0
    for index, (p_value, share) in enumerate(zip(p_values.tolist(), shares.tolist(), strict=True)):
        level += share
        if level > 0 and p_value <= level * risk * _ROUNDING:
            best = index
        else:
            level = 0.0
    return best
