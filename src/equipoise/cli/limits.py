"""Words such as ``ece=0.03`` on the command line, as limits and margins."""

from __future__ import annotations

import math
from typing import Any

import click

from equipoise.core.errors import SpecError

__all__ = ["MARGIN", "METRIC_LIMIT", "equivalence_option"]


class _MetricLimit(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A metric and a number: ``ece=0.03`` or ``ece=3%``.

    Args:
        margin: Whether the number is a difference of the metric.
        optional: Whether the number may be missing.
    """

    def __init__(self, *, margin: bool = False, optional: bool = False) -> None:
        number = "MARGIN" if margin else "NUMBER"
        self.name = f"METRIC[={number}]" if optional else f"METRIC={number}"
        self._margin, self._optional = margin, optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the metric and the number, or None for it."""
        if isinstance(value, tuple) or (ctx is not None and ctx.resilient_parsing):
            return value  # a shell that completes words waits, and checks nothing
        from equipoise.metrics.facts import metric_facts

        metric, given, text = (part.strip() for part in str(value).partition("="))
        try:
            facts = metric_facts(metric, what="limit", of="card")
        except SpecError as error:
            self.fail(str(error), param, ctx)
        if not given and self._optional:
            return metric, None
        number = _number(text)
        if number is None:
            self.fail(f"{value!r} must have the form {metric}=0.03 or {metric}=3%.", param, ctx)
        low, high = (0.0, facts.high - facts.low) if self._margin else (facts.low, facts.high)
        if not low <= number <= high:
            # Said at once, not after a large file was read.
            self.fail(_outside(metric, text, low, high, percent=facts.percent), param, ctx)
        return metric, number


def _outside(metric: str, text: str, low: float, high: float, *, percent: bool) -> str:
    """Tell of a number that the metric cannot reach, so that a gate would always pass, or never."""
    if percent and "%" not in text and low <= float(text) / 100 <= high:
        return f"{metric} is a fraction from {low:g} to {high:g}; for percent write {metric}={text}%."
    scale, unit = (100, " %") if percent else (1, "")
    end = "on" if math.isinf(high) else f"to {scale * high:g}{unit}"
    return f"{text} is nothing to hold {metric} to: it must be from {scale * low:g} {end}."


def _number(text: str) -> float | None:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


#: ``ece=0.03``
METRIC_LIMIT = _MetricLimit()
#: ``ece`` or ``ece=0.01``
MARGIN = _MetricLimit(margin=True, optional=True)

equivalence_option = click.option(
    "--margin",
    "margins",
    type=_MetricLimit(margin=True),
    multiple=True,
    help="Test whether methods are equivalent to the baseline: a smaller difference of METRIC counts as none.",
)
