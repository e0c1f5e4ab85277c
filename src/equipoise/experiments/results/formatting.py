"""A table as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from equipoise.core.escaping import csv_cell, latex_text, markdown_text, visible
from equipoise.core.names import check_choice, look_up
from equipoise.core.notebook import html_table
from equipoise.experiments.results.tables import ResultTable, TableRow
from equipoise.metrics.facts import metric_facts

__all__ = ["format_grid", "format_table", "format_tables", "html_of"]

#: The texts below each other, the head first.
Column = tuple[str, ...]

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
_MARKS = {"best": "*", "tied": "≈", "": " "}
#: Stands behind the name of a row whose calibrator's fit warned of something.
_WARNED = " †"
_SIGNS = {"better": "+", "worse": "-", "network better": "(+)", "network worse": "(-)"}


def format_table(table: ResultTable, style: str = "text", *, fidelity: bool | None = None) -> str:
    """Return a table as ``text``, ``markdown``, ``latex`` or ``csv``.

    Args:
        table: From :func:`make_tables`.
        style: How.
        fidelity: Whether a last column says how far methods were checked against their papers; by default in Markdown
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
    """Return several tables one below the other; as ``csv`` they are one file with one head.

    Args:
        tables: From :func:`make_tables`.
        style: ``text``, ``markdown``, ``latex`` or ``csv``.
        width: Of text: metrics that do not fit stand in blocks below, each beside the methods' names. None is
            without limit.
        fidelity: Whether a last column says how far methods were checked against their papers; by default in Markdown
            only. CSV has none.

    Returns:
        The tables. Those of LaTeX have labels, and need the package booktabs.

    Example:
        >>> format_tables([])
        ''
    """
    styles: dict[str, Callable[[ResultTable], str]] = {
        "text": partial(_text, width=width, fidelity=bool(fidelity)),
        "markdown": partial(_markdown, fidelity=fidelity is not False),
        "latex": partial(_latex, fidelity=bool(fidelity)),
    }
    make = look_up(style, {**styles, "csv": None}, what="table format")
    return _csv(tables) if make is None else "\n\n".join(make(table) for table in tables)


def html_of(table: ResultTable) -> str:
    """Return a table as notebooks show it, with the marks of the text.

    Example:
        >>> table = ResultTable(
        ...     data="d", model="m", baseline="ce", metrics=(), rows=(), n_seeds=1, n_test=9, n_bins=15
        ... )
        >>> html_of(table)[:15]
        '<p>d, m: one se'
    """
    head, *rows = _grid(table, partial(_text_cell, marks=_MARKS), fidelity=False)
    return html_table(head, rows, above=_text_caption(table), below=" ".join(_lines_below(table)))


def _text_caption(table: ResultTable) -> str:
    return table.caption.replace("Best in bold", "*: best")


def _numbers(row: TableRow, metric: str, *, plus: str = " ± ") -> str:
    cell = row.cells[metric]
    facts = metric_facts(metric)
    error = "" if cell.error is None else f"{plus}{facts.scale * cell.error:.{facts.digits}f}"
    return f"{facts.scale * cell.mean:.{facts.digits}f}{error}"


def _sign(row: TableRow, metric: str) -> str:
    """Return the sign of a significant difference from the baseline: of methods, or of two networks."""
    return _SIGNS.get(row.versus[metric], "")


def _name(row: TableRow) -> str:
    if row.calibrator == "identity":
        return row.method
    values = [cell.temperature for cell in row.cells.values() if cell.temperature is not None]
    return f"{row.method} + {row.calibrator}" + (f" ({_temperature(values[0])})" if values else "")


def _temperature(value: float) -> str:
    """Return a temperature with two decimals, or two digits where that would hide how small or large it is."""
    return f"{value:.2f}" if 0.1 <= value < 1000 else f"{value:.2g}"


def _grid(table: ResultTable, cell: Callable[[TableRow, str], str], *, fidelity: bool) -> list[list[str]]:
    head = ["method", *(metric_facts(metric).head for metric in table.metrics)]
    body = [
        [
            _name(row) + (_WARNED if row.warnings else ""),
            *(cell(row, m) if m in row.cells else "–" for m in table.metrics),
        ]
        for row in table.rows
    ]
    last = ["fidelity", *(row.fidelity for row in table.rows)]
    return (
        [[*line, end] for line, end in zip([head, *body], last, strict=True)] if fidelity else [head, *body]
    )


def _text(table: ResultTable, *, width: int | None = None, fidelity: bool = False) -> str:
    cell = partial(_text_cell, marks=_MARKS)
    names, *columns = zip(*_grid(table, cell, fidelity=fidelity), strict=True)
    names = tuple(map(visible, names))
    blocks = ["\n".join(_block(table, names, part)) for part in _packed(names, columns, width)]
    notes = map(visible, [_text_caption(table), *_lines_below(table)])
    return "\n".join(["\n\n".join(blocks), *(_filled(note, width) for note in notes)])


def _filled(text: str, width: int | None) -> str:
    return textwrap.fill(text, width) if width else text


def _text_cell(row: TableRow, metric: str, *, marks: Mapping[str, str]) -> str:
    return f"{_numbers(row, metric)}{marks[row.marks[metric]]}{_sign(row, metric):1}"


def _packed(names: Column, columns: Sequence[Column], width: int | None) -> list[list[Column]]:
    """Return as many columns beside the names as fit, then the next, until all are there."""
    room = (width or math.inf) - max(map(len, names))
    blocks: list[list[Column]] = []
    left = 0.0
    for column in columns:
        needed = 2 + max(map(len, column))
        if needed > left or not blocks:
            blocks.append([])
            left = room
        blocks[-1].append(column)
        left -= needed
    return blocks or [[]]


def _block(table: ResultTable, names: Column, columns: Sequence[Column]) -> list[str]:
    head, *lines = _lines(names, columns)
    rule = "-" * max(map(len, [head, *lines]))
    text = [head, rule]
    for number, (row, line) in enumerate(zip(table.rows, lines, strict=True)):
        is_next = number and row.calibrator != table.rows[number - 1].calibrator
        text += [rule, line] if is_next else [line]
    return [*text, rule]


def _padded(column: Sequence[str]) -> list[str]:
    return [text.ljust(max(map(len, column))) for text in column]


def _lines(names: Column, columns: Sequence[Column]) -> list[str]:
    """Return names to the left and numbers to the right of their columns."""
    numbers = ([text.rjust(max(map(len, column))) for text in column] for column in columns)
    return ["  ".join(line).rstrip() for line in zip(_padded(names), *numbers, strict=True)]


def _lines_below(table: ResultTable) -> list[str]:
    """Return what fits warned of, what could have been detected, what was chosen, and what papers printed."""
    return [*_warning_lines(table), *_power_lines(table), *table.notes] + [
        f"printed: {_name(row)}: "
        + "; ".join(f"{metric_facts(m).head} {text}" for m, text in row.printed.items())
        for row in table.rows
        if row.printed
    ]


def _warning_lines(table: ResultTable) -> list[str]:
    """Return what fits warned of, each warning once with the rows that it is about."""
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


def _markdown(table: ResultTable, *, fidelity: bool) -> str:
    def cell(row: TableRow, metric: str) -> str:
        number = _numbers(row, metric)
        bold = f"**{number}**" if row.marks[metric] == "best" else number
        marks = ("≈" if row.marks[metric] == "tied" else "") + _sign(row, metric)
        return f"{bold} {marks}".rstrip()

    head, *body = _grid(table, cell, fidelity=fidelity)
    rule = ["---", *("---:" for _ in table.metrics), *(["---"] if fidelity else [])]
    end = 1 + len(table.metrics)  # texts stand before and behind the numbers
    shown = [[markdown_text(line[0]), *line[1:end], *map(markdown_text, line[end:])] for line in body]
    lines = ["| " + " | ".join(line) + " |" for line in [head, rule, *shown]]
    below = [f"\n{markdown_text(line)}" for line in _lines_below(table)]
    return "\n".join([*lines, "", markdown_text(table.caption), *below])


def _latex(table: ResultTable, *, fidelity: bool) -> str:
    def cell(row: TableRow, metric: str) -> str:
        number = _numbers(row, metric, plus=r" \pm ")
        shown = rf"\mathbf{{{number}}}" if row.marks[metric] == "best" else number
        marks = (r"\approx" if row.marks[metric] == "tied" else "") + _sign(row, metric)
        return f"${shown}^{{{marks}}}$" if marks else f"${shown}$"

    head, *body = _grid(table, cell, fidelity=fidelity)
    end = 1 + len(table.metrics)
    lines: list[str] = []
    for place, line in enumerate(body):
        if place and table.rows[place].calibrator != table.rows[place - 1].calibrator:
            lines.append(r"\midrule")
        numbers = [text.replace("–", "--") for text in line[1:end]]
        lines.append(_latex_line([latex_text(line[0]), *numbers, *map(latex_text, line[end:])]))
    below = [line if line.endswith(".") else f"{line}." for line in _lines_below(table)]
    return _latex_table(
        " ".join([table.caption, *below]),
        "-".join(filter(None, (table.data, table.model))),
        "l" + "r" * len(table.metrics) + "l" * fidelity,
        [_latex_line(map(latex_text, head)), r"\midrule", *lines],
    )


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_table(caption: str, label: str, columns: str, lines: Sequence[str]) -> str:
    """Return a table of LaTeX with rules of booktabs, its caption above it as papers have it, and a label."""
    key = re.sub(r"[^\w.]+", "-", label).strip("-")
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            rf"\label{{tab:{key}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def format_grid(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    label: str = "",
    *,
    style: str,
    width: int | None = None,
) -> str:
    """Return texts as a table with its caption below, as ``text``, ``markdown`` or ``latex``.

    Args:
        caption: What it shows.
        head: What stands above the columns.
        rows: Their cells; the first two say what a row is of.
        label: What LaTeX refers to it by.
        style: How.
        width: Of text: columns that do not fit stand in blocks below, each beside the first two.

    Example:
        >>> print(format_grid("What.", ["a", "b"], [["1", "2"]], style="markdown"))
        | a | b |
        | --- | --- |
        | 1 | 2 |
        <BLANKLINE>
        What.
    """
    check_choice(style, ("text", "markdown", "latex"), where="format_grid", name="style")
    if style == "text":
        first, second, *columns = zip(
            *([visible(text) for text in line] for line in (head, *rows)), strict=True
        )
        names = tuple("  ".join(both) for both in zip(_padded(first), _padded(second), strict=True))
        blocks = ["\n".join(_lines(names, part)) for part in _packed(names, columns, width)]
        return "\n\n".join([*blocks, _filled(visible(caption), width)])
    if style == "markdown":
        lines = [[markdown_text(text) for text in line] for line in (head, *rows)]
        lines.insert(1, ["---"] * len(head))
        return "\n".join([*("| " + " | ".join(line) + " |" for line in lines), "", markdown_text(caption)])
    above, *below = (_latex_line(map(latex_text, line)) for line in (head, *rows))
    return _latex_table(caption, label, "l" * len(head), [above, r"\midrule", *below])


def _csv(tables: Sequence[ResultTable]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    records = [record for table in tables for record in table.records()]
    if tables:
        writer.writerow(_CSV)
    writer.writerows([csv_cell(record[name]) for name in _CSV] for record in records)
    return text.getvalue().rstrip("\n")
