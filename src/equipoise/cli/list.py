"""``equipoise list``: the methods, metrics, datasets and networks there are."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from equipoise.catalogue import CATALOGUE, METRIC_PARTS, Entry, add_plugins
from equipoise.cli.options import json_option, quiet_option
from equipoise.cli.output import print_json, print_table, text_width
from equipoise.core.names import look_up

__all__ = ["command", "entry_record"]


@click.command("list", epilog="Example:  equipoise list losses")
@click.argument("category", required=False, metavar="[CATEGORY]")
@json_option
@quiet_option
def command(category: str | None, as_json: bool, quiet: bool) -> None:
    """List methods by name, with paper and fidelity.

    CATEGORY is one of losses, penalties, objectives, calibrators, metrics, datasets, models, recipes. The default is
    all of them.
    """
    add_plugins()
    categories = list(CATALOGUE) if category is None else [category]
    entries = {name: look_up(name, CATALOGUE, what="category") for name in categories}
    if as_json:
        print_json(
            {name: [entry_record(entry) for entry in table.values()] for name, table in entries.items()}
        )
        return
    for number, (name, table) in enumerate(entries.items()):
        if not quiet and category is None:
            click.echo(("\n" if number else "") + name)
        rows = [
            (entry.key, entry.title, entry.fidelity, entry.paper.split(",")[0]) for entry in table.values()
        ]
        print_table(("key", "name", "fidelity", "paper"), rows)
        if name == "objectives" and not quiet:
            click.echo('"auto" is a search over methods: see `equipoise show auto`.')
        if name == "metrics" and not quiet:
            words = f"Reported with them: {', '.join(METRIC_PARTS)}; see `equipoise show NAME`."
            click.echo("\n".join(textwrap.wrap(words, text_width(), break_on_hyphens=False)))


def entry_record(entry: Entry) -> dict[str, Any]:
    """Return an entry of the catalogue as JSON shows it."""
    return {
        "key": entry.key,
        "title": entry.title,
        "summary": entry.summary,
        "paper": entry.paper,
        "fidelity": entry.fidelity,
        "use_when": entry.use_when,
        "avoid_when": entry.avoid_when,
        "formula": entry.formula,
        "sum": entry.sum,
        "options": {key: str(value) for key, value in entry.options.items()},
        "needs": sorted(entry.needs),
    }
