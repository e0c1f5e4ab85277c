"""A table as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from equipoise.core.names import check_choice, look_up
from equipoise.experiments.table import ResultTable, TableRow
from equipoise.metrics.facts import metric_facts

__all__ = ["format_grid", "format_table", "format_tables"]

_CSV = (
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
    "printed",
)
_LATEX = {
    **{letter: "\\" + letter for letter in "&%_#${}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "≈": r"$\approx$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "±": r"$\pm$",
    "–": "--",
    "<": "$<$",
    ">": "$>$",
}


def format_table(table: ResultTable, style: str = "text") -> str:
    """Return a table as ``text``, ``markdown``, ``latex`` or ``csv``.

    Raises:
        SpecError: If there is no such format.

    Example:
        >>> from equipoise.experiments.results import Cell
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
        >>> table = ResultTable(
        ...     data="d", model="m", baseline="ce", metrics=("ece",), rows=(row,), n_seeds=1, n_test=9, n_bins=15
        ... )
        >>> print(format_table(table, "markdown").splitlines()[2])
        | ce | **5.00** | ours |
    """
    return format_tables([table], style)


def format_tables(tables: Sequence[ResultTable], style: str = "text") -> str:
    """Return several tables one below the other; as ``csv`` they are one file with one head.

    Example:
        >>> format_tables([])
        ''
    """
    styles: dict[str, Callable[[ResultTable], str]] = {"text": _text, "markdown": _markdown, "latex": _latex}
    make = look_up(style, {**styles, "csv": None}, what="table format")
    return _csv(tables) if make is None else "\n\n".join(make(table) for table in tables)


def _numbers(row: TableRow, metric: str, *, plus: str = " ± ") -> str:
    cell = row.cells[metric]
    facts = metric_facts(metric)
    error = "" if cell.error is None else f"{plus}{facts.scale * cell.error:.{facts.digits}f}"
    return f"{facts.scale * cell.mean:.{facts.digits}f}{error}"


def _arrow(row: TableRow, metric: str) -> str:
    return {"better": "↑", "worse": "↓"}.get(row.versus[metric], "")


def _name(row: TableRow) -> str:
    if row.calibrator == "identity":
        return row.method
    values = [cell.temperature for cell in row.cells.values() if cell.temperature is not None]
    return f"{row.method} + {row.calibrator}" + (f" ({values[0]:.2f})" if values else "")


def _grid(table: ResultTable, cell: Callable[[TableRow, str], str]) -> list[list[str]]:
    head = ["method", *(metric_facts(metric).head for metric in table.metrics), "fidelity"]
    body = [
        [_name(row), *(cell(row, m) if m in row.cells else "–" for m in table.metrics), row.fidelity]
        for row in table.rows
    ]
    return [head, *body]


def _aligned(grid: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in grid) for i in range(len(grid[0]))]
    return [
        "  ".join(
            text.ljust(width) if i in (0, len(line) - 1) else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in grid
    ]


def _text(table: ResultTable) -> str:
    marks = {"best": "*", "tied": "≈", "": " "}
    grid = _grid(table, lambda row, m: f"{_numbers(row, m)}{marks[row.marks[m]]}{_arrow(row, m) or ' '}")
    lines = _aligned(grid)
    rule = "-" * max(map(len, lines))
    text = [lines[0], rule]
    for number, (row, line) in enumerate(zip(table.rows, lines[1:], strict=True)):
        is_next = number and row.calibrator != table.rows[number - 1].calibrator
        text += [rule, line] if is_next else [line]
    caption = table.caption.replace("Best in bold", "* is best")
    return "\n".join([*text, rule, caption, *_lines_below(table)])


def _lines_below(table: ResultTable) -> list[str]:
    """Return what was chosen, and what papers printed."""
    return [*table.notes] + [
        f"printed: {_name(row)}: "
        + "; ".join(f"{metric_facts(m).head} {text}" for m, text in row.printed.items())
        for row in table.rows
        if row.printed
    ]


def _markdown(table: ResultTable) -> str:
    def cell(row: TableRow, metric: str) -> str:
        number = _numbers(row, metric)
        bold = f"**{number}**" if row.marks[metric] == "best" else number
        tied = " ≈" if row.marks[metric] == "tied" else ""
        return f"{bold}{tied}{_arrow(row, metric)}"

    grid = _grid(table, cell)
    rule = ["---", *("---:" for _ in table.metrics), "---"]
    lines = [
        "| " + " | ".join(text.replace("|", r"\|") for text in line) + " |"
        for line in [grid[0], rule, *grid[1:]]
    ]
    return "\n".join([*lines, "", table.caption, *(f"\n{line}" for line in _lines_below(table))])


def _latex(table: ResultTable) -> str:
    def cell(row: TableRow, metric: str) -> str:
        number = _numbers(row, metric, plus=r" \pm ")
        shown = rf"\mathbf{{{number}}}" if row.marks[metric] == "best" else number
        tied = r"^{\approx}" if row.marks[metric] == "tied" else ""
        arrow = {"better": r"\uparrow", "worse": r"\downarrow"}.get(row.versus[metric], "")
        return f"${shown}{tied}{arrow}$"

    head, *body = _grid(table, cell)
    lines = [" & ".join(map(_escape, head)) + r" \\"]
    for first, *numbers, last in body:
        shown = [text.replace("–", "--") for text in numbers]
        lines.append(" & ".join([_escape(first), *shown, _escape(last)]) + r" \\")
    columns = "l" + "r" * len(table.metrics) + "l"
    below = [line if line.endswith(".") else f"{line}." for line in _lines_below(table)]
    caption = _escape(" ".join([table.caption, *below]))
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


def format_grid(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, style: str) -> str:
    """Return texts as a table with its caption below, as ``text``, ``markdown`` or ``latex``.

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
        return "\n".join([*_aligned([head, *rows]), "", caption])
    if style == "markdown":
        lines = [head, ["---"] * len(head), *rows]
        shown = ["| " + " | ".join(text.replace("|", r"\|") for text in line) + " |" for line in lines]
        return "\n".join([*shown, "", caption])
    body = [" & ".join(map(_escape, line)) + r" \\" for line in (head, *rows)]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\begin{{tabular}}{{{'l' * len(head)}}}",
            *body,
            r"\end{tabular}",
            rf"\caption{{{_escape(caption)}}}",
            r"\end{table}",
        ]
    )


def _escape(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _csv(tables: Sequence[ResultTable]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if tables:
        writer.writerow(_CSV)
    for table in tables:
        for row in table.rows:
            for metric, cell in row.cells.items():
                about = [table.data, table.model, row.method, row.calibrator, metric]
                numbers = [cell.mean, cell.error, cell.n_seeds, cell.temperature]
                writer.writerow(
                    [*about, *numbers, row.marks[metric], row.versus[metric], row.printed.get(metric)]
                )
    return text.getvalue().rstrip("\n")
