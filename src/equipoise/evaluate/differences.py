"""What a comparison finds: one difference per metric, and how it is written."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import Literal, NamedTuple

from equipoise.core.names import look_up
from equipoise.core.notebook import html_table
from equipoise.evaluate.verdict import p_number
from equipoise.metrics.facts import metric_facts

__all__ = ["Difference", "Differences", "difference_table", "plain_differences", "verdict_of"]

_FIRST, _SECOND = "first better", "second better"


class Difference(NamedTuple):
    """One metric of two models.

    Attributes:
        metric: Its key.
        first: The first model's value.
        second: The second's.
        difference: Second minus first.
        low: Lower end of the difference's interval.
        high: Upper end.
        p_value: How often resampling alone moves the difference this far.
        verdict: ``"second better"``, ``"first better"`` or ``"tie"``.
    """

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float
    verdict: str

    @property
    def second_is(self) -> Literal["better", "worse", "tie"]:
        """How the second stands against the first.

        Example:
            >>> Difference("ece", 0.1, 0.2, 0.1, 0.05, 0.15, 0.001, "first better").second_is
            'worse'
        """
        if self.verdict == _SECOND:
            return "better"
        return "worse" if self.verdict == _FIRST else "tie"

    def turned(self) -> Difference:
        """Return the same difference with the two models in each other's place.

        Example:
            >>> Difference("ece", 0.1, 0.2, 0.1, 0.05, 0.15, 0.001, "first better").turned()[1:6]
            (0.2, 0.1, -0.1, -0.15, -0.05)
        """
        # Taken from zero, since the negative of zero would be shown with a minus sign.
        difference, low, high = (0.0 - value for value in (self.difference, self.high, self.low))
        verdict = {_FIRST: _SECOND, _SECOND: _FIRST}.get(self.verdict, self.verdict)
        return Difference(self.metric, self.second, self.first, difference, low, high, self.p_value, verdict)


class Differences(tuple[Difference, ...], ABC):
    """Differences of two models, one per metric; print it for a table."""

    __slots__ = ()

    def of(self, metric: str) -> Difference:
        """Return the difference in one metric.

        Raises:
            SpecError: If it was not compared.
        """
        return look_up(metric, {row.metric: row for row in self}, what="metric to compare")

    def __str__(self) -> str:
        return plain_differences(self)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{row.metric}: {row.verdict}" for row in self)
        return f"{type(self).__name__}({verdicts})"

    def _repr_html_(self) -> str:
        return html_table(*difference_table(self))


def plain_differences(rows: Iterable[Difference]) -> str:
    """Return differences as a table of text.

    Example:
        >>> print(plain_differences([Difference("ece", 0.2, 0.1, -0.1, -0.15, -0.05, 0.001, "second better")]))
               first   second  difference  interval              p      verdict
        ECE  20.0000  10.0000    -10.0000  [-15.0000, -5.0000]  0.001  second better
    """
    heads, cells = difference_table(rows)
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [
        "  ".join(
            text.rjust(width) if 0 < place < 4 else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (heads, *cells)
    ]
    return "\n".join(lines)


def difference_table(rows: Iterable[Difference]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heads and cells of a table of differences."""
    heads = ("", "first", "second", "difference", "interval", "p", "verdict")
    return heads, [_difference_cells(row) for row in rows]


def _difference_cells(row: Difference) -> tuple[str, ...]:
    facts = metric_facts(row.metric)
    low, high = (f"{facts.scale * end:+.4f}" for end in (row.low, row.high))
    return (
        facts.title,
        *(f"{facts.scale * value:.4f}" for value in (row.first, row.second)),
        f"{facts.scale * row.difference:+.4f}",
        f"[{low}, {high}]",
        p_number(row.p_value),
        row.verdict,
    )


def verdict_of(metric: str, first: float, second: float, *, significant: bool) -> str:
    """Return in words which of two values is the better one.

    Example:
        >>> verdict_of("ece", 0.2, 0.1, significant=True)
        'second better'
    """
    if not significant:
        return "tie"
    return _SECOND if metric_facts(metric).is_better(second, than=first) else _FIRST
