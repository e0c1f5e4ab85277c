"""Result tables as text, Markdown, LaTeX, HTML or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from equipoise.core import tables as core_tables
from equipoise.core.escaping import csv_cell
from equipoise.core.names import check_choice
from equipoise.core.tables import TABLE_STYLES, Column, Table, TableCell
from equipoise.experiments.results.tables import ResultTable, TableRow
from equipoise.metrics.facts import metric_facts

__all__ = ["as_table", "format_table", "format_tables"]

_CSV = (
    "data",
    "model",
    "method",
    "calibrator",
    "metric",
    "mean",
    "error",
    "low",
    "high",
    "n_seeds",
    "temperature",
    "mark",
    "versus",
    "difference",
    "difference_low",
    "difference_high",
    "p_value",
    "comparisons",
    "detectable",
    "equivalent",
    "printed",
    "warnings",
)
#: The sign of a significant difference from the baseline: of methods, or of two networks.
_SIGNS = {"better": "+", "worse": "-", "network better": "(+)", "network worse": "(-)"}


def format_table(table: ResultTable, style: str = "text", *, fidelity: bool | None = None) -> str:
    """Return a table as ``text``, ``markdown``, ``latex``, ``html`` or ``csv``.

    Args:
        table: From :func:`make_tables`.
        style: The format.
        fidelity: Whether a last column shows how far methods were checked against their papers; by default in Markdown
            only.

    Raises:
        SpecError: If there is no such format.

    Example:
        >>> from equipoise.experiments.results.means import Cell
        >>> cell = Cell(mean=0.05)
        >>> row = TableRow(
        ...     method="ce",
        ...     calibrator="identity",
        ...     fidelity="ours",
        ...     cells={"ece": cell},
        ...     marks={"ece": "best"},
        ...     versus={"ece": ""},
        ...     printed={},
        ... )
        >>> table = ResultTable(
        ...     data="d", model="m", baseline="ce", metrics=("ece",), rows=(row,), n_seeds=1, n_test=9, n_bins=15
        ... )
        >>> print(format_table(table, "markdown").splitlines()[2])
        | ce | **5.00** | ours |
    """
    return format_tables([table], style, fidelity=fidelity)


def format_tables(
    tables: Sequence[ResultTable],
    style: str = "text",
    *,
    width: int | None = None,
    fidelity: bool | None = None,
) -> str:
    """Return several tables one below the other; as ``csv`` they are one file of tidy rows with one head.

    Args:
        tables: From :func:`make_tables`.
        style: ``text``, ``markdown``, ``latex``, ``html`` or ``csv``.
        width: The greatest width of a line of text: metrics that do not fit follow in blocks below. None is without
            limit.
        fidelity: Whether a last column shows how far methods were checked against their papers; by default in Markdown
            only. CSV has none.

    Returns:
        The tables. Those of LaTeX have labels, and need the package booktabs.

    Example:
        >>> format_tables([])
        ''
    """
    check_choice(style, TABLE_STYLES, where="format_tables", name="style")
    if style == "csv":
        return _csv(tables)
    has_fidelity = style == "markdown" if fidelity is None else fidelity
    made = [as_table(table, fidelity=has_fidelity) for table in tables]
    return core_tables.format_tables(made, style, width=width)


def as_table(table: ResultTable, *, fidelity: bool = False) -> Table:
    """Return results as a table that can be written in any format.

    Args:
        table: From :func:`make_tables`.
        fidelity: Whether a last column shows how far methods were checked against their papers.
    """
    columns = [Column("method", "left"), *(Column(metric_facts(metric).head) for metric in table.metrics)]
    rows = [
        [
            TableCell(_name(row), mark=" †" if row.warnings else ""),
            *(_cell(row, metric) if metric in row.cells else TableCell("–") for metric in table.metrics),
            *([TableCell(row.fidelity)] if fidelity else []),
        ]
        for row in table.rows
    ]
    calibrators = [row.calibrator for row in table.rows]
    return Table(
        columns=(*columns, *([Column("fidelity", "left")] if fidelity else [])),
        rows=tuple(map(tuple, rows)),
        caption=table.caption,
        legend=table.legend,
        notes=(*_warning_lines(table), *_power_lines(table), *table.notes, *_printed_lines(table)),
        label="-".join(filter(None, (table.data, table.model))),
        breaks=frozenset(
            number for number in range(1, len(rows)) if calibrators[number] != calibrators[number - 1]
        ),
    )


def _cell(row: TableRow, metric: str) -> TableCell:
    cell, facts = row.cells[metric], metric_facts(metric)
    error = "" if cell.error is None else f" ± {facts.scale * cell.error:.{facts.digits}f}"
    tied = "≈" if row.marks[metric] == "tied" else ""
    return TableCell(
        f"{facts.scale * cell.mean:.{facts.digits}f}{error}",
        bold=row.marks[metric] == "best",
        mark=tied + _SIGNS.get(row.versus[metric], ""),
        key=cell.mean,
    )


def _name(row: TableRow) -> str:
    if row.calibrator == "identity":
        return row.method
    values = [cell.temperature for cell in row.cells.values() if cell.temperature is not None]
    return f"{row.method} + {row.calibrator}" + (f" ({_temperature(values[0])})" if values else "")


def _temperature(value: float) -> str:
    """Return a temperature with two decimals, or two digits where that would hide how small or large it is."""
    return f"{value:.2f}" if 0.1 <= value < 1000 else f"{value:.2g}"


def _warning_lines(table: ResultTable) -> list[str]:
    """Return the warnings of fits, each once with the rows that it is about."""
    found: dict[str, list[str]] = {}
    for row in table.rows:
        for text in row.warnings:
            found.setdefault(text, []).append(_name(row))
    return [f"† {', '.join(names)}: {text}." for text, names in found.items()]


def _power_lines(table: ResultTable) -> list[str]:
    """Return what a tie means: which difference would have been found, and which is ruled out."""
    lines = []
    for calibrator, found in table.detectable().items():
        shown = ", ".join(f"{metric_facts(m).head} {_amount(m, value)}" for m, value in found.items())
        after = "" if calibrator == "identity" else f" after {calibrator}"
        lines.append(
            f"Smallest difference from {table.baseline}{after} that ties here could have shown (80% power): {shown}."
        )
    for metric, margin in table.margins.items():
        known = [row for row in table.rows if metric in row.equivalent]
        same = [_name(row) for row in known if row.equivalent[metric]]
        others = len(known) - len(same)
        lines.append(
            f"Equivalent to {table.baseline} within {_amount(metric, margin)} in {metric_facts(metric).head}: "
            f"{', '.join(same) or 'none shown'}{f'; not shown for {others} others' if same and others else ''}."
        )
    return lines


def _amount(metric: str, value: float) -> str:
    facts = metric_facts(metric)
    return f"{facts.scale * value:.{facts.digits}f}"


def _printed_lines(table: ResultTable) -> list[str]:
    """Return what papers printed, a line per method."""
    return [
        f"printed: {_name(row)}: "
        + "; ".join(f"{metric_facts(m).head} {text}" for m, text in row.printed.items())
        for row in table.rows
        if row.printed
    ]


def _csv(tables: Sequence[ResultTable]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    records = [record for table in tables for record in table.records()]
    if tables:
        writer.writerow(_CSV)
    writer.writerows([csv_cell(record[name]) for name in _CSV] for record in records)
    return text.getvalue().rstrip("\n")
