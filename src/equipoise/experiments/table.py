"""The table people want: methods in rows, metrics in columns, ties called ties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from equipoise.core.names import look_up
from equipoise.evaluate.values import LOWER_IS_BETTER, PERCENT
from equipoise.experiments.catalogue import CATALOGUE
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.methods import method_entry
from equipoise.experiments.published import find_published
from equipoise.experiments.results import Cell, Contrast, cells, contrast, contrast_of_cells, gather_rows

__all__ = ["COLUMNS", "Table", "TableRow", "format_table", "make_tables"]

#: The metrics of the table, proper scores beside calibration.
COLUMNS = ("accuracy", "nll", "brier", "ece", "ada_ece", "classwise_ece")
_HEADS = {
    "accuracy": "accuracy %",
    "nll": "NLL",
    "brier": "Brier",
    "ece": "ECE %",
    "ada_ece": "adaptive ECE %",
    "classwise_ece": "classwise ECE %",
    "smece": "smooth ECE %",
    "mce": "MCE %",
}


@final
@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One method after one calibrator.

    Attributes:
        method: Label of the method.
        calibrator: Key of the calibrator.
        fidelity: How far the method was checked against its paper.
        cells: By metric.
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
        data: Key of the dataset.
        model: Key of the network.
        baseline: Label of the method others are compared with.
        metrics: Columns.
        rows: Methods, each after every calibrator.
        n_seeds: Seeds behind each cell.
        n_test: Test rows.
        n_bins: Bins of the binned metrics.
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
        seeds = f"mean ± standard error over {self.n_seeds} seeds" if self.n_seeds > 1 else "one seed"
        return (
            f"{self.data}, {self.model}: {seeds}, {self.n_test:,} test rows, {self.n_bins} bins. "
            f"Best in bold; ≈ is tied with the best; ↑ better and ↓ worse than {self.baseline} by a paired test "
            "(p < 0.05), no arrow is a tie. T in brackets."
        )


def make_tables(
    runs: Sequence[RunFolder], *, baseline: str | None = None, metrics: Sequence[str] = COLUMNS
) -> list[Table]:
    """Return one table per dataset and network.

    Args:
        runs: Finished runs.
        baseline: Label of the method others are compared with; the first by default.
        metrics: Columns.

    Returns:
        Tables, in the order in which data and networks first come.

    Example:
        >>> make_tables([])
        []
    """
    by_place: dict[tuple[str, str], list[RunFolder]] = {}
    for folder in runs:
        spec = folder.spec()
        by_place.setdefault((spec.data.name, spec.model.name), []).append(folder)
    return [_table(place, folders, baseline, metrics) for place, folders in by_place.items()]


def _table(
    place: tuple[str, str], folders: Sequence[RunFolder], baseline: str | None, metrics: Sequence[str]
) -> Table:
    rows = gather_rows(folders)
    found = cells(rows)
    methods: dict[str, list[RunFolder]] = {}
    for folder in sorted(folders, key=lambda folder: folder.spec().seed):
        methods.setdefault(folder.spec().objective.label, []).append(folder)
    order = list(dict.fromkeys(folder.spec().objective.label for folder in folders))
    chosen = baseline if baseline in methods else order[0]
    calibrators = folders[0].calibrators()
    columns = tuple(metric for metric in metrics if (*place, chosen, "identity", metric) in found)
    made = [
        row
        for calibrator in calibrators
        for row in _block(place, calibrator, methods, order, chosen, columns, found)
    ]
    test = [row for row in rows if row["split"] == "test"]
    return Table(
        data=place[0],
        model=place[1],
        baseline=chosen,
        metrics=columns,
        rows=tuple(made),
        n_seeds=max(len(group) for group in methods.values()),
        n_test=int(test[0]["n_samples"]),
        n_bins=int(test[0]["n_bins"]),
    )


def _block(
    place: tuple[str, str],
    calibrator: str,
    methods: Mapping[str, Sequence[RunFolder]],
    order: Sequence[str],
    baseline: str,
    columns: Sequence[str],
    found: Mapping[tuple[str, ...], Cell],
) -> list[TableRow]:
    """Return the rows of all methods after one calibrator."""
    of = {label: {m: found[*place, label, calibrator, m] for m in columns} for label in order}
    best = {m: min((_worth(m, of[label][m].mean), n) for n, label in enumerate(order))[1] for m in columns}
    leader = {m: order[number] for m, number in best.items()}
    pairs: dict[tuple[str, str], dict[str, Contrast]] = {}

    def difference(one: str, other: str, metric: str) -> Contrast:
        seeds = [[folder.spec().seed for folder in methods[label]] for label in (one, other)]
        if seeds[0] == seeds[1] and (one, other) not in pairs:
            pairs[one, other] = contrast(methods[one], methods[other], calibrator=calibrator)
        paired = pairs.get((one, other), {})
        return paired[metric] if metric in paired else contrast_of_cells(of[one][metric], of[other][metric])

    rows = []
    for label in order:
        marks = {
            m: "best"
            if label == leader[m]
            else ("" if difference(leader[m], label, m).is_clear() else "tied")
            for m in columns
        }
        versus = {m: _versus(m, difference(baseline, label, m)) if label != baseline else "" for m in columns}
        spec = methods[label][0].spec()
        entry = method_entry(spec.objective)
        printed = _printed(place, entry.key, calibrator, columns) if not spec.objective.parameters else {}
        rows.append(
            TableRow(
                method=label,
                calibrator=calibrator,
                fidelity=entry.fidelity,
                cells=of[label],
                marks=marks,
                versus=versus,
                printed=printed,
            )
        )
    return rows


def _worth(metric: str, value: float) -> float:
    return value if metric in LOWER_IS_BETTER else -value


def _versus(metric: str, found: Contrast) -> str:
    if not found.is_clear():
        return "tie"
    return "better" if _worth(metric, found.difference) < 0 else "worse"


def _printed(place: tuple[str, str], method: str, calibrator: str, columns: Sequence[str]) -> dict[str, str]:
    """Return what papers printed for the same dataset, network and method, with the source."""
    data, model = CATALOGUE["datasets"][place[0]].title, CATALOGUE["models"][place[1]].title
    stage = {"identity": "raw", "temperature": "temperature", "temperature_ece": "temperature"}.get(
        calibrator
    )
    result = {}
    for metric in columns:
        rows = [
            row
            for row in find_published(method=method, dataset=data, model=model, metric=metric)
            if row.stage in ("", stage)
        ]
        if rows:
            factor, unit = (100, " %") if metric in PERCENT else (1, "")
            result[metric] = f"{factor * rows[0].value:.2f}{unit} ({rows[0].paper}, table {rows[0].table})"
    return result


def format_table(table: Table, style: str = "text") -> str:
    """Return a table as ``text``, ``markdown``, ``latex`` or ``csv``.

    Example:
        >>> cell = Cell(mean=0.05, error=None, spread=0.01, n_seeds=1, temperature=None)
        >>> row = TableRow(
        ...     method="ce",
        ...     calibrator="identity",
        ...     fidelity="ours",
        ...     cells={"ece": cell},
        ...     marks={"ece": "best"},
        ...     versus={"ece": ""},
        ...     printed={},
        ... )
        >>> table = Table(
        ...     data="d", model="m", baseline="ce", metrics=("ece",), rows=(row,), n_seeds=1, n_test=9, n_bins=15
        ... )
        >>> print(format_table(table, "markdown").splitlines()[2])
        | ce | **5.00** | ours |
    """
    styles: dict[str, Callable[[Table], str]] = {
        "text": _text,
        "markdown": _markdown,
        "latex": _latex,
        "csv": _csv,
    }
    return look_up(style, styles, what="table format")(table)


def _numbers(row: TableRow, metric: str, *, plus: str = " ± ") -> str:
    cell = row.cells[metric]
    factor, digits = (100, 2) if metric in PERCENT else (1, 4)
    error = "" if cell.error is None else f"{plus}{factor * cell.error:.{digits}f}"
    return f"{factor * cell.mean:.{digits}f}{error}"


def _arrow(row: TableRow, metric: str) -> str:
    return {"better": "↑", "worse": "↓"}.get(row.versus[metric], "")


def _name(row: TableRow) -> str:
    if row.calibrator == "identity":
        return row.method
    values = [cell.temperature for cell in row.cells.values() if cell.temperature is not None]
    return f"{row.method} + {row.calibrator}" + (f" ({values[0]:.2f})" if values else "")


def _grid(table: Table, cell: Callable[[TableRow, str], str]) -> list[list[str]]:
    head = ["method", *(_HEADS.get(metric, metric) for metric in table.metrics), "fidelity"]
    return [head] + [[_name(row), *(cell(row, m) for m in table.metrics), row.fidelity] for row in table.rows]


def _aligned(grid: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in grid) for i in range(len(grid[0]))]
    return [
        "  ".join(
            text.ljust(width) if i in (0, len(line) - 1) else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in grid
    ]


def _text(table: Table) -> str:
    marks = {"best": "*", "tied": "≈", "": " "}
    grid = _grid(table, lambda row, m: f"{_numbers(row, m)}{marks[row.marks[m]]}{_arrow(row, m) or ' '}")
    lines = _aligned(grid)
    n_methods = len({row.method for row in table.rows})
    body = lines[1:]
    blocks = [body[i : i + n_methods] for i in range(0, len(body), n_methods)]
    rule = "-" * max(map(len, lines))
    text = [lines[0], rule]
    for number, block in enumerate(blocks):
        text += ([rule] if number else []) + block
    caption = table.caption.replace("Best in bold", "* is best")
    return "\n".join([*text, rule, caption, *_printed_lines(table)])


def _printed_lines(table: Table) -> list[str]:
    return [
        f"printed: {_name(row)}: "
        + "; ".join(f"{_HEADS.get(m, m)} {text}" for m, text in row.printed.items())
        for row in table.rows
        if row.printed
    ]


def _markdown(table: Table) -> str:
    def cell(row: TableRow, metric: str) -> str:
        number = _numbers(row, metric)
        bold = f"**{number}**" if row.marks[metric] == "best" else number
        tied = " ≈" if row.marks[metric] == "tied" else ""
        return f"{bold}{tied}{_arrow(row, metric)}"

    grid = _grid(table, cell)
    rule = ["---", *("---:" for _ in table.metrics), "---"]
    lines = ["| " + " | ".join(line) + " |" for line in [grid[0], rule, *grid[1:]]]
    return "\n".join([*lines, "", table.caption, *(f"\n{line}" for line in _printed_lines(table))])


def _latex(table: Table) -> str:
    def cell(row: TableRow, metric: str) -> str:
        number = _numbers(row, metric, plus=r" \pm ")
        shown = rf"\mathbf{{{number}}}" if row.marks[metric] == "best" else number
        tied = r"^{\approx}" if row.marks[metric] == "tied" else ""
        arrow = {"better": r"\uparrow", "worse": r"\downarrow"}.get(row.versus[metric], "")
        return f"${shown}{tied}{arrow}$"

    grid = _grid(table, cell)
    lines = [
        " & ".join(_escape(text) if "$" not in text else text for text in line) + r" \\" for line in grid
    ]
    columns = "l" + "r" * len(table.metrics) + "l"
    caption = _escape(
        table.caption.replace("≈", "approx").replace("↑", "up").replace("↓", "down").replace("±", "+-")
    )
    return "\n".join(
        [
            r"\begin{table}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\hline",
            lines[0],
            r"\hline",
            *lines[1:],
            r"\hline",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            r"\end{table}",
        ]
    )


def _escape(text: str) -> str:
    for letter in "&%_#$":
        text = text.replace(letter, "\\" + letter)
    return text


def _csv(table: Table) -> str:
    head = [
        "data",
        "model",
        "method",
        "calibrator",
        "metric",
        "mean",
        "error",
        "n_seeds",
        "temperature",
        "mark",
        "versus",
    ]
    lines = [",".join(head)]
    for row in table.rows:
        for metric in table.metrics:
            cell = row.cells[metric]
            values = [table.data, table.model, f'"{row.method}"', row.calibrator, metric, repr(cell.mean)]
            values += ["" if cell.error is None else repr(cell.error), str(cell.n_seeds)]
            values += [
                "" if cell.temperature is None else repr(cell.temperature),
                row.marks[metric],
                row.versus[metric],
            ]
            lines.append(",".join(values))
    return "\n".join(lines)
