"""Tables on a terminal and in a pipe."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

import click

from equipoise.core.escaping import visible

__all__ = ["print_table", "terminal_width"]

_NARROWEST = 8


def terminal_width() -> int | None:
    """Return how many letters fit beside each other; None in a pipe, whose reader wants lines uncut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> None:
    """Print rows in columns; cells are wrapped where the table would be wider than the terminal.

    Args:
        head: What stands above the columns.
        rows: Their cells.
        width: Of the table; by default that of the terminal, and as wide as it gets in a pipe.
    """
    grid = [[visible(cell) for cell in line] for line in (head, *rows)]
    widths = _fitted([max(map(len, column)) for column in zip(*grid, strict=True)], width or terminal_width())
    for number, line in enumerate(grid):
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(line, widths, strict=True)]
        for height in range(max(map(len, cells))):
            parts = [cell[height] if height < len(cell) else "" for cell in cells]
            text = "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
            click.echo(text if number else click.style(text, bold=True))


def _fitted(widths: list[int], total: int | None) -> list[int]:
    """Return widths of columns of which the widest gave way until all fit."""
    widths = [max(width, 1) for width in widths]
    while total and sum(widths) + 2 * (len(widths) - 1) > total and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths
