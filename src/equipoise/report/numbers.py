"""Numbers as text."""

from __future__ import annotations

import math
import re

from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.verdict import p_text
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.target import TOP, Target, target_facts

__all__ = ["chance", "count", "interval", "number", "percent", "points", "short", "title", "typeset"]

# A number and its unit stay on one line.
_UNIT = "%"


def title(key: str, target: Target = TOP) -> str:
    """Return the name of a metric of a target."""
    return target_facts(key, target).title


def short(key: str, target: Target = TOP) -> str:
    """Return the name of a metric where space is scarce.

    Example:
        >>> short("nll"), short("ece")
        ('NLL', 'ECE')
    """
    return target_facts(key, target).short


def number(key: str, value: float) -> str:
    r"""Return a value of a metric in its unit.

    Example:
        >>> number("ece", 0.0312), number("nll", 0.25), number("confidence_gap", 0.1)
        ('3.12%', '0.2500', '+10.00%')
    """
    if not math.isfinite(value):
        return "–"
    return typeset(metric_facts(key).text(value))


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
        '12.3%'
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
    return p_text(p_value).replace(" ", "\u00a0")


def typeset(text: str) -> str:
    r"""Return words as a page shows them: minus signs are minus signs, and a number stays with "points".

    Example:
        >>> typeset("falls by -3% or 2 points (p = 0.010)")
        'falls by −3% or 2\xa0points (p\xa0=\xa00.010)'
    """
    text = re.sub(r"(?<![\w.])-(?=\d)", "−", text)
    text = re.sub(r"(?<=\d) (?=points\b)", "\u00a0", text)
    return re.sub(r"\bp ([=<]) (?=\d)", "p\u00a0\\1\u00a0", text)
