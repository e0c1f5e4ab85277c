"""Sets of classes for some rows, and how well they cover."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.escaping import shown_name, visible
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint
from equipoise.decisions.exact import exact_interval

if TYPE_CHECKING:
    from equipoise.decisions.prediction_sets import PredictionSets

__all__ = ["ClassSets", "CoverageRow", "SetReport", "report_sets"]

#: Classes or groups that are named, from the least covered on.
_SHOWN = 3


@final
@dataclass(frozen=True)
class CoverageRow:
    """Coverage of some rows.

    Attributes:
        name: Class, group or set size.
        n: Number of rows.
        coverage: Share of the rows whose set contains the true class.
        coverage_low: Lower end of its exact interval.
        coverage_high: Upper end.
        mean_size: Mean number of classes in a set.
    """

    name: str
    n: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_size: float


@final
@dataclass(frozen=True)
class SetReport:
    """Coverage and sizes of prediction sets.

    Attributes:
        target: Coverage that was requested.
        n: Number of rows.
        coverage: Share of the rows whose set contains the true class.
        coverage_low: Lower end of its exact interval.
        coverage_high: Upper end.
        expected_low: Lower end of the interval in which the coverage lies, given the size of the calibration set.
        expected_high: Upper end.
        mean_size: Mean number of classes in a set.
        sizes: Number of rows by set size, from 0 on.
        by_class: Coverage by true class.
        by_size: Coverage by set size.
        by_group: Coverage by group, for every column of groups.
    """

    target: float
    n: int
    coverage: float
    coverage_low: float
    coverage_high: float
    expected_low: float
    expected_high: float
    mean_size: float
    sizes: tuple[int, ...]
    by_class: tuple[CoverageRow, ...]
    by_size: tuple[CoverageRow, ...]
    by_group: dict[str, tuple[CoverageRow, ...]]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    def describe(self) -> str:
        """Return coverage, sizes, and the classes and groups that are covered least, one line each."""
        sizes = ", ".join(
            f"{size}: {100 * count / self.n:.1f}%" for size, count in enumerate(self.sizes) if count
        )
        lines = [
            f"{100 * self.coverage:.1f}% of {self.n:,} sets contain the true class [{100 * self.coverage_low:.1f}, "
            f"{100 * self.coverage_high:.1f}]; requested {100 * self.target:.4g}%, to be expected between "
            f"{100 * self.expected_low:.1f} and {100 * self.expected_high:.1f}.\nMean size {self.mean_size:.2f} "
            f"classes; rows by size: {sizes}.",
            self._describe_parts("classes", self.by_class),
        ]
        lines += [
            self._describe_parts(f"groups of {visible(name)}", rows) for name, rows in self.by_group.items()
        ]
        return "\n".join(lines)

    def _describe_parts(self, what: str, parts: tuple[CoverageRow, ...]) -> str:
        """Return how many classes or groups lie below the requested coverage, and the three with the least."""
        below = [row for row in parts if row.coverage_high < self.target]
        least = sorted(parts, key=lambda row: row.coverage)[:_SHOWN]
        rows = ", ".join(
            f"{shown_name(row.name)} ({100 * row.coverage:.1f}% of {row.n:,} [{100 * row.coverage_low:.1f}, "
            f"{100 * row.coverage_high:.1f}])"
            for row in least
        )
        return (
            f"{len(below)} of {len(parts)} {what} have a 95% interval below the requested coverage (about 2.5% if "
            f"each had exactly this coverage). Least covered: {rows}."
        )


@final
@dataclass(frozen=True, eq=False)
class ClassSets:
    """A set of classes for every row.

    Attributes:
        members: Whether each class is in the set ``(n, k)``.
        predictions: The predictions behind the sets.
        made_by: The fitted sets.
    """

    members: Array
    predictions: Predictions
    made_by: PredictionSets

    @property
    def sizes(self) -> Array:
        """Number of classes in every set ``(n,)``."""
        result: Array = self.members.sum(axis=1)
        return result

    @property
    def covered(self) -> Array:
        """Whether every set contains the true class ``(n,)``."""
        result: Array = self.members[np.arange(len(self.members)), self.predictions.labels]
        return result

    def report(self) -> SetReport:
        """Return coverage and sizes, for labelled rows.

        Raises:
            SplitError: If the sets were fitted on these rows.
        """
        return report_sets(self)

    def p_values(self) -> dict[str, float]:
        """Return exact p-values of "the coverage is as requested" for labelled rows.

        There is one for every class or group in which the coverage must hold; without a condition, one under the empty
        name.
        """
        made_by, predictions = self.made_by, self.predictions
        keys, codes = np.unique(made_by.keys(predictions, predictions.labels), return_inverse=True)
        names = predictions.class_names if made_by.conditional == "class" else None
        counts, covered = np.bincount(codes), np.bincount(codes, self.covered)
        return {
            key if names is None else names[int(key)]: made_by.coverage_p_value(int(hits), int(n), key)
            for key, n, hits in zip(keys.tolist(), counts, covered, strict=True)
        }


def report_sets(sets: ClassSets) -> SetReport:
    """Return coverage and sizes of sets, for labelled rows."""
    predictions = sets.predictions
    labels = predictions.labels
    sets.made_by.check_disjoint(predictions)
    if predictions.fitted_on is not None:
        check_disjoint(predictions.rows, predictions.fitted_on, where="ClassSets.report")
    covered = sets.covered
    sizes = sets.sizes
    everything = _row("", covered, sizes)
    expected = sets.made_by.expected_coverage()
    names = predictions.class_names
    by_class = labels if names is None else np.array(names)[labels]
    return SetReport(
        target=sets.made_by.coverage,
        n=len(labels),
        coverage=everything.coverage,
        coverage_low=everything.coverage_low,
        coverage_high=everything.coverage_high,
        expected_low=expected[0],
        expected_high=expected[1],
        mean_size=everything.mean_size,
        sizes=tuple(np.bincount(sizes).tolist()),
        by_class=_rows(by_class, covered, sizes),
        by_size=_rows(sizes, covered, sizes),
        by_group={name: _rows(column, covered, sizes) for name, column in predictions.groups.items()},
    )


def _rows(column: Array, covered: Array, sizes: Array) -> tuple[CoverageRow, ...]:
    return tuple(
        _row(str(value), covered[column == value], sizes[column == value]) for value in np.unique(column)
    )


def _row(name: str, covered: Array, sizes: Array) -> CoverageRow:
    n, hits = len(covered), int(covered.sum())
    low, high = exact_interval(hits, n, 0.95)
    return CoverageRow(name, n, hits / n, low, high, float(sizes.mean()))
