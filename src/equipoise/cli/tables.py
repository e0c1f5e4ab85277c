"""Tables on a terminal and in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

__all__ = ["print_table"]


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows: drawn on a terminal, aligned and uncut in a pipe."""
    if sys.stdout.isatty():
        table = Table(header_style="bold", box=None, pad_edge=False)
        for name in head:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    grid = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in grid) for i in range(len(head))]
    for line in grid:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
