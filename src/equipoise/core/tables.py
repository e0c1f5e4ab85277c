"""One record for tables, with writers for text, Markdown, LaTeX, HTML and CSV."""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, final

from equipoise.core.errors import SpecError
from equipoise.core.escaping import csv_cell, html_text, latex_text, markdown_text, visible
from equipoise.core.names import look_up

__all__ = ["BOLD", "TABLE_STYLES", "Column", "Table", "TableCell", "format_tables"]

#: Stands for bold type in a legend.
BOLD = "bold"
#: The formats that a table can be written in by name.
TABLE_STYLES = ("text", "markdown", "latex", "html", "csv")

_NARROWEST = 8
_GAP = "  "
#: Numbers that LaTeX sets as mathematics.
_NUMBER = re.compile(r"[-+−]?\d[\d.,]*( ± \d[\d.,]*)?")


@final
@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        head: The heading.
        align: On which side its texts are aligned.
        wraps: Whether its texts may be broken into several lines where the table is too wide.
    """

    head: str
    align: Literal["left", "right"] = "right"
    wraps: bool = False


@final
@dataclass(frozen=True)
class TableCell:
    """A cell of a table.

    Attributes:
        text: The value as people read it.
        bold: Whether it is the best of its column; text marks it with an asterisk.
        mark: A sign behind the value, such as ``"≈"``; the table's legend explains it.
        detail: A second value of less importance, such as the interval.
        tone: ``"better"``, ``"worse"`` or ``"tied"``; pages color the mark accordingly.
        key: The value that a page sorts by; by default the text.
    """

    text: str
    bold: bool = False
    mark: str = ""
    detail: str = ""
    tone: str = ""
    key: float | str | None = None

    @property
    def plain(self) -> str:
        """The value with its detail, without marks."""
        return f"{self.text} ({self.detail})" if self.detail else self.text


@final
@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, independent of the format it is written in.

    Attributes:
        columns: Headings and alignment.
        rows: Cells, as many in each row as there are columns.
        caption: What the table shows.
        legend: Marks and their meaning; :data:`BOLD` stands for bold type.
        notes: Sentences below the table.
        label: The label for references in LaTeX.
        breaks: Indices of rows that a rule separates from the row before.
        n_names: Number of leading columns that name a row. They are repeated where a table is split.

    Example:
        >>> table = Table.of(("", "rows"), [("cat", "7"), ("dog", "12")])
        >>> print(table.to_text())
             rows
        cat     7
        dog    12
        >>> print(table.to_markdown())
        |  | rows |
        | --- | ---: |
        | cat | 7 |
        | dog | 12 |
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    caption: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    label: str = ""
    breaks: frozenset[int] = frozenset()
    n_names: int = 1

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise SpecError(
                    f"Table: row {number} must have {len(self.columns)} cells, one per column, got {len(row)}."
                )

    @classmethod
    def of(
        cls,
        heads: Sequence[str],
        rows: Iterable[Sequence[str | TableCell]],
        *,
        align: str = "",
        caption: str = "",
        notes: Sequence[str] = (),
        label: str = "",
        n_names: int = 1,
    ) -> Table:
        """Return a table of texts.

        Args:
            heads: Headings.
            rows: Texts or cells.
            align: One letter per column, ``"l"``, ``"r"``, or ``"w"`` for text that may wrap; by default the first
                column to the left and the others to the right.
            caption: What the table shows.
            notes: Sentences below the table.
            label: The label for references in LaTeX.
            n_names: Number of leading columns that name a row.
        """
        sides = align or ("l" + "r" * len(heads))[: len(heads)]
        columns = [
            Column(head, "right" if side == "r" else "left", wraps=side == "w")
            for head, side in zip(heads, sides, strict=True)
        ]
        cells = (
            tuple(cell if isinstance(cell, TableCell) else TableCell(cell) for cell in row) for row in rows
        )
        return cls(
            columns=tuple(columns),
            rows=tuple(cells),
            caption=caption,
            notes=tuple(notes),
            label=label,
            n_names=n_names,
        )

    def describe(self, *, bold: str = "bold") -> list[str]:
        """Return caption with legend, and notes, a paragraph each.

        Args:
            bold: The name of what stands for bold type.
        """
        meanings = [f"{bold if mark == BOLD else mark}: {meaning}" for mark, meaning in self.legend]
        legend = f"{'; '.join(meanings)}." if meanings else ""
        first = " ".join(filter(None, (self.caption, legend[:1].upper() + legend[1:])))
        return [part for part in (first, *self.notes) if part]

    def to_text(self, *, width: int | None = None, rules: bool = False, indent: int = 0) -> str:
        """Return the table as plain text.

        Args:
            width: The greatest width of a line; None is without limit. Columns that may wrap become narrower first;
                columns that still do not fit are printed in further blocks, each with the names of the rows.
            rules: Whether lines are drawn above, between and below the parts of the table.
            indent: Spaces before every line of the table.
        """
        grid = [[visible(column.head) for column in self.columns], *self._text_cells()]
        widths = [max(map(len, texts), default=0) for texts in zip(*grid, strict=True)]
        available = math.inf if width is None else width - indent
        widths = self._narrowed(widths, available)
        blocks = [
            self._text_block(grid, [*range(self.n_names), *part], widths, rules=rules)
            for part in self._split(widths, available)
        ]
        body = "\n\n".join("\n".join(" " * indent + line for line in block) for block in blocks)
        below = [visible(part) for part in self.describe(bold="*")]
        return "\n".join([body, *(textwrap.fill(part, width) if width else part for part in below)])

    def _text_cells(self) -> list[list[str]]:
        """Return the cells as text; marks of a column stand below each other."""
        marked = [[("*" if cell.bold else "") + cell.mark for cell in row] for row in self.rows]
        mark_widths = [max(map(len, marks)) for marks in zip(*marked, strict=True)]
        return [
            [
                visible(cell.plain) + (mark.ljust(size) if column.align == "right" else mark)
                for cell, mark, size, column in zip(row, marks, mark_widths, self.columns, strict=True)
            ]
            for row, marks in zip(self.rows, marked, strict=True)
        ]

    def _narrowed(self, widths: list[int], available: float) -> list[int]:
        """Return widths of which the widest that may wrap gave way until all fit."""
        widths = [max(size, 1) for size in widths]
        wraps = [number for number, column in enumerate(self.columns) if column.wraps]
        while wraps and sum(widths) + len(_GAP) * (len(widths) - 1) > available:
            widest = max(wraps, key=lambda number: widths[number])
            if widths[widest] <= _NARROWEST:
                break
            widths[widest] -= 1
        return widths

    def _split(self, widths: Sequence[int], available: float) -> list[list[int]]:
        """Return the columns after the names in blocks that fit."""
        free = available - sum(widths[: self.n_names]) - len(_GAP) * (self.n_names - 1)
        blocks: list[list[int]] = []
        left = 0.0
        for number in range(self.n_names, len(widths)):
            needed = len(_GAP) + widths[number]
            if needed > left or not blocks:
                blocks.append([])
                left = free
            blocks[-1].append(number)
            left -= needed
        return blocks or [[]]

    def _text_block(
        self, grid: list[list[str]], shown: Sequence[int], widths: Sequence[int], *, rules: bool
    ) -> list[str]:
        lines: list[list[str]] = []
        for row in grid:
            cells = [
                (textwrap.wrap(row[number], widths[number]) or [""])
                if self.columns[number].wraps
                else [row[number]]
                for number in shown
            ]
            lines.append(
                [
                    _GAP.join(
                        text.rjust(widths[number])
                        if self.columns[number].align == "right"
                        else text.ljust(widths[number])
                        for text, number in (
                            (cell[height] if height < len(cell) else "", number)
                            for cell, number in zip(cells, shown, strict=True)
                        )
                    ).rstrip()
                    for height in range(max(map(len, cells)))
                ]
            )
        head, *body = lines
        if not any(column.head for column in self.columns):
            head = []
        flat = [line for row in body for line in row]
        if not rules:
            return [*head, *flat]
        rule = "-" * max(map(len, [*head, *flat]), default=0)
        text = [*head, rule]
        for number, row in enumerate(body):
            text += [rule, *row] if number in self.breaks else row
        return [*text, rule]

    def to_markdown(self) -> str:
        """Return the table as Markdown; texts are escaped."""
        lines = [
            [markdown_text(column.head) for column in self.columns],
            ["---:" if column.align == "right" else "---" for column in self.columns],
            *([_markdown_cell(cell) for cell in row] for row in self.rows),
        ]
        below = [f"\n{markdown_text(part)}" for part in self.describe()]
        return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), *below])

    def to_latex(self) -> str:
        """Return the table as LaTeX with the rules of the package booktabs, and a label if there is one."""
        lines = []
        for number, row in enumerate(self.rows):
            lines += [r"\midrule"] if number in self.breaks else []
            lines.append(_latex_line([_latex_cell(cell) for cell in row]))
        caption = " ".join(part if part.endswith(".") else f"{part}." for part in self.describe())
        key = re.sub(r"[^\w.]+", "-", self.label).strip("-")
        sides = "".join("r" if column.align == "right" else "l" for column in self.columns)
        return "\n".join(
            [
                r"% \usepackage{booktabs}",
                r"\begin{table}",
                r"\centering",
                *([rf"\caption{{{latex_text(caption)}}}"] if caption else []),
                *([rf"\label{{tab:{key}}}"] if key else []),
                rf"\begin{{tabular}}{{{sides}}}",
                r"\toprule",
                _latex_line([latex_text(column.head) for column in self.columns]),
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
            ]
        )

    def to_html(self) -> str:
        """Return the table as HTML that looks the same without a style sheet, as notebooks show it."""
        caption, *notes = self.describe() or [""]
        heads = "".join(f"<th>{html_text(column.head)}</th>" for column in self.columns)
        has_heads = any(column.head for column in self.columns)
        rows = "".join(
            f"<tr>{''.join(_html_cell(*pair) for pair in zip(row, self.columns, strict=True))}</tr>"
            for row in self.rows
        )
        return "".join(
            [
                f"<p>{html_text(caption)}</p>" if caption else "",
                f"<table><thead><tr>{heads}</tr></thead>" if has_heads else "<table>",
                f"<tbody>{rows}</tbody></table>",
                *(f"<p>{html_text(note)}</p>" for note in notes),
            ]
        )

    def to_csv(self) -> str:
        """Return the cells as CSV, without marks; texts that a spreadsheet would run are made harmless."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([csv_cell(column.head) for column in self.columns])
        writer.writerows([csv_cell(cell.plain) for cell in row] for row in self.rows)
        return text.getvalue()


def format_tables(tables: Sequence[Table], style: str, *, width: int | None = None) -> str:
    """Return tables one below the other.

    Args:
        tables: The tables.
        style: One of :data:`TABLE_STYLES`.
        width: The greatest width of a line of text; None is without limit.

    Raises:
        SpecError: If there is no such format.
    """
    writers = {
        "text": lambda table: table.to_text(width=width, rules=True),
        "markdown": Table.to_markdown,
        "latex": Table.to_latex,
        "html": Table.to_html,
        "csv": Table.to_csv,
    }
    return "\n\n".join(map(look_up(style, writers, what="table format"), tables))


def _markdown_cell(cell: TableCell) -> str:
    text = markdown_text(cell.text)
    text = f"**{text}**" if cell.bold else text
    detail = f"({markdown_text(cell.detail)})" if cell.detail else ""
    return " ".join(filter(None, (text, detail, markdown_text(cell.mark))))


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: TableCell) -> str:
    """Return a cell; numbers are mathematics, and marks are superscripts."""
    marks = cell.mark.replace("≈", r"\approx").replace("†", r"\dagger").replace("▲", "+").replace("▼", "-")
    detail = f" ({latex_text(cell.detail)})" if cell.detail else ""
    if _NUMBER.fullmatch(cell.text):
        number = cell.text.replace("±", r"\pm").replace("−", "-")
        number = rf"\mathbf{{{number}}}" if cell.bold else number
        return f"${number}^{{{marks}}}${detail}" if marks else f"${number}${detail}"
    text = latex_text(cell.text)
    text = rf"\textbf{{{text}}}" if cell.bold else text
    return text + (f"$^{{{marks}}}$" if marks else "") + detail


def _html_cell(cell: TableCell, column: Column) -> str:
    text = html_text(cell.plain)
    text = f"<b>{text}</b>" if cell.bold else text
    mark = f" {html_text(cell.mark)}" if cell.mark else ""
    return f'<td style="text-align:{column.align};white-space:pre">{text}{mark}</td>'
