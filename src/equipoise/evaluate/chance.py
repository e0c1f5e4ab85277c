"""What chance explains: tails of counts under calibration, and correction for looking at many at once."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, xlogy

from equipoise.core.arrays import Array

__all__ = ["gap_p_values", "holm"]

_STEPS = 60
_STEEPEST = 60.0


def gap_p_values(count: Array, confidence: Array, correct: Array) -> Array:
    """Return how often a calibrated model's confidence and accuracy differ this much on as many rows.

    A calibrated model is right as often as it says, so the number it gets right is a sum of independent draws, one per
    row, whose chances are the confidences. Two-sided; the tail is a saddlepoint approximation, which stays true far
    out where a normal one does not, and which needs only the sums of each bin. Rows of a bin are given its mean
    confidence, which errs on the cautious side.

    Args:
        count: Rows ``(..., bins)``; effective numbers if rows have weights.
        confidence: Their mean confidence ``(..., bins)``; anything where there are no rows.
        correct: How many of them are right ``(..., bins)``.

    Returns:
        p-values ``(...)``.

    Example:
        >>> p = gap_p_values(np.array([50.0]), np.array([0.9]), np.array([40.0]))
        >>> round(float(p), 3)  # twice the chance of at most 40 of 50
        0.049

    Reference:
        Lugannani and Rice (1980), Saddle point approximation for the distribution of the sum of independent random
        variables. That means err on the cautious side: Hoeffding (1956), On the distribution of the number of
        successes in independent trials.
    """
    chance = np.where(count > 0, np.clip(confidence, 0.0, 1.0), 0.0)
    right, total = correct.sum(axis=-1), count.sum(axis=-1)
    # Whichever kind of row there is too much of is counted, so that it is always an upper tail.
    many_right = right >= (count * chance).sum(axis=-1)
    chance = np.where(many_right[..., None], chance, 1.0 - chance)
    surprising = np.where(many_right, right, total - right)
    result: Array = np.minimum(1.0, 2.0 * _upper_tail(count, chance, surprising))
    return result


@np.errstate(under="ignore")
def _upper_tail(count: Array, chance: Array, at_least: Array) -> Array:
    """Return the probability that binomial counts add up to ``at_least`` or more, which is above their mean."""
    slope = _slope(count, chance, at_least)
    growth, _, variance = _cumulants(count, chance, slope)
    # The first cannot be below zero but for rounding, and the bound is met exactly where every row must be a hit.
    exponent = np.maximum(slope * at_least - growth, 0.0)
    bound = np.exp(-exponent)
    signed_root = np.sqrt(2.0 * exponent)
    scale = -np.expm1(-slope) * np.sqrt(variance)
    near_mean = (signed_root < 1e-4) | (scale < 1e-8)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.exp(-0.5 * signed_root**2) / np.sqrt(2.0 * np.pi)
        tail = ndtr(-signed_root) + density * (1.0 / scale - 1.0 / signed_root)
    tail = np.where(near_mean, bound, tail)
    result: Array = np.clip(tail, 0.0, bound)
    return result


def _slope(count: Array, chance: Array, wanted: Array) -> Array:
    """Return how much the draws must be tilted for their mean to be the number wanted, by bisection."""
    low, high = np.zeros(wanted.shape), np.full(wanted.shape, _STEEPEST)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        too_low = _cumulants(count, chance, middle)[1] < wanted
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    result: Array = 0.5 * (low + high)
    return result


def _cumulants(count: Array, chance: Array, slope: Array) -> tuple[Array, Array, Array]:
    """Return the cumulant generating function of the sum of hits and its first two derivatives."""
    tilt = np.exp(-slope)[..., None]
    # exp(slope) may be large, so it is taken out: log(1 - p + p e^s) = s + log((1 - p) e^-s + p).
    base = (1.0 - chance) * tilt + chance
    tilted = np.divide(chance, base, out=np.zeros_like(base), where=base > 0)
    growth = slope * count.sum(axis=-1) + xlogy(count, np.maximum(base, 1e-300)).sum(axis=-1)
    return growth, (count * tilted).sum(axis=-1), (count * tilted * (1.0 - tilted)).sum(axis=-1)


def holm(p_values: Array) -> Array:
    """Return p-values that may be compared with one level, however many there are (Holm's rule).

    The chance that any of them falls below the level while nothing is wrong stays below the level, whatever the
    dependence between them.

    Args:
        p_values: One per question asked ``(m,)``.

    Returns:
        Corrected ones, in the same order, none lower than before.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03]))
        array([0.03, 0.06, 0.06])

    Reference:
        Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return corrected
