"""An audit on a terminal: the words of the plain text, in tables and colours."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from equipoise.evaluate.audits import (
    Audit,
    chance_words,
    later_cautions,
    slice_cells,
    slice_heads,
    slice_words,
    titled_slices,
)
from equipoise.evaluate.scorecard import circumstances, remarks, score_cells
from equipoise.evaluate.verdict import both_words, views_of_card
from equipoise.metrics.facts import metrics_where
from equipoise.metrics.target import target_facts

__all__ = ["console", "show_audit"]

_WIDEST = 100
#: Metrics that people look for first.
_PROMINENT = metrics_where(is_main=True)


def console() -> Console:
    """Return standard output, no wider than text is pleasant to read."""
    wide = Console(file=sys.stdout)
    return Console(file=sys.stdout, width=min(wide.width, _WIDEST), highlight=False)


def show_audit(found: Audit, *, quiet: bool) -> None:
    """Print an audit on a terminal."""
    out, card = console(), found.card
    prominent = {target_facts(key, card.target).label for key in _PROMINENT}
    if not quiet:
        first, second = circumstances(card).split("\n", 1)
        out.print(Text(f"Audit of {first}", style="bold"))
        out.print(Text(second, style="dim"))
        out.print()
    for caution in card.cautions:
        _print_labelled(out, "Warning", caution.text, "bold yellow")
    for verdict in views_of_card(card):
        out.print(Text(str(verdict), style="bold green" if verdict.is_calibrated else "bold yellow"))
    if card.event is not None:
        out.print(Text(both_words(card)))
    out.print(Text(chance_words(found)))
    if card.event is not None:
        out.print(Text("Predicted class:"))
    out.print(_table(("", "value", f"{100 * card.level:g} % interval"), score_cells(card), bold=prominent))
    for title, slices in titled_slices(found):
        out.print(Text(slice_words(found, title, slices)))
        worst = found.worst(slices)
        out.print(_table(slice_heads(card.target), map(slice_cells, worst)) if worst else "")
    if quiet:
        return
    for caution in later_cautions(found):
        _print_labelled(out, "Warning", caution.text, "bold yellow")
    for remark in remarks(card):
        _print_labelled(out, "Note", remark, "dim")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, bold: set[str] | None = None) -> Padding:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        # Text, not markup: names come from files.
        table.add_row(*map(Text, row), style="bold" if bold and row[0] in bold else None)
    return Padding(table, (0, 0, 0, 2))


def _print_labelled(out: Console, label: str, text: str, style: str) -> None:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(Text(f"{label}:", style=style), Text(text))
    out.print(grid)
