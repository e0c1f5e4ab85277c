"""``equipoise show``: one method, its options, and what its paper reported."""

from __future__ import annotations

import re
import textwrap

import click

from equipoise.catalogue import (
    CATALOGUE,
    METRIC_PARTS,
    Entry,
    add_plugins,
    failed_plugins,
    options_of,
)
from equipoise.cli.list import entry_record
from equipoise.cli.options import json_option, quiet_option
from equipoise.cli.output import print_json, print_table, text_width
from equipoise.core.names import look_up
from equipoise.experiments.results.papers import PaperResult, find_paper_results

__all__ = ["command"]

#: With more options than this, as recipes have, only those of the main setting are shown.
_MOST_OPTIONS = 16
_MOST_PRINTED = 10


@click.command("show", epilog="Example:  equipoise show dual_focal")
@click.argument("name")
@click.option("--all", "in_full", is_flag=True, help="All options in full, and all published results.")
@json_option
@quiet_option
def command(name: str, in_full: bool, as_json: bool, quiet: bool) -> None:
    """Show one method: what it does, when to use it, its options, and what its paper reported."""
    if name == "auto":
        _show_auto(as_json=as_json)
        return
    add_plugins()
    known: dict[str, list[tuple[str, Entry]]] = {}
    for category, table in CATALOGUE.items():
        for key, entry in table.items():
            known.setdefault(key, []).append((category, entry))
    answers = {**failed_plugins(), **METRIC_PARTS}
    found = look_up(name, known, what="method", hint="`equipoise list` shows all.", renamed=answers)
    printed = find_paper_results(method=name)
    if as_json:
        records = [
            {
                "category": category,
                **entry_record(entry),
                "arguments": [one._asdict() for one in options_of(entry)],
            }
            for category, entry in found
        ]
        print_json({"entries": records, "published": [row._asdict() for row in printed]})
        return
    for number, (category, entry) in enumerate(found):
        click.echo(("\n" if number else "") + f"{entry.title}  ({category}: {entry.key})\n")
        _print_entry(entry)
        _print_options(entry, in_full=in_full)
    if printed and not quiet:
        _print_papers(printed, in_full=in_full)


def _show_auto(*, as_json: bool) -> None:
    """Print what the search is, which is a command and not an entry of the catalogue."""
    about = {
        "title": "Automatic choice",
        "summary": "A search over methods and calibrators within a budget. Cross-entropy + temperature is replaced "
        "only if another candidate is significantly better in a paired test on held-out rows.",
        "ladder": "ce, ema, ensemble of 5, calibrators (sms, vector, ...), then label_smoothing, focal, mixup or "
        "cutmix and regmixup by successive halving, and more members of the best.",
        "use": 'equipoise auto DATA --model NAME --budget 5 -o model; or method = "auto" in a spec; see '
        "`equipoise auto --help`.",
    }
    if as_json:
        print_json({"entries": [{"category": "commands", "key": "auto", **about}], "published": []})
        return
    for label, text in about.items():
        start = "" if label in ("title", "summary") else f"{label}: "
        click.echo("\n".join(textwrap.wrap(start + text, text_width(), break_on_hyphens=False)))


def _print_entry(entry: Entry) -> None:
    for label, text in (
        ("", entry.summary),
        ("use when", entry.use_when),
        ("avoid when", entry.avoid_when),
        ("formula", entry.formula),
        ("paper", entry.paper),
        ("fidelity", entry.fidelity),
        ("needs", ", ".join(sorted(entry.needs))),
        ("sum", entry.sum),
        ("main setting", ", ".join(f"{key}={value}" for key, value in entry.options.items())),
    ):
        if text:
            start = f"{label + ':' if label else '':<14}"
            lines = textwrap.wrap(
                text, text_width() - len(start), break_long_words=False, break_on_hyphens=False
            )
            click.echo(start + f"\n{'':<14}".join(lines))


def _print_options(entry: Entry, *, in_full: bool) -> None:
    found = options_of(entry)
    left_out = 0
    if len(found) > _MOST_OPTIONS and not in_full:
        shown = [option for option in found if option.name in entry.options]
        found, left_out = shown, len(found) - len(shown)
    if found:
        click.echo()
        rows = [
            (one.name, one.default, one.meaning if in_full else _first_sentence(one.meaning)) for one in found
        ]
        print_table(("option", "default", "meaning"), rows, width=text_width())
    if left_out:
        click.echo(f"{left_out} more options; --all shows them.")


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s+(?=[A-Z])", text, maxsplit=1)[0]


def _print_papers(printed: list[PaperResult], *, in_full: bool) -> None:
    shown = printed if in_full else printed[:_MOST_PRINTED]
    click.echo(f"\nPublished results ({len(printed)} numbers; splits and recipes differ between papers):\n")
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
        for row in shown
    ]
    print_table(("data", "network", "metric", "stage", "value", "source", "note"), rows)
    if len(shown) < len(printed):
        click.echo(f"{len(printed) - len(shown)} more; --all shows them.")
