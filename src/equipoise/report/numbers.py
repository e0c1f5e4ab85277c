"""Numbers as people read them."""

from __future__ import annotations

import math

from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.values import LOWER_IS_BETTER, PERCENT, TITLES

__all__ = ["better_of", "chance", "count", "interval", "number", "percent", "points", "short", "title"]

_SIGNED = frozenset({"confidence_gap"})
_SHORT = {
    "nll": "NLL",
    "brier": "Brier",
    "aurc": "AURC",
    "auroc": "AUROC",
    "confidence_gap": "confidence − accuracy",
}
# A number and its unit stay on one line.
_UNIT = "\u00a0%"


def title(key: str) -> str:
    """Return the name of a metric, without the indent that its table uses."""
    return TITLES.get(key, key).strip()


def short(key: str) -> str:
    """Return the name of a metric where there is little room.

    Example:
        >>> short("nll"), short("ece")
        ('NLL', 'ECE')
    """
    return _SHORT.get(key, title(key))


def number(key: str, value: float) -> str:
    r"""Return a value of a metric in its unit.

    Example:
        >>> number("ece", 0.0312), number("nll", 0.25), number("confidence_gap", 0.1)
        ('3.12\xa0%', '0.2500', '+10.00\xa0%')
    """
    if not math.isfinite(value):
        return "–"
    sign = "+" if key in _SIGNED else ""
    text = f"{100 * value:{sign}.2f}{_UNIT}" if key in PERCENT else f"{value:{sign}.4f}"
    return text.replace("-", "−")


def interval(key: str, score: Score) -> str:
    """Return the ends of an interval in the metric's unit, without repeating the unit.

    Example:
        >>> interval("ece", Score(0.03, 0.02, 0.04))
        '2.00 to 4.00'
    """
    low, high = (number(key, end).removesuffix(_UNIT) for end in (score.low, score.high))
    return f"{low} to {high}"


def percent(value: float, digits: int = 1) -> str:
    r"""Return a share in percent.

    Example:
        >>> percent(0.123)
        '12.3\xa0%'
    """
    return f"{100 * value:.{digits}f}{_UNIT}".replace("-", "−") if math.isfinite(value) else "–"


def points(value: float) -> str:
    r"""Return the size of a difference of shares.

    Example:
        >>> points(-0.123)
        '12.3\xa0points'
    """
    return f"{100 * abs(value):.1f}\u00a0points"


def count(value: float) -> str:
    """Return a number of rows; weights need not be whole.

    Example:
        >>> count(12345.0), count(2.5)
        ('12,345', '2.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def chance(p_value: float | None) -> str:
    r"""Return a p-value with as many digits as it deserves.

    Example:
        >>> chance(0.0004), chance(0.041)
        ('p\xa0<\xa00.001', 'p\xa0=\xa00.041')
    """
    if p_value is None or not math.isfinite(p_value):
        return ""
    text = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    return text.replace(" ", "\u00a0")


def better_of(key: str, values: list[float]) -> float:
    """Return the best of some values of a metric.

    Example:
        >>> better_of("accuracy", [0.8, 0.9]), better_of("ece", [0.1, 0.2]), better_of("confidence_gap", [-0.1, 0.3])
        (0.9, 0.1, -0.1)
    """
    if key in _SIGNED:
        return min(values, key=abs)
    return min(values) if key in LOWER_IS_BETTER else max(values)
