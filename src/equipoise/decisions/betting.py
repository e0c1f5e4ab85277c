"""Tests of a mean of bounded values by betting, for weighted rows.

Reference:
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting.
"""

from __future__ import annotations

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.seeds import numpy_generator

__all__ = ["betting_bound", "betting_p_value", "mixed_order"]


def mixed_order(n_rows: int) -> Array:
    """Return row numbers in an order for betting, the same for the same number of rows.

    Files are often sorted by class or site. A bettor would profit from the order, and the test would not hold its
    level.

    Example:
        >>> mixed_order(3).tolist() == mixed_order(3).tolist(), sorted(mixed_order(3).tolist())
        (True, [0, 1, 2])
    """
    return numpy_generator(0, "betting").permutation(n_rows)


def betting_p_value(weights: Array, wrong: Array, max_error: float, heaviest: float, *, risk: float) -> float:
    """Return a p-value of "the weighted error rate exceeds the limit", for independent rows in a random order.

    A bettor whose stakes depend on earlier rows only multiplies its wealth by
    ``1 - stake * weight * (wrong - max_error)``. If the weighted error rate is at least the limit, the wealth exceeds
    ``1 / p`` with probability at most ``p``, at any time.

    Args:
        weights: Weights ``(n,)``, at most ``heaviest``; rows in an order that has nothing to do with mistakes, such as
            :func:`mixed_order`.
        wrong: Whether each row is wrong ``(n,)``.
        max_error: Error limit.
        heaviest: Largest possible weight.
        risk: Level that the stakes are made for.

    Example:
        >>> betting_p_value(np.full(200, 0.5), np.zeros(200, bool), 0.05, 1.0, risk=0.05) < 0.05
        True
    """
    n = len(weights)
    if n == 0:
        return 1.0
    share = weights / heaviest
    gain = share * (max_error - wrong)  # positive if the row is right
    # Regularized running moments of earlier rows only.
    count = np.arange(1, n + 1)
    mean = (np.cumsum(gain)) / (count + 1)
    square = (max_error * (1 - max_error) + np.cumsum((gain - mean) ** 2)) / (count + 1)
    earlier = np.concatenate([[max_error * (1 - max_error)], square[:-1]])
    stake = np.sqrt(2 * np.log(1 / risk) / (earlier * n))
    stake = np.minimum(stake, 0.75 / (1 - max_error))
    wealth = np.cumsum(np.log1p(stake * gain))
    return float(min(1.0, np.exp(-wealth.max(initial=0.0))))


def betting_bound(weights: Array, wrong: Array, heaviest: float, *, risk: float) -> float:
    """Return an upper bound of the weighted error rate, which is too low with probability at most ``risk``.

    Args:
        weights: Weights ``(n,)``, as for :func:`betting_p_value`.
        wrong: Whether each row is wrong ``(n,)``.
        heaviest: Largest possible weight.
        risk: Probability that the bound is too low.

    Example:
        >>> 0.01 < betting_bound(np.full(200, 0.5), np.zeros(200, bool), 1.0, risk=0.05) < 0.05
        True
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        passed = betting_p_value(weights, wrong, middle, heaviest, risk=risk) <= risk
        low, high = (low, middle) if passed else (middle, high)
    return high
