"""``equipoise table``: the results of finished runs."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.options import json_option, margin_option, quiet_option, style_option, verify_option
from equipoise.cli.output import print_json, terminal_width
from equipoise.core.errors import SpecError

__all__ = ["command"]


@click.command("table", epilog="Example:  equipoise table runs --method ce --method 'focal*'")
@click.argument("folder", default="runs", type=click.Path(path_type=Path))
@style_option
@click.option("--baseline", help="The method others are compared with; the first by default.")
@click.option("--metric", "metrics", multiple=True, help="Columns; repeat for several.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="LABEL",
    help="Show only this method, by its label or a pattern such as 'focal*'; repeat for several.",
)
@click.option(
    "--calibrator",
    "calibrators",
    multiple=True,
    metavar="NAME",
    help="Show only results after this calibrator; identity is none. Repeat for several.",
)
@click.option(
    "--fidelity/--no-fidelity",
    default=None,
    help="Whether a column shows how far methods were checked; by default in Markdown only.",
)
@margin_option
@verify_option
@json_option
@quiet_option
def command(
    folder: Path,
    style: str,
    baseline: str | None,
    metrics: tuple[str, ...],
    methods: tuple[str, ...],
    calibrators: tuple[str, ...],
    fidelity: bool | None,
    margins: tuple[tuple[str, float], ...],
    verify: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the table of the finished runs in FOLDER: methods in rows, metrics in columns, ties marked.

    Methods and calibrators are in the order of the comparison.
    """
    from equipoise.experiments import find_runs, format_shifts, format_tables, group_runs
    from equipoise.experiments.results.groups import select_from
    from equipoise.experiments.results.tables import COLUMNS, tables_of_groups
    from equipoise.experiments.runs.folder import UNUSABLE

    runs = {run: run.status(verify=verify) for run in find_runs(folder)}
    finished = [run for run, status in runs.items() if status == "finished"]
    left_out = sum(status in UNUSABLE for status in runs.values())
    if not finished:
        raise SpecError(f"{folder}: no finished run. `equipoise runs {folder}` lists the runs.")
    if left_out and not (quiet or as_json):
        click.echo(f"{left_out} runs are left out; `equipoise runs {folder} --why` prints why.\n", err=True)
    groups = select_from(group_runs(finished), methods=methods, calibrators=calibrators)
    tables = tables_of_groups(groups, baseline=baseline, metrics=metrics or COLUMNS, margins=dict(margins))
    if as_json:
        shown = {run.name for group in groups for run in group.runs}
        rows = [row for run in finished if not methods or run.name in shown for row in run.rows()]
        differences = [row for table in tables for row in table.difference_records()]
        keys = {key for group in groups for key in group.calibrators}
        selected = [row for row in rows if not calibrators or row["calibrator"] in keys]
        print_json(
            {
                "rows": [row for row in selected if not metrics or row["metric"] in metrics],
                "table": [row for table in tables for row in table.records()],
                "differences": [row for row in differences if not metrics or row["metric"] in metrics],
            }
        )
        return
    click.echo(format_tables(tables, style, width=terminal_width(), fidelity=fidelity))
    shifted = "" if style == "csv" else format_shifts(groups, style, width=terminal_width())
    if shifted:
        click.echo(f"\n{shifted}")
