"""``equipoise list`` and ``equipoise show``: what there is, where it comes from, how faithful it is."""

from __future__ import annotations

import inspect
from typing import Any

import click

from equipoise.cli.shared import json_option, print_json, quiet_option
from equipoise.cli.tables import print_table
from equipoise.core.names import look_up
from equipoise.experiments.catalogue import CATALOGUE, Entry, add_plugins
from equipoise.experiments.paper_results import find_paper_results

__all__ = ["list_command", "show_command"]


@click.command("list", epilog="Example:  equipoise list losses")
@click.argument("room", required=False, metavar="[ROOM]")
@json_option
@quiet_option
def list_command(room: str | None, as_json: bool, quiet: bool) -> None:
    """List methods by name, with paper and fidelity.

    ROOM is one of losses, penalties, pairs, objectives, calibrators, metrics, datasets, models, recipes; all by
    default.
    """
    add_plugins()
    rooms = list(CATALOGUE) if room is None else [room]
    entries = {name: look_up(name, CATALOGUE, what="room of the catalogue") for name in rooms}
    if as_json:
        print_json({name: [_record(entry) for entry in table.values()] for name, table in entries.items()})
        return
    for number, (name, table) in enumerate(entries.items()):
        if not quiet and room is None:
            click.echo(("\n" if number else "") + name)
        rows = [
            (entry.key, entry.title, entry.fidelity, entry.paper.split(",")[0]) for entry in table.values()
        ]
        print_table(("key", "name", "fidelity", "paper"), rows)


@click.command("show", epilog="Example:  equipoise show dual_focal")
@click.argument("name")
@json_option
@quiet_option
def show_command(name: str, as_json: bool, quiet: bool) -> None:
    """Show one method: what it does, when to use it, its parameters, and what its paper reported."""
    add_plugins()
    known: dict[str, list[tuple[str, Entry]]] = {}
    for room, table in CATALOGUE.items():
        for key, entry in table.items():
            known.setdefault(key, []).append((room, entry))
    found = look_up(name, known, what="method", hint="`equipoise list` shows all.")
    printed = find_paper_results(method=name)
    if as_json:
        records = [{"room": room, **_record(entry)} for room, entry in found]
        print_json({"entries": records, "published": [row._asdict() for row in printed]})
        return
    for number, (room, entry) in enumerate(found):
        click.echo(("\n" if number else "") + f"{entry.title}  ({room}: {entry.key})\n")
        _print_entry(entry)
    if printed and not quiet:
        click.echo(
            f"\nPrinted in papers ({len(printed)} numbers; splits and recipes differ between papers):\n"
        )
        rows = [
            (
                row.dataset,
                row.model,
                row.metric,
                row.stage,
                f"{row.value:.4g}",
                f"{row.paper}, table {row.table}",
                row.note,
            )
            for row in printed
        ]
        print_table(("data", "network", "metric", "stage", "value", "source", "note"), rows)


def _print_entry(entry: Entry) -> None:
    for label, text in (
        ("", entry.summary),
        ("use when", entry.use_when),
        ("avoid when", entry.avoid_when),
        ("formula", entry.formula),
        ("paper", entry.paper),
        ("fidelity", entry.fidelity),
        ("needs", ", ".join(sorted(entry.needs))),
        ("main setting", ", ".join(f"{key}={value}" for key, value in entry.parameters.items())),
        ("parameters", _parameters(entry)),
    ):
        if text:
            click.echo(f"{label + ':' if label else '':<14}{text}")


def _parameters(entry: Entry) -> str:
    try:
        return str(inspect.signature(entry.factory))
    except (TypeError, ValueError):
        return ""


def _record(entry: Entry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "title": entry.title,
        "summary": entry.summary,
        "paper": entry.paper,
        "fidelity": entry.fidelity,
        "use_when": entry.use_when,
        "avoid_when": entry.avoid_when,
        "formula": entry.formula,
        "parameters": {key: str(value) for key, value in entry.parameters.items()},
        "needs": sorted(entry.needs),
    }
