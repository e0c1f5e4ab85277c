"""Tests of a mean of bounded values by betting, for weighted rows.

Reference:
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting.
"""

from __future__ import annotations

import numpy as np

from equipoise.core.arrays import Array

__all__ = ["betting_p_value"]


def betting_p_value(weights: Array, wrong: Array, max_error: float, heaviest: float, *, risk: float) -> float:
    """Return a p-value of "the weighted error rate exceeds the limit", for independent rows in their given order.

    A bettor whose stakes depend on earlier rows only multiplies its wealth by
    ``1 - stake * weight * (wrong - max_error)``. If the weighted error rate is at least the limit, the wealth exceeds
    ``1 / p`` with probability at most ``p``, at any time.

    Args:
        weights: Weights ``(n,)``, at most ``heaviest``.
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
