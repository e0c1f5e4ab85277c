"""What a comparison finds: one difference per metric, and how it is written."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from equipoise.core.names import look_up
from equipoise.core.tables import Table
from equipoise.evaluate.standard_error import StandardError, error_over_seeds
from equipoise.evaluate.verdict import p_number
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.row_draws import RowDraws
from equipoise.metrics.target import TOP, Target, target_facts

__all__ = [
    "Difference",
    "Differences",
    "difference_table",
    "difference_test",
    "plain_differences",
    "verdict_of",
]


#: Whether the value after is better or worse than the value before.
DifferenceVerdict: TypeAlias = Literal["better", "worse", "tie"]
_OPPOSITE: dict[DifferenceVerdict, DifferenceVerdict] = {"better": "worse", "worse": "better", "tie": "tie"}


class Difference(NamedTuple):
    """One metric of two models, or of two methods over seeds.

    Interval, p-value and verdict come from one test: the interval excludes zero exactly when the p-value is below one
    minus its level, and then, and only then, the verdict is not a tie.

    Attributes:
        metric: Its key.
        before: Value of the first model, the baseline.
        after: Value of the second.
        difference: After minus before.
        low: Lower end of the difference's interval.
        high: Upper end.
        p_value: Probability of a difference at least this large if there is none, corrected for ``comparisons``.
        verdict: Whether the value after is ``"better"`` or ``"worse"`` than the value before, or a ``"tie"``.
        error: The standard error of the difference.
        n_seeds: Trainings of each method; one is a comparison of two networks.
        comparisons: How many comparisons were made together; see :func:`correct_family`.
        correction: By how much the level of the test and of the interval is stricter for it.
        target: What the numbers are of: ``"top"``, ``"classwise"``, or the probability, such as ``"P(fraud)"``.
    """

    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    p_value: float
    verdict: DifferenceVerdict
    error: StandardError = StandardError(np.nan)
    n_seeds: int = 1
    comparisons: int = 1
    correction: float = 1.0
    target: str = "top"

    @property
    def title(self) -> str:
        """The title of the metric, with what it is of.

        Example:
            >>> Difference("ece", 0.1, 0.2, 0.1, 0.05, 0.15, 0.001, "worse", target="P(fraud)").title
            'ECE of P(fraud)'
        """
        if self.target in ("top", "classwise"):
            return target_facts(self.metric, TOP if self.target == "top" else Target("classwise")).title
        event = self.target.removeprefix("P(").removesuffix(")")
        return target_facts(self.metric, Target("positive", None, event)).title

    def turned(self) -> Difference:
        """Return the same difference with the two models in each other's place.

        Example:
            >>> Difference("ece", 0.1, 0.2, 0.1, 0.05, 0.15, 0.001, "worse").turned()[1:6]
            (0.2, 0.1, -0.1, -0.15, -0.05)
        """
        # Taken from zero, since the negative of zero would be shown with a minus sign.
        difference, low, high = (0.0 - value for value in (self.difference, self.high, self.low))
        verdict = _OPPOSITE[self.verdict]
        return self._replace(
            before=self.after, after=self.before, difference=difference, low=low, high=high, verdict=verdict
        )

    def detectable(self, *, level: float = 0.95, power: float = 0.8) -> float:
        """Return the smallest true difference that this comparison finds with the given probability.

        Example:
            >>> round(difference_test("ece", 0.2, 0.19, StandardError(0.01)).detectable(), 3)
            0.028
        """
        return self.error.detectable((1 - level) / self.correction, power=power)

    def is_equivalent(self, margin: float, *, level: float = 0.95) -> bool:
        """Return whether the difference is shown to be smaller than a margin, by two one-sided tests.

        Example:
            >>> one = difference_test("ece", 0.2, 0.201, StandardError(0.001))
            >>> one.is_equivalent(0.01), one.is_equivalent(0.002)
            (True, False)
        """
        return abs(self.difference) + self.error.half_width(2 * (1 - level) / self.correction) < margin


def difference_test(
    metric: str, before: float, after: float, error: StandardError, *, n_seeds: int = 1, level: float = 0.95
) -> Difference:
    """Test whether two values of a metric differ by more than chance explains.

    Args:
        metric: Its key.
        before: Value of the baseline.
        after: Value that is compared with it.
        error: Standard error of their difference.
        n_seeds: Trainings of each.
        level: Level of the interval.

    Example:
        >>> difference_test("ece", 0.2, 0.1, StandardError(0.01)).verdict
        'better'
    """
    difference = after - before
    found = Difference(metric, before, after, difference, 0.0, 0.0, 1.0, "tie", error, n_seeds)
    return _with_verdict(found, error.p_value(difference), level)


def correct_family(
    family: Sequence[Difference], *, level: float = 0.95, total: int | None = None
) -> list[Difference]:
    """Return differences that are compared together, corrected for their number (Benjamini and Hochberg).

    If nothing differs, the probability that any is called a difference is at most ``1 - level``. If some do, at most
    that share of the calls is false on average. With R calls among m comparisons, intervals have the level at which
    these were made, ``1 - (1 - level) R / m``, so that they exclude zero exactly for the R.

    Args:
        family: Differences in one metric.
        level: Level of the family.
        total: How many comparisons there are, if more than these; such as all pairs from which a pair was selected.

    Example:
        >>> one = difference_test("ece", 0.2, 0.12, StandardError(0.04))
        >>> none = difference_test("ece", 0.2, 0.2, StandardError(0.04))
        >>> [row.verdict for row in correct_family([one, none, none])]
        ['tie', 'tie', 'tie']
        >>> [row.verdict for row in correct_family([one, one, one])]
        ['better', 'better', 'better']

    Reference:
        Benjamini and Hochberg (1995), Controlling the false discovery rate. Intervals: Benjamini and Yekutieli (2005).
    """
    m = max(len(family), total or 0)
    raw = np.array([row.error.p_value(row.difference) for row in family])
    order = np.argsort(raw, kind="stable")
    corrected = np.empty(len(raw))
    ranked = raw[order] * m / np.arange(1, len(raw) + 1)
    corrected[order] = np.minimum(np.minimum.accumulate(ranked[::-1])[::-1], 1.0)
    n_called = int(np.count_nonzero(corrected < 1 - level))
    return [
        _with_verdict(row._replace(comparisons=m, correction=m / max(1, n_called)), float(p_value), level)
        for row, p_value in zip(family, corrected, strict=True)
    ]


def _with_verdict(row: Difference, p_value: float, level: float) -> Difference:
    """Return a difference with its interval and verdict, which agree with a p-value."""
    # Differences that only rounding makes are none.
    half = max(
        row.error.half_width((1 - level) / row.correction), abs(row.difference) if p_value == 1 else 0.0
    )
    return row._replace(
        low=row.difference - half,
        high=row.difference + half,
        p_value=p_value,
        verdict=verdict_of(
            row.metric, row.after - row.difference, row.after, significant=p_value < 1 - level
        ),
    )


def paired_difference(
    metric: str, before: Sequence[RowDraws], after: Sequence[RowDraws], *, level: float = 0.95
) -> Difference:
    """Compare two methods by the same seeds on the same rows, or two models if there is one of each.

    Args:
        metric: Key of the metric.
        before: Draws of the baseline, one per seed.
        after: Draws of the other method, for the same seeds in the same order, with the same resamples.
        level: Level of the interval.
    """
    pairs = list(zip(before, after, strict=True))
    values = [two.values[metric] - one.values[metric] for one, two in pairs]
    draws = [two.draws[metric] - one.draws[metric] for one, two in pairs]
    return difference_test(
        metric,
        float(np.mean([one.values[metric] for one in before])),
        float(np.mean([one.values[metric] for one in after])),
        error_over_seeds(values, draws, before[0].plan.n_units),
        n_seeds=len(pairs),
        level=level,
    )


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
        return difference_table(self).to_html()


def plain_differences(rows: Iterable[Difference]) -> str:
    """Return differences as a table of text.

    Example:
        >>> print(plain_differences([Difference("ece", 0.2, 0.1, -0.1, -0.15, -0.05, 0.001, "better")]))
              before    after  difference  interval              p      verdict
        ECE  20.0000  10.0000    -10.0000  [-15.0000, -5.0000]  0.001  better
    """
    return difference_table(rows).to_text()


def difference_table(rows: Iterable[Difference]) -> Table:
    """Return differences as a table."""
    heads = ("", "before", "after", "difference", "interval", "p", "verdict")
    return Table.of(heads, map(_difference_cells, rows), align="lrrrlll")


def _difference_cells(row: Difference) -> tuple[str, ...]:
    facts = metric_facts(row.metric)
    low, high = (f"{facts.scale * end:+.4f}" for end in (row.low, row.high))
    return (
        row.title,
        *(f"{facts.scale * value:.4f}" for value in (row.before, row.after)),
        f"{facts.scale * row.difference:+.4f}",
        f"[{low}, {high}]",
        p_number(row.p_value),
        row.verdict,
    )


def verdict_of(metric: str, before: float, after: float, *, significant: bool) -> DifferenceVerdict:
    """Return whether the second of two values is better or worse than the first, or a tie.

    Example:
        >>> verdict_of("ece", 0.2, 0.1, significant=True)
        'better'
    """
    if not significant:
        return "tie"
    return "better" if metric_facts(metric).is_better(after, than=before) else "worse"
