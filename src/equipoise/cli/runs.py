"""``equipoise runs``, ``equipoise runs export`` and ``equipoise table``: what was run, and what came out."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.limits import equivalence_option
from equipoise.cli.shared import json_option, print_json, quiet_option, verify_option
from equipoise.cli.tables import print_table, terminal_width
from equipoise.core.errors import EquipoiseError, SpecError

if TYPE_CHECKING:
    from equipoise.experiments import RunFolder

__all__ = ["runs_command", "table_command"]

_EXAMPLES = """\b
Examples:
  equipoise runs runs --why
  equipoise runs export runs --to tensorboard --out logs
"""
#: What people read for a status.
_STATUS_TEXT = {"unreadable": "cannot be read here"}
_LOGGERS = ("tensorboard", "mlflow", "wandb")


class _Runs(click.Group):
    """Lists runs, unless its first word is another thing to do with them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take whatever is no command of its own for a folder to list."""
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["list", *args])


@click.group(
    "runs",
    cls=_Runs,
    help="List the runs in FOLDER: finished, half-finished, failed, broken.",
    epilog=_EXAMPLES,
)
def runs_command() -> None:
    """Do something with runs."""


@runs_command.command("list", epilog=_EXAMPLES)
@click.argument("folder", default="runs", type=click.Path(path_type=Path))
@click.option("--why", is_flag=True, help="Say why runs failed.")
@click.option("--clean", is_flag=True, help="Move failed runs to a trash folder, so that they start over.")
@click.option("--yes", is_flag=True, help="With --clean: do not ask for confirmation.")
@verify_option
@json_option
@quiet_option
def list_command(
    folder: Path, why: bool, clean: bool, yes: bool, verify: bool, as_json: bool, quiet: bool
) -> None:
    """List the runs in FOLDER: finished, half-finished, failed, broken.

    `equipoise runs export` hands them to TensorBoard, MLflow or Weights & Biases.
    """
    from equipoise.experiments import find_runs

    if yes and not clean:
        raise click.UsageError("--yes goes with --clean.")
    if clean and not yes and not (sys.stdin and sys.stdin.isatty()):
        raise click.UsageError(
            "--clean asks for confirmation, and standard input is not a terminal. Nothing was removed. Add --yes."
        )
    runs = find_runs(folder)
    records = [_record(run, verify=verify) for run in runs]
    if not as_json:
        _print_runs(records, why=why or clean)
    moved = _clean([run for run in runs if run.why_not_removable() is None], yes=yes) if clean else {}
    if as_json:
        print_json(
            {"runs": records, "removed": list(moved), "trash": {key: str(to) for key, to in moved.items()}}
        )
    elif clean and not quiet:
        lines = [f"removed {name}: it is now {place}" for name, place in moved.items()]
        click.echo("\n" + "\n".join(lines or ["Nothing was removed."]))


def _print_runs(records: list[dict[str, object]], *, why: bool) -> None:
    shown = (
        {**record, "status": _STATUS_TEXT.get(str(record["status"]), record["status"])} for record in records
    )
    rows = [tuple(str(record[key]) for key in ("run", "status", "epochs", "label")) for record in shown]
    print_table(("run", "status", "epochs", "what"), rows)
    for record in records:
        if record["error"] and (why or record["status"] == "unreadable"):
            click.echo(f"\n{record['run']} {record['label']}\n  {record['error']}")


def _clean(runs: list[RunFolder], *, yes: bool) -> dict[str, Path]:
    """Move failed runs to the trash after asking, and return where each is now."""
    if not runs:
        return {}
    if not yes:
        click.echo("\nThese failed runs would be moved to a trash folder beside them:", err=True)
        for run in runs:
            click.echo(f"  {run.path}", err=True)
        if not click.confirm("Move them?", err=True):
            return {}
    moved = ((run.name, run.remove()) for run in runs)
    return {name: place for name, place in moved if place is not None}


@runs_command.command("export", epilog=_EXAMPLES)
@click.argument("folder", default="runs", type=click.Path(path_type=Path))
@click.option("--to", "logger", type=click.Choice(_LOGGERS), required=True, help="Who is to show them.")
@click.option(
    "--out",
    "-o",
    default="logs",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder that the logs go to.",
)
@json_option
@quiet_option
def export_command(folder: Path, logger: str, out: Path, as_json: bool, quiet: bool) -> None:
    """Hand the runs in FOLDER to a logger: settings, every epoch, scores. Nothing leaves this machine.

    Runs may still be growing: the same command again completes what was handed over before.
    """
    # These packages are heavy, and extras.
    export_run = import_module(f"equipoise.integrations.{logger}").export_run
    from equipoise.experiments import find_runs
    from equipoise.experiments.runs.folder import UNUSABLE
    from equipoise.integrations.run_log import read_run

    runs = {run: run.status() for run in find_runs(folder)}
    whole = [run for run, status in runs.items() if status not in UNUSABLE]
    if not whole:
        raise SpecError(f"{folder}: no run to export. `equipoise runs {folder} --why` shows what is there.")
    logs = [read_run(run) for run in whole]
    show = ""
    for log in logs:
        show = export_run(log, out)
    if as_json:
        exported = [{"run": log.name, "label": log.label, "epochs": len(log.epochs)} for log in logs]
        print_json({"to": logger, "out": str(out), "runs": exported, "show": show})
        return
    if len(whole) < len(runs) and not quiet:
        left_out = len(runs) - len(whole)
        click.echo(f"{left_out} runs are left out; `equipoise runs {folder} --why` says why.", err=True)
    if not quiet:
        click.echo(
            f"{len(logs)} runs, {sum(len(log.epochs) for log in logs)} epochs. To look at them:", err=True
        )
    click.echo(show)


def _record(run: RunFolder, *, verify: bool) -> dict[str, object]:
    from equipoise.experiments.runs.folder import UNUSABLE

    status = run.status(verify=verify)
    unknown = {"run": run.name, "status": status, "epochs": "", "label": ""}
    if status in UNUSABLE:
        return {**unknown, "error": run.problem(verify=verify) or run.unreadable_spec()}
    try:
        spec, error, epochs = run.spec(), run.error(), len(run.history())
    except EquipoiseError as damage:  # another process works on it, and mends it
        return {**unknown, "error": str(damage)}
    return {
        "run": run.name,
        "status": status,
        "epochs": f"{epochs}/{spec.training.epochs}",
        "label": spec.label,
        "error": "" if error is None else f"{error['stage']}: {error['kind']}: {error['message']}",
    }


@click.command("table", epilog="Example:  equipoise table runs --method ce --method 'focal*'")
@click.argument("folder", default="runs", type=click.Path(path_type=Path))
@click.option("--format", "style", type=click.Choice(["text", "markdown", "latex", "csv"]), default="text")
@click.option("--baseline", help="The method others are compared with; the first by default.")
@click.option("--metric", "metrics", multiple=True, help="Columns; repeat for several.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="LABEL",
    help="Only this method, by its label or a pattern such as 'focal*'; repeat for several.",
)
@click.option(
    "--calibrator",
    "calibrators",
    multiple=True,
    metavar="NAME",
    help="Only after this calibrator; identity is none. Repeat for several.",
)
@click.option(
    "--fidelity/--no-fidelity",
    default=None,
    help="Whether a column says how far methods were checked; by default in markdown only.",
)
@equivalence_option
@verify_option
@json_option
@quiet_option
def table_command(
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

    Methods and calibrators stand in the order of the comparison that made the runs.
    """
    from equipoise.experiments import find_runs, format_shifts, format_tables, group_runs
    from equipoise.experiments.results.groups import select_from
    from equipoise.experiments.results.tables import COLUMNS, tables_of_groups
    from equipoise.experiments.runs.folder import UNUSABLE

    runs = {run: run.status(verify=verify) for run in find_runs(folder)}
    finished = [run for run, status in runs.items() if status == "finished"]
    left_out = sum(status in UNUSABLE for status in runs.values())
    if not finished:
        raise SpecError(f"{folder}: no finished run. `equipoise runs {folder}` shows what is there.")
    if left_out and not (quiet or as_json):
        click.echo(f"{left_out} runs are left out; `equipoise runs {folder} --why` says why.\n", err=True)
    groups = select_from(group_runs(finished), methods=methods, calibrators=calibrators)
    tables = tables_of_groups(groups, baseline=baseline, metrics=metrics or COLUMNS, margins=dict(margins))
    if as_json:
        shown = {run.name for group in groups for run in group.runs}
        rows = [row for run in finished if not methods or run.name in shown for row in run.rows()]
        differences = [row for table in tables for row in table.difference_records()]
        keys = {key for group in groups for key in group.calibrators}
        wanted = [row for row in rows if not calibrators or row["calibrator"] in keys]
        print_json(
            {
                "rows": [row for row in wanted if not metrics or row["metric"] in metrics],
                "table": [row for table in tables for row in table.records()],
                "differences": [row for row in differences if not metrics or row["metric"] in metrics],
            }
        )
        return
    click.echo(format_tables(tables, style, width=terminal_width(), fidelity=fidelity))
    further = "" if style == "csv" else format_shifts(groups, style, width=terminal_width())
    if further:
        click.echo(f"\n{further}")
