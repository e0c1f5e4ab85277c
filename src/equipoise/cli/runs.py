"""``equipoise runs`` and ``equipoise runs export``: the runs in a folder."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.options import json_option, quiet_option, verify_option
from equipoise.cli.output import print_json, print_table
from equipoise.core.errors import EquipoiseError, SpecError

if TYPE_CHECKING:
    from equipoise.experiments import RunFolder

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  equipoise runs runs --why
  equipoise runs export runs --to tensorboard --out logs
"""
#: Statuses as they are printed.
_STATUS_TEXT = {"unreadable": "cannot be read here"}
_LOGGERS = ("tensorboard", "mlflow", "wandb")


class _Runs(click.Group):
    """Lists runs, unless the first word is a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Treat words that are not a subcommand as a folder to list."""
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["list", *args])


@click.group(
    "runs",
    cls=_Runs,
    help="List the runs in FOLDER: finished, half-finished, failed, broken.",
    epilog=_EXAMPLES,
)
def command() -> None:
    """List or export runs."""


@command.command("list", epilog=_EXAMPLES)
@click.argument("folder", default="runs", type=click.Path(path_type=Path))
@click.option("--why", is_flag=True, help="Print why runs failed.")
@click.option("--clean", is_flag=True, help="Move failed runs to a trash folder, so that they start over.")
@click.option("--yes", is_flag=True, help="With --clean: do not ask for confirmation.")
@verify_option
@json_option
@quiet_option
def list_command(
    folder: Path, why: bool, clean: bool, yes: bool, verify: bool, as_json: bool, quiet: bool
) -> None:
    """List the runs in FOLDER: finished, half-finished, failed, broken.

    `equipoise runs export` exports them to TensorBoard, MLflow or Weights & Biases.
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
        lines = [f"removed {name}: it is now {path}" for name, path in moved.items()]
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
        click.echo("\nThese failed runs would be moved to a trash folder next to them:", err=True)
        for run in runs:
            click.echo(f"  {run.path}", err=True)
        if not click.confirm("Move them?", err=True):
            return {}
    moved = ((run.name, run.remove()) for run in runs)
    return {name: path for name, path in moved if path is not None}


@command.command("export", epilog=_EXAMPLES)
@click.argument("folder", default="runs", type=click.Path(path_type=Path))
@click.option("--to", "logger", type=click.Choice(_LOGGERS), required=True, help="The logger to export to.")
@click.option(
    "--out",
    "-o",
    default="logs",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for the logs.",
)
@json_option
@quiet_option
def export_command(folder: Path, logger: str, out: Path, as_json: bool, quiet: bool) -> None:
    """Export the runs in FOLDER to a logger: settings, every epoch, scores. Nothing leaves this machine.

    Unfinished runs are exported too; the same command completes them later.
    """
    # These packages are heavy, and extras.
    export_run = import_module(f"equipoise.integrations.{logger}").export_run
    from equipoise.experiments import find_runs
    from equipoise.experiments.runs.folder import UNUSABLE
    from equipoise.integrations.run_log import read_run

    runs = {run: run.status() for run in find_runs(folder)}
    whole = [run for run, status in runs.items() if status not in UNUSABLE]
    if not whole:
        raise SpecError(f"{folder}: no run to export. `equipoise runs {folder} --why` lists the runs.")
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
        click.echo(f"{left_out} runs are left out; `equipoise runs {folder} --why` prints why.", err=True)
    if not quiet:
        click.echo(
            f"{len(logs)} runs, {sum(len(log.epochs) for log in logs)} epochs. To view them:", err=True
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
    except EquipoiseError as damage:  # another process is writing it
        return {**unknown, "error": str(damage)}
    return {
        "run": run.name,
        "status": status,
        "epochs": f"{epochs}/{spec.training.epochs}",
        "label": spec.label,
        "error": "" if error is None else f"{error['stage']}: {error['kind']}: {error['message']}",
    }
