"""The record of what is known about one metric, and how its values are shown and compared."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["MetricFacts"]


class MetricFacts(NamedTuple):
    """One metric.

    Attributes:
        key: What programs and gates call it.
        title: What sentences call it.
        short: What tables call it.
        meaning: What it says, in a few words.
        better: Which way is better; ``"zero"`` for a signed number that is best at zero.
        percent: Whether it is a share, shown in percent.
        low: The smallest it can be, which its interval does not leave.
        high: The largest.
        is_error: Whether chance alone pushes it up from zero, where a calibrated model would be.
        is_paired: Whether two models are compared in it row by row.
        needs_scores: Whether it needs the scores of every class, not only the predicted class and its confidence.
        only_confidence: Whether it is scored only where a confidence is known and the scores of every class are not.
        part_of: The metric it is a part of.
        column: Its place among the columns of a comparison, from 0; None if it has none.
        is_main: Whether it is printed where space is short: in a line, per epoch, by severity of a shift.
        decimals: Digits after the point where it is shown; None for the usual number.
        home: Where it is found: on every scorecard (``"card"``), in tables of runs that ask for it (``"runs"``), or
            only where it is computed by itself (``"alone"``).
        instead: If it is on no scorecard: why, or where it is to be had.

    Example:
        >>> from equipoise.metrics.facts import metric_facts
        >>> ece = metric_facts("ece")
        >>> ece.title, ece.better, ece.text(0.031)
        ('ECE', 'lower', '3.10%')
    """

    key: str
    title: str
    short: str
    meaning: str
    better: Literal["lower", "higher", "zero"] = "lower"
    percent: bool = True
    low: float = 0.0
    high: float = 1.0
    is_error: bool = False
    is_paired: bool = False
    needs_scores: bool = False
    only_confidence: bool = False
    part_of: str | None = None
    column: int | None = None
    is_main: bool = False
    decimals: int | None = None
    home: Literal["card", "runs", "alone"] = "card"
    instead: str = ""

    @property
    def absence(self) -> str:
        """Why it is on no scorecard; empty for those that are."""
        return f"no scorecard has it; {self.instead}" if self.instead else ""

    @property
    def label(self) -> str:
        """The name at the start of a table's row; parts stand indented below their whole."""
        return f"  {self.short}" if self.part_of else self.title

    @property
    def head(self) -> str:
        """The name on top of a table's column, with the unit."""
        return f"{self.short} %" if self.percent else self.short

    @property
    def scale(self) -> float:
        """What a value is multiplied by where it is shown."""
        return 100.0 if self.percent else 1.0

    @property
    def digits(self) -> int:
        """Digits after the point where it is shown."""
        return self.decimals if self.decimals is not None else 2 if self.percent else 4

    def number(self, value: float) -> str:
        """Return a value as it is shown, without unit; signed where the sign says something.

        Example:
            >>> from equipoise.metrics.facts import metric_facts
            >>> metric_facts("confidence_gap").number(0.1), metric_facts("nll").number(0.25)
            ('+10.00', '0.2500')
        """
        sign = "+" if self.better == "zero" else ""
        return f"{self.scale * value:{sign}.{self.digits}f}"

    def text(self, value: float) -> str:
        """Return a value as it is shown, with its unit.

        Example:
            >>> from equipoise.metrics.facts import metric_facts
            >>> metric_facts("accuracy").text(0.9), metric_facts("nll").text(0.25)
            ('90.00%', '0.2500')
        """
        return f"{self.number(value)}%" if self.percent else self.number(value)

    def badness(self, value: float) -> float:
        """Return a number that is the lower the better, whichever way the metric itself goes.

        Example:
            >>> from equipoise.metrics.facts import metric_facts
            >>> metric_facts("accuracy").badness(0.9), metric_facts("confidence_gap").badness(-0.1)
            (-0.9, 0.1)
        """
        if self.better == "zero":
            return abs(value)
        return value if self.better == "lower" else -value

    def is_better(self, value: float, than: float) -> bool:
        """Return whether one value is better than another.

        Example:
            >>> from equipoise.metrics.facts import metric_facts
            >>> metric_facts("accuracy").is_better(0.9, than=0.8), metric_facts("ece").is_better(0.9, than=0.8)
            (True, False)
        """
        return self.badness(value) < self.badness(than)
