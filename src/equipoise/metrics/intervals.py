"""Intervals that keep the estimate inside and the truth where it belongs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.bins import check_bins
from equipoise.core.choices import ScoreSettings

__all__ = [
    "Interval",
    "check_level",
    "check_resamples",
    "check_settings",
    "error_interval",
    "mean_interval",
    "tail_probability",
]

# A draw this close to a value is as large: draws are computed in single precision, and few rows have few outcomes.
_SAME = 1 - 1e-5


class Interval(NamedTuple):
    """A lower and an upper end.

    Attributes:
        low: The lower end.
        high: The upper end.
    """

    low: float
    high: float


def mean_interval(
    value: float, draws: Array, *, level: float = 0.95, within: tuple[float, float] = (-math.inf, math.inf)
) -> Interval:
    """Return the percentile interval of bootstrap draws, moved so that they center on the estimate.

    For averages, such as accuracy or log-likelihood, whose estimate has no bias.

    Args:
        value: The estimate.
        draws: Bootstrap draws of it; NaN where a resample does not define it.
        level: How often the interval shall hold the truth.
        within: The range of the metric, which the interval does not leave.

    Example:
        >>> low, high = mean_interval(0.5, np.linspace(0.4, 0.6, 101), level=0.9)
        >>> round(low, 6), round(high, 6)
        (0.41, 0.59)
    """
    known = draws[~np.isnan(draws)]
    if len(known) == 0:
        return Interval(value, value)
    low, high = _quantiles(known, _tails(level))
    shift = value - float(known.mean())
    return Interval(
        min(value, max(low + shift, within[0])),
        max(value, min(high + shift, within[1])),
    )


def error_interval(
    value: float, draws: Array, calibrated: Array | None, *, level: float = 0.95, largest: float = math.inf
) -> Interval:
    """Return an interval for a calibration error, which chance pushes up, never down.

    The draws exceed the estimate by about as much as the estimate exceeds the truth. The upper end takes that bias off
    once, to stay on the safe side; the lower end takes it off twice, and is zero if a calibrated model could have
    scored as high. The estimate is always inside.

    Args:
        value: The estimate.
        draws: Bootstrap draws of it.
        calibrated: Draws of a calibrated model with the same confidences.
        level: How often the interval shall hold the truth.
        largest: What the error cannot exceed.

    Example:
        >>> error_interval(0.2, np.linspace(0.1, 0.4, 101), np.zeros(9), level=0.9).low < 0.2
        True
        >>> error_interval(0.01, np.linspace(0.0, 0.03, 101), np.linspace(0.0, 0.05, 9)).low
        0.0
    """
    tails = _tails(level)
    low, high = _quantiles(draws, tails)
    bias = max(0.0, float(draws.mean()) - value)
    low = min(max(0.0, low - 2 * bias), value)
    if calibrated is not None and value * _SAME <= _quantiles(calibrated, tails[1:])[0]:
        low = 0.0
    return Interval(low, max(min(high - bias, largest), value))


def tail_probability(value: float, draws: Array) -> float:
    """Return how often a draw is at least as large as the value, counting the value itself.

    Example:
        >>> tail_probability(0.5, np.array([0.1, 0.2, 0.9]))
        0.5
    """
    return float((1 + np.count_nonzero(draws >= value * _SAME)) / (1 + len(draws)))


def check_settings(settings: ScoreSettings, *, where: str) -> None:
    """Raise unless predictions can be scored with these settings.

    Example:
        >>> check_settings(ScoreSettings(level=95), where="score")
        Traceback (most recent call last):
        ...
        ValueError: score: `level` must be between 0 and 1, got 95. 0.95 is usual.
    """
    check_bins(settings.n_bins, settings.closed, where=where)
    check_resamples(settings.n_resamples, where=where)
    check_level(settings.level, where=where)


def check_level(level: float, *, where: str) -> None:
    """Raise unless a level is a probability between 0 and 1, neither included."""
    if not 0 < level < 1:
        raise ValueError(f"{where}: `level` must be between 0 and 1, got {level}. 0.95 is usual.")


def check_resamples(n_resamples: int, *, where: str) -> None:
    """Raise unless there is at least one resample.

    Example:
        >>> check_resamples(0, where="score")
        Traceback (most recent call last):
        ...
        ValueError: score: `n_resamples` must be 1 or more, got 0. 1000 is usual.
    """
    if n_resamples < 1:
        raise ValueError(f"{where}: `n_resamples` must be 1 or more, got {n_resamples}. 1000 is usual.")


def _tails(level: float) -> tuple[float, float]:
    check_level(level, where="interval")
    return (1 - level) / 2, (1 + level) / 2


def _quantiles(draws: Array, shares: tuple[float, ...]) -> list[float]:
    """Return what ``np.quantile`` returns for a few numbers, a tenth of whose time is the work."""
    ordered = np.sort(draws)
    position = np.array(shares) * (len(ordered) - 1)
    left = position.astype(np.int64)
    right = np.minimum(left + 1, len(ordered) - 1)
    ends: Array = ordered[left] + (ordered[right] - ordered[left]) * (position - left)
    return [float(end) for end in ends]
