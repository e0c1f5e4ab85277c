"""The table people want: methods in rows, metrics in columns, ties called ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from equipoise.experiments.folder import RunFolder
from equipoise.experiments.methods import method_entry
from equipoise.experiments.places import Place, check_baseline, find_places
from equipoise.experiments.published import Published, published_for
from equipoise.experiments.results import Cell, Contrast, cells, contrast, contrast_of_cells, gather_rows
from equipoise.experiments.spec import Spec
from equipoise.metrics.facts import columns, metric_facts

__all__ = ["COLUMNS", "Table", "TableRow", "make_tables"]

#: The metrics of the table, proper scores beside calibration.
COLUMNS = columns()[:6]


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
        printed: By metric: what a paper printed for the same data, network and method, with its source.
    """

    method: str
    calibrator: str
    fidelity: str
    cells: Mapping[str, Cell]
    marks: Mapping[str, str]
    versus: Mapping[str, str]
    printed: Mapping[str, str]


@final
@dataclass(frozen=True, kw_only=True)
class Table:
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

    Example:
        >>> table = Table(
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

    @property
    def caption(self) -> str:
        """What the numbers are, in one sentence."""
        counts = {cell.n_seeds for row in self.rows for cell in row.cells.values()} or {self.n_seeds}
        few, many = min(counts), max(counts)
        number = str(many) if few == many else f"{few} to {many}"
        seeds = f"mean ± standard error over {number} seeds" if many > 1 else "one seed"
        return (
            f"{self.data}, {self.model}: {seeds}, {self.n_test:,} test rows, {self.n_bins} bins. "
            f"Best in bold; ≈ is tied with the best; ↑ better and ↓ worse than {self.baseline} by a paired test "
            "(p < 0.05), no arrow is a tie. T in brackets."
        )


def make_tables(
    runs: Sequence[RunFolder], *, baseline: str | None = None, metrics: Sequence[str] = COLUMNS
) -> list[Table]:
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
    for metric in metrics:
        metric_facts(metric, what="metric of a scorecard")
    places = find_places(runs)
    check_baseline(baseline, places)
    return [_table(place, baseline, metrics) for place in places]


def _table(place: Place, baseline: str | None, metrics: Sequence[str]) -> Table:
    rows = gather_rows(place.runs)
    found = cells(rows)
    chosen = place.baseline(baseline)
    calibrators = list(dict.fromkeys(name for run in place.runs for name in run.calibrators()))
    columns = tuple(metric for metric in metrics if any(key[2] == metric for key in found))
    test = next(row for row in rows if row["split"] == "test")
    n_bins = int(test["n_bins"])
    blocks = [_Block(place, calibrator, chosen, columns, found, n_bins) for calibrator in calibrators]
    return Table(
        data=place.title,
        model=place.model,
        baseline=chosen,
        metrics=columns,
        rows=tuple(row for block in blocks for row in block.rows()),
        n_seeds=max(len(group) for group in place.methods.values()),
        n_test=int(test["n_samples"]),
        n_bins=n_bins,
    )


@final
class _Block:
    """The rows of all methods after one calibrator."""

    def __init__(
        self,
        place: Place,
        calibrator: str,
        baseline: str,
        columns: Sequence[str],
        found: Mapping[tuple[str, str, str], Cell],
        n_bins: int,
    ) -> None:
        self._place, self._calibrator, self._baseline, self._n_bins = place, calibrator, baseline, n_bins
        self._columns = columns
        every = {
            label: {m: found[label, calibrator, m] for m in columns if (label, calibrator, m) in found}
            for label in place.methods
        }
        self._cells = {label: row for label, row in every.items() if row}
        self._pairs: dict[tuple[str, str], dict[str, Contrast]] = {}

    def rows(self) -> list[TableRow]:
        """Return one row per method that was scored after this calibrator."""
        leaders = {m: self._leader(m) for m in self._columns}
        return [self._row(label, leaders) for label in self._cells]

    def _leader(self, metric: str) -> str:
        known = [label for label in self._cells if metric in self._cells[label]]
        return min(
            known, key=lambda label: metric_facts(metric).badness(self._cells[label][metric].mean), default=""
        )

    def _row(self, label: str, leaders: Mapping[str, str]) -> TableRow:
        spec = self._place.specs[self._place.methods[label][0].name]
        own = self._cells[label]
        return TableRow(
            method=label,
            calibrator=self._calibrator,
            fidelity=method_entry(spec.objective).fidelity,
            cells=own,
            marks={m: self._mark(label, leaders[m], m) for m in own},
            versus={m: self._versus(label, m) for m in own},
            printed=_printed(spec, self._calibrator, self._columns),
        )

    def _mark(self, label: str, leader: str, metric: str) -> str:
        if label == leader:
            return "best"
        return "" if self._difference(leader, label, metric).is_clear() else "tied"

    def _versus(self, label: str, metric: str) -> str:
        base = self._cells.get(self._baseline, {})
        if label == self._baseline or metric not in base:
            return ""
        found = self._difference(self._baseline, label, metric)
        if not found.is_clear():
            return "tie"
        own = self._cells[label][metric].mean
        return "better" if metric_facts(metric).is_better(own, than=base[metric].mean) else "worse"

    def _difference(self, one: str, other: str, metric: str) -> Contrast:
        """Compare two methods: on the same rows by the seeds that both have, or else by their intervals."""
        if (one, other) not in self._pairs:
            self._pairs[one, other] = self._paired(one, other)
        found = self._pairs[one, other].get(metric)
        return found or contrast_of_cells(self._cells[one][metric], self._cells[other][metric])

    def _paired(self, one: str, other: str) -> dict[str, Contrast]:
        seeds = [
            {
                seed: run
                for seed, run in self._place.seeds(label).items()
                if run.scores_file(self._calibrator).exists()
            }
            for label in (one, other)
        ]
        shared = [seed for seed in seeds[0] if seed in seeds[1]]
        groups = [[runs[seed] for seed in shared] for runs in seeds]
        return contrast(*groups, calibrator=self._calibrator, n_bins=self._n_bins)


def _printed(spec: Spec, calibrator: str, columns: Sequence[str]) -> dict[str, str]:
    """Return what papers printed for the same dataset, network and method, with the source."""
    result = {}
    rows = published_for(spec, calibrator=calibrator)
    for metric in columns:
        firsts = {row.paper: row for row in reversed(rows) if row.metric == metric}
        facts = metric_facts(metric)
        texts = [
            f"{facts.text(row.value)} ({row.paper}, table {row.table}{_doubt(row)})"
            for row in reversed(firsts.values())
        ]
        if texts:
            result[metric] = " and ".join(texts)
    return result


def _doubt(row: Published) -> str:
    _, found, doubt = row.note.partition("suspect=")
    return f", doubtful: {doubt}" if found else ""
