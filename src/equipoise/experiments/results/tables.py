"""The table people want: methods in rows, metrics in columns, ties called ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from equipoise.core.frames import to_frame
from equipoise.core.tables import BOLD
from equipoise.evaluate import Difference
from equipoise.evaluate.differences import correct_family
from equipoise.experiments.results.costs import COST_NOTE, Cost, asks_for_costs, cost_cells, costs_of
from equipoise.experiments.results.groups import RunGroup, ScoredGroup, check_baseline, group_runs
from equipoise.experiments.results.means import Cell, cell_of, chosen_kinds, compare_methods, fit_warnings
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.scores import is_auto
from equipoise.experiments.runs.segmentation import DENSE, N_PIXELS
from equipoise.experiments.tuning.choices import describe_choice
from equipoise.metrics.clusters import Clusters
from equipoise.metrics.facts import COST_FACTS, columns, metric_facts

__all__ = ["COLUMNS", "ResultTable", "TableRow", "make_tables", "table_of", "tables_of_groups", "versus_of"]

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
        versus: By metric, against the baseline: ``"better"``, ``"worse"`` or ``"tie"``. With one seed of either it is
            ``"network better"``, ``"network worse"`` or ``"networks tie"``: about two networks, not about the methods.
        differences: From the baseline: one per metric that both have, columns or not. They allow for the number of
            methods that are compared with the baseline in this metric after this calibrator.
        equivalent: By metric that has a margin: whether the difference is shown to be smaller than the margin.
        printed: By metric: what a paper printed for the same data, network and method, with its source.
        warnings: What the fits of the calibrator warned of, with the seeds.
    """

    method: str
    calibrator: str
    fidelity: str
    cells: Mapping[str, Cell]
    marks: Mapping[str, str]
    versus: Mapping[str, str]
    printed: Mapping[str, str]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    equivalent: Mapping[str, bool] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


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
        level: Level of intervals and tests.
        margins: By metric: differences below this count as none.
        clusters: The clusters that were resampled; None if rows were.

    Example:
        >>> table = ResultTable(
        ...     data="digits", model="mlp", baseline="ce", metrics=(), rows=(), n_seeds=2, n_test=1000, n_bins=15
        ... )
        >>> table.caption[:62]
        'digits, mlp: mean ± standard error over 2 seeds and 1,000 test'
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
    level: float = 0.95
    margins: Mapping[str, float] = field(default_factory=dict)
    clusters: Clusters | None = None

    def __repr__(self) -> str:
        what = ", ".join(filter(None, (self.data, self.model)))
        return f"ResultTable({what}: {len(self.rows)} rows of {', '.join(self.metrics) or 'no metrics'})"

    def __str__(self) -> str:
        from equipoise.experiments.results.formatting import format_table

        return format_table(self)

    def _repr_html_(self) -> str:
        from equipoise.experiments.results.formatting import format_table

        return format_table(self, "html")

    @property
    def caption(self) -> str:
        """What the numbers are."""
        counts = {cell.n_seeds for row in self.rows for cell in row.cells.values()} or {self.n_seeds}
        few, many = min(counts), max(counts)
        number = str(many) if few == many else f"{few} to {many}"
        seeds = f"mean ± standard error over {number} seeds and" if many > 1 else "one seed,"
        what = ", ".join(filter(None, (self.data, self.model)))
        return " ".join(
            [
                f"{what}: {seeds} {self.n_test:,} test rows, {self.n_bins} bins, {self.n_resamples:,} resamples.",
                *([] if self.clusters is None else [self.clusters.sentence(self.n_test)]),
                "Temperature in parentheses.",
            ]
        )

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """The marks that the table can show, with their meaning."""
        found = [one for row in self.rows for one in row.differences.values()]
        several = any(cell.n_seeds > 1 for row in self.rows for cell in row.cells.values())
        marks = [(BOLD, "best"), *([("≈", "not shown to be worse than the best")] if several else [])]
        most = max((one.comparisons for one in found), default=1)
        family = f", corrected for {most} comparisons per metric and calibrator" if most > 1 else ""
        p = f"p < {1 - self.level:.2g}{family}"
        if any(one.n_seeds > 1 for one in found) or not found:
            marks += [
                ("+ and -", f"better and worse than {self.baseline} over seeds and test rows ({p})"),
                ("no sign", "no significant difference"),
            ]
        if any(one.n_seeds == 1 for one in found):
            marks += [
                (
                    "(+) and (-)",
                    f"this network is better or worse on these test rows than that of {self.baseline} ({p}); one seed "
                    "says nothing about the next training",
                )
            ]
        return tuple(marks)

    def detectable(self) -> dict[str, dict[str, float]]:
        """Return the smallest differences from the baseline that ties could have shown, with a power of 80%.

        Returns:
            By calibrator and metric: the median over the methods that tie with the baseline over several seeds.
        """
        found: dict[str, dict[str, list[float]]] = {}
        for row in self.rows:
            for metric in self.metrics:
                if row.versus.get(metric) == "tie":
                    one = row.differences[metric].detectable(level=self.level)
                    found.setdefault(row.calibrator, {}).setdefault(metric, []).append(one)
        return {name: {m: float(np.median(v)) for m, v in part.items()} for name, part in found.items()}

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
                "low": cell.low,
                "high": cell.high,
                "n_seeds": cell.n_seeds,
                "temperature": cell.temperature,
                "mark": row.marks[metric],
                "versus": row.versus[metric],
                **_difference_record(row, metric, self.level),
                "printed": row.printed.get(metric),
                "warnings": "; ".join(row.warnings),
            }
            for row in self.rows
            for metric, cell in row.cells.items()
        ]

    def difference_records(self) -> list[dict[str, Any]]:
        """Return every comparison with the baseline as one tidy row, metrics that are not shown included."""
        return [
            {
                "data": self.data,
                "model": self.model,
                "calibrator": row.calibrator,
                "baseline": self.baseline,
                "method": row.method,
                "metric": metric,
                "baseline_value": one.before,
                "value": one.after,
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "p_value": one.p_value,
                "verdict": versus_of(one),
                "n_seeds": one.n_seeds,
                "comparisons": one.comparisons,
                "error_rows": one.error.rows,
                "error_seeds": one.error.seeds,
                "detectable": one.detectable(level=self.level),
                **({"equivalent": row.equivalent[metric]} if metric in row.equivalent else {}),
            }
            for row in self.rows
            for metric, one in row.differences.items()
        ]

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame, one row per method, calibrator and metric.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        return to_frame(self.records())


def _difference_record(row: TableRow, metric: str, level: float) -> dict[str, Any]:
    """Return the difference from the baseline as plain values; None where there is none."""
    one = row.differences.get(metric)
    return {
        "difference": None if one is None else one.difference,
        "difference_low": None if one is None else one.low,
        "difference_high": None if one is None else one.high,
        "p_value": None if one is None else one.p_value,
        "comparisons": None if one is None else one.comparisons,
        "detectable": None if one is None else one.detectable(level=level),
        "equivalent": row.equivalent.get(metric),
    }


def make_tables(
    runs: Sequence[RunFolder],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = COLUMNS,
    margins: Mapping[str, float] | None = None,
) -> list[ResultTable]:
    """Return one table per dataset, network and recipe; runs that differ in a setting never share a cell.

    Args:
        runs: Finished runs.
        baseline: Label of the method others are compared with; the first by default.
        metrics: Columns.
        margins: By metric: a difference that is shown to be smaller is called equivalent.

    Returns:
        Tables, in the order in which data and networks first come.

    Raises:
        SpecError: If no run is of the baseline, or a metric is not known.

    Example:
        >>> make_tables([])
        []
    """
    return tables_of_groups(group_runs(runs), baseline=baseline, metrics=metrics, margins=margins)


def tables_of_groups(
    groups: Sequence[RunGroup],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = COLUMNS,
    margins: Mapping[str, float] | None = None,
) -> list[ResultTable]:
    """Return one table per group of runs; see :func:`make_tables`.

    Example:
        >>> tables_of_groups([])
        []
    """
    for metric in (*metrics, *(margins or ())):
        metric_facts(metric, what="metric of a table", of="runs")
    check_baseline(baseline, groups)
    priced = asks_for_costs(metrics)
    return [
        table_of(
            group,
            baseline=group.baseline(baseline),
            metrics=metrics,
            notes=(
                *map(describe_choice, group.choices.values()),
                *_protocol_notes(group),
                *([COST_NOTE] if priced else []),
            ),
            costs=costs_of(group) if priced else None,
            margins=margins,
        )
        for group in groups
        if group.methods
    ]


def _advised(group: ScoredGroup) -> list[str]:
    """Say which calibrators the advisor chose, where it was asked to."""
    return [
        f"{label} + {key}: the advisor chose {', '.join(chosen_kinds(seeds))}."
        for key in group.calibrators
        if is_auto(key)
        for label in group.methods
        if (seeds := group.seeds(label, key))
    ]


def _protocol_notes(group: RunGroup) -> list[str]:
    """Return a sentence for each choice of protocol that is not the usual one."""
    notes = []
    if any(spec.data.fit_split == "tune" for spec in group.specs.values()):
        notes.append("Calibrators were fitted on the whole validation set, which training may use too.")
    if any(part.test.closed == "left" for parts in group.scores.values() for part in parts.values()):
        notes.append("Bins are left-closed.")
    if len(group.calibrators) > 1 and any(run.has(DENSE) for run in group.runs):
        notes.append(
            "Scores are of all pixels, after calibrators too. "
            f"Calibrators were fitted on a random sample of at most {N_PIXELS:,} pixels."
        )
    return notes


def table_of(
    group: ScoredGroup,
    *,
    baseline: str,
    metrics: Sequence[str] = COLUMNS,
    notes: Sequence[str] = (),
    costs: Mapping[str, Mapping[int, Cost]] | None = None,
    margins: Mapping[str, float] | None = None,
) -> ResultTable:
    """Return the table of seeds that may stand in one.

    Args:
        group: What they are and what they scored.
        baseline: Label of the method others are compared with.
        metrics: Columns.
        notes: Sentences below it.
        costs: What methods took, for columns of cost.
        margins: By metric: a difference that is shown to be smaller is called equivalent.
    """
    found = _Blocks(group, baseline, metrics, costs or {}, margins or {}).table()
    return replace(found, notes=(*notes, *_advised(group)), margins=dict(margins or {}))


@final
class _Blocks:
    """The rows of a table: all methods after one calibrator, then all after the next."""

    def __init__(
        self,
        group: ScoredGroup,
        baseline: str,
        metrics: Sequence[str],
        costs: Mapping[str, Mapping[int, Cost]],
        margins: Mapping[str, float],
    ) -> None:
        self._group, self._baseline, self._margins = group, baseline, margins
        self._scores = {
            (calibrator, label): group.seeds(label, calibrator)
            for calibrator in group.calibrators
            for label in group.methods
        }
        every = {
            place: {m: cell_of(list(seeds.values()), m) for m in metrics}
            for place, seeds in self._scores.items()
        }
        self._cells = {
            place: {m: cell for m, cell in row.items() if cell is not None} for place, row in every.items()
        }
        self._add_costs(costs, metrics)
        self._columns = tuple(m for m in metrics if any(m in row for row in self._cells.values()))
        self._level = next(iter(next(iter(group.scores.values())).values())).test.level
        self._versus = {calibrator: self._families(calibrator) for calibrator in group.calibrators}
        self._best = {
            (calibrator, m): self._marks(calibrator, m)
            for calibrator in group.calibrators
            for m in self._columns
            if m not in COST_FACTS and self._rivals(calibrator, m)
        }

    def _add_costs(self, costs: Mapping[str, Mapping[int, Cost]], metrics: Sequence[str]) -> None:
        """Put columns of cost beside those of scores, for methods that were trained here."""
        if not costs:
            return
        scored = {place: cell_of(list(seeds.values()), "ece") for place, seeds in self._scores.items()}
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
            level=self._level,
            clusters=cards[0].clusters,
        )

    def _row(self, calibrator: str, label: str) -> TableRow:
        own = self._cells[calibrator, label]
        found = {metric: family.get(label) for metric, family in self._versus[calibrator].items()}
        differences = {metric: one for metric, one in found.items() if one is not None}
        return TableRow(
            method=label,
            calibrator=calibrator,
            fidelity=self._group.fidelity(label),
            cells=own,
            marks={m: self._best.get((calibrator, m), {}).get(label, "") for m in own},
            versus={m: versus_of(differences.get(m)) for m in own},
            printed=self._group.printed(label, calibrator, self._columns),
            differences=differences,
            equivalent={
                m: differences[m].is_equivalent(margin, level=self._level)
                for m, margin in self._margins.items()
                if m in differences
            },
            warnings=fit_warnings(self._scores[calibrator, label]),
        )

    def _rivals(self, calibrator: str, metric: str) -> list[str]:
        """Return the methods that have a metric after a calibrator."""
        return [
            label
            for (name, label), seeds in self._scores.items()
            if name == calibrator and any(np.isfinite(part.value(metric)) for part in seeds.values())
        ]

    def _families(self, calibrator: str) -> dict[str, dict[str, Difference]]:
        """Compare all methods with the baseline in every metric that both have, columns of the table or not."""
        parts = [
            part for (name, _), seeds in self._scores.items() if name == calibrator for part in seeds.values()
        ]
        keys = [m for m in self._columns if m not in COST_FACTS]
        keys += [key for part in parts for key in part.compared]
        return {key: self._against(calibrator, self._baseline, key) for key in dict.fromkeys(keys)}

    def _against(
        self, calibrator: str, first: str, metric: str, total: int | None = None
    ) -> dict[str, Difference]:
        """Compare all methods with one of them, corrected for their number, or for all pairs if that was selected."""
        level, base = self._level, self._scores[calibrator, first]
        found = {
            label: compare_methods(metric, base, self._scores[calibrator, label], level=level)
            for label in self._rivals(calibrator, metric)
            if label != first
        }
        known = {label: one for label, one in found.items() if one is not None}
        return dict(zip(known, correct_family(list(known.values()), level=level, total=total), strict=True))

    def _marks(self, calibrator: str, metric: str) -> dict[str, str]:
        """Return which method is the best in a metric, and which are not shown to be worse."""
        rivals = self._rivals(calibrator, metric)
        badness = metric_facts(metric).badness
        leader = min(rivals, key=lambda label: badness(self._cells[calibrator, label][metric].mean))
        found = self._against(calibrator, leader, metric, len(rivals) * (len(rivals) - 1) // 2)
        tied = {label: one.n_seeds > 1 and one.verdict == "tie" for label, one in found.items()}
        return {leader: "best", **{label: "tied" if is_tied else "" for label, is_tied in tied.items()}}


def versus_of(difference: Difference | None) -> str:
    """Return how a method stands against the baseline; one seed of each is about these two networks only.

    Example:
        >>> versus_of(None)
        ''
    """
    if difference is None:
        return ""
    if difference.n_seeds > 1:
        return difference.verdict
    return {"tie": "networks tie"}.get(difference.verdict, f"network {difference.verdict}")
