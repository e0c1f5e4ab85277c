"""The table people want: methods in rows, metrics in columns, ties called ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from equipoise.core.frames import to_frame
from equipoise.evaluate import Difference
from equipoise.experiments.costs import COST_NOTE, Cost, asks_for_costs, cost_cells, costs_of
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.judged import ComparedPair, JudgedGroup
from equipoise.experiments.results import (
    Cell,
    SeedDifferences,
    cell_of,
    difference_of_cells,
    paired_differences,
    seed_differences,
)
from equipoise.experiments.run_groups import RunGroup, check_baseline, group_runs
from equipoise.experiments.tuning_outcome import describe_choice
from equipoise.metrics.facts import COST_FACTS, columns, metric_facts

__all__ = ["COLUMNS", "ResultTable", "TableRow", "make_tables", "table_of", "tables_of_groups"]

#: The metrics of the table, proper scores beside calibration.
COLUMNS = (*columns()[:6], "mean_iou")


@final
@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One method after one calibrator.

    Attributes:
        method: Label of the method.
        calibrator: Key of the calibrator.
        fidelity: How far the method was checked against its paper.
        cells: By metric; a metric that could not be computed is left out.
        marks: By metric: ``"best"``, ``"tied"`` with the best, or empty.
        versus: By metric: ``"better"``, ``"worse"`` or ``"tie"`` against the baseline.
        differences: From the baseline, on the same rows: one per metric that has a paired test, columns or not.
        printed: By metric: what a paper printed for the same data, network and method, with its source.
    """

    method: str
    calibrator: str
    fidelity: str
    cells: Mapping[str, Cell]
    marks: Mapping[str, str]
    versus: Mapping[str, str]
    printed: Mapping[str, str]
    differences: Mapping[str, Difference] = field(default_factory=dict)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class ResultTable:
    """Results on one dataset with one network.

    Attributes:
        data: Key of the dataset, with what sets it apart if there are several tables for it.
        model: Key of the network.
        baseline: Label of the method others are compared with.
        metrics: Columns.
        rows: Methods, each after every calibrator.
        n_seeds: Seeds of the method that has most.
        n_test: Test rows.
        n_bins: Bins of the binned metrics.
        n_resamples: Resamples behind intervals and tests; the fewest, if runs differ.
        notes: What was chosen on ``tune`` and what it cost, a sentence per method.
        by_seed: What the tests rest on: differences on the same rows, by calibrator, two methods and seed.

    Example:
        >>> table = ResultTable(
        ...     data="digits", model="mlp", baseline="ce", metrics=(), rows=(), n_seeds=2, n_test=1000, n_bins=15
        ... )
        >>> table.caption[:59]
        'digits, mlp: mean ± standard error over 2 seeds, 1,000 test'
    """

    data: str
    model: str
    baseline: str
    metrics: tuple[str, ...]
    rows: tuple[TableRow, ...]
    n_seeds: int
    n_test: int
    n_bins: int
    n_resamples: int = 1000
    notes: tuple[str, ...] = ()
    by_seed: SeedDifferences = field(default_factory=dict)

    def __repr__(self) -> str:
        what = ", ".join(filter(None, (self.data, self.model)))
        return f"ResultTable({what}: {len(self.rows)} rows of {', '.join(self.metrics) or 'no metrics'})"

    def __str__(self) -> str:
        from equipoise.experiments.formatting import format_table  # which knows tables

        return format_table(self)

    def _repr_html_(self) -> str:
        from equipoise.experiments.formatting import html_of

        return html_of(self)

    @property
    def caption(self) -> str:
        """What the numbers are, in one sentence."""
        counts = {cell.n_seeds for row in self.rows for cell in row.cells.values()} or {self.n_seeds}
        few, many = min(counts), max(counts)
        number = str(many) if few == many else f"{few} to {many}"
        seeds = f"mean ± standard error over {number} seeds" if many > 1 else "one seed"
        what = ", ".join(filter(None, (self.data, self.model)))
        return (
            f"{what}: {seeds}, {self.n_test:,} test rows, {self.n_bins} bins, "
            f"{self.n_resamples:,} resamples. "
            f"Best in bold; ≈ is tied with the best; + is better and - worse than {self.baseline} by a paired test "
            "(p < 0.05), neither is a tie. The temperature in brackets."
        )

    def records(self) -> list[dict[str, Any]]:
        """Return one tidy row per method, calibrator and metric.

        Example:
            >>> ResultTable(
            ...     data="digits", model="mlp", baseline="ce", metrics=(), rows=(), n_seeds=2, n_test=9, n_bins=15
            ... ).records()
            []
        """
        return [
            {
                "data": self.data,
                "model": self.model,
                "method": row.method,
                "calibrator": row.calibrator,
                "metric": metric,
                "mean": cell.mean,
                "error": cell.error,
                "n_seeds": cell.n_seeds,
                "temperature": cell.temperature,
                "mark": row.marks[metric],
                "versus": row.versus[metric],
                "printed": row.printed.get(metric),
            }
            for row in self.rows
            for metric, cell in row.cells.items()
        ]

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame, one row per method, calibrator and metric.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        return to_frame(self.records())


def make_tables(
    runs: Sequence[RunFolder], *, baseline: str | None = None, metrics: Sequence[str] = COLUMNS
) -> list[ResultTable]:
    """Return one table per dataset, network and recipe; runs that differ in a setting never share a cell.

    Args:
        runs: Finished runs.
        baseline: Label of the method others are compared with; the first by default.
        metrics: Columns.

    Returns:
        Tables, in the order in which data and networks first come.

    Raises:
        SpecError: If no run is of the baseline, or a metric is not known.

    Example:
        >>> make_tables([])
        []
    """
    return tables_of_groups(group_runs(runs), baseline=baseline, metrics=metrics)


def tables_of_groups(
    groups: Sequence[RunGroup], *, baseline: str | None = None, metrics: Sequence[str] = COLUMNS
) -> list[ResultTable]:
    """Return one table per group of runs; see :func:`make_tables`.

    Example:
        >>> tables_of_groups([])
        []
    """
    for metric in metrics:
        metric_facts(metric, what="metric of a table", of="runs")
    check_baseline(baseline, groups)
    priced = asks_for_costs(metrics)
    return [
        table_of(
            group,
            baseline=group.baseline(baseline),
            metrics=metrics,
            notes=(*map(describe_choice, group.choices.values()), *([COST_NOTE] if priced else [])),
            costs=costs_of(group) if priced else None,
        )
        for group in groups
        if group.methods
    ]


def table_of(
    group: JudgedGroup,
    *,
    baseline: str,
    metrics: Sequence[str] = COLUMNS,
    notes: Sequence[str] = (),
    costs: Mapping[str, Mapping[int, Cost]] | None = None,
) -> ResultTable:
    """Return the table of seeds that may stand in one.

    Args:
        group: What they are and what they scored.
        baseline: Label of the method others are compared with.
        metrics: Columns.
        notes: Sentences below it.
        costs: What methods took, for columns of cost.
    """
    return replace(_Blocks(group, baseline, metrics, costs or {}).table(), notes=tuple(notes))


@final
class _Blocks:
    """The rows of a table: all methods after one calibrator, then all after the next."""

    def __init__(
        self,
        group: JudgedGroup,
        baseline: str,
        metrics: Sequence[str],
        costs: Mapping[str, Mapping[int, Cost]],
    ) -> None:
        self._group, self._baseline = group, baseline
        every = {
            (calibrator, label): {m: cell_of(group.scored(label, calibrator), m) for m in metrics}
            for calibrator in group.calibrators
            for label in group.methods
        }
        self._cells = {
            place: {m: cell for m, cell in row.items() if cell is not None} for place, row in every.items()
        }
        self._add_costs(costs, metrics)
        self._columns = tuple(m for m in metrics if any(m in row for row in self._cells.values()))
        self._by_seed = seed_differences(group, self._pairs())
        self._paired = paired_differences(self._by_seed)

    def _add_costs(self, costs: Mapping[str, Mapping[int, Cost]], metrics: Sequence[str]) -> None:
        """Put columns of cost beside those of scores, for methods that were trained here."""
        if not costs:
            return
        scored = {place: cell_of(self._group.scored(place[1], place[0]), "ece") for place in self._cells}
        for (calibrator, label), row in self._cells.items():
            if label in costs and scored[calibrator, label] is not None:
                ece = {other: cell for (name, other), cell in scored.items() if name == calibrator and cell}
                found = cost_cells(costs, label=label, baseline=self._baseline, ece=ece)
                row.update({metric: cell for metric, cell in found.items() if metric in metrics})

    def table(self) -> ResultTable:
        """Return the table."""
        cards = [part.test for parts in self._group.scores.values() for part in parts.values()]
        return ResultTable(
            data=self._group.title,
            model=self._group.model,
            baseline=self._baseline,
            metrics=self._columns,
            rows=tuple(self._row(*place) for place, cells in self._cells.items() if cells),
            n_seeds=max(len(runs) for runs in self._group.methods.values()),
            n_test=cards[0].n_samples,
            n_bins=cards[0].n_bins,
            n_resamples=min(card.n_resamples for card in cards),
            by_seed=self._by_seed,
        )

    def _pairs(self) -> list[ComparedPair]:
        """Return what is to be compared: every method with the baseline, and with the best by each metric."""
        rivals = {
            calibrator: {
                self._baseline,
                *(self._leader(calibrator, m) for m in self._columns if m not in COST_FACTS),
            }
            for calibrator in self._group.calibrators
        }
        return [
            (calibrator, rival, label)
            for calibrator, label in self._cells
            for rival in rivals[calibrator]
            if rival not in ("", label)
        ]

    def _leader(self, calibrator: str, metric: str) -> str:
        means = {
            label: metric_facts(metric).badness(row[metric].mean)
            for (name, label), row in self._cells.items()
            if name == calibrator and metric in row
        }
        return min(means, key=means.__getitem__, default="")

    def _row(self, calibrator: str, label: str) -> TableRow:
        own = self._cells[calibrator, label]
        return TableRow(
            method=label,
            calibrator=calibrator,
            fidelity=self._group.fidelity(label),
            cells=own,
            marks={m: self._mark(calibrator, label, m) for m in own},
            versus={m: self._versus(calibrator, label, m) for m in own},
            printed=self._group.printed(label, calibrator, self._columns),
            differences=self._paired.get((calibrator, self._baseline, label), {}),
        )

    def _mark(self, calibrator: str, label: str, metric: str) -> str:
        if metric in COST_FACTS:  # no test tells whether a cost is a better one
            return ""
        leader = self._leader(calibrator, metric)
        if label == leader:
            return "best"
        return "tied" if self._difference(calibrator, leader, label, metric).second_is == "tie" else ""

    def _versus(self, calibrator: str, label: str, metric: str) -> str:
        if metric in COST_FACTS:
            return ""
        if label == self._baseline or metric not in self._cells[calibrator, self._baseline]:
            return ""
        return self._difference(calibrator, self._baseline, label, metric).second_is

    def _difference(self, calibrator: str, one: str, other: str, metric: str) -> Difference:
        """Compare two methods: on the same rows by the seeds that both have, or else by their intervals."""
        found = self._paired.get((calibrator, one, other), {}).get(metric)
        cells = [self._cells[calibrator, label][metric] for label in (one, other)]
        return found or difference_of_cells(metric, *cells)
