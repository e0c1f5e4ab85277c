"""Exact intervals for a share."""

from __future__ import annotations

from scipy.special import betaincinv

__all__ = ["exact_interval"]


def exact_interval(count: float, total: float, level: float) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a share.

    Example:
        >>> [round(end, 4) for end in exact_interval(9, 10, 0.95)]
        [0.555, 0.9975]
    """
    tail = (1 - level) / 2
    low = 0.0 if count <= 0 else float(betaincinv(count, total - count + 1, tail))
    high = 1.0 if count >= total else float(betaincinv(count + 1, total - count, 1 - tail))
    return low, high
