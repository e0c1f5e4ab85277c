"""The table of commands: where each is, and its help in one line, known without loading it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from equipoise.core.names import nearest

__all__ = ["COMMANDS", "CommandPlace", "CommandTable", "load_command"]


class CommandPlace(NamedTuple):
    """Where a command is.

    Attributes:
        module: In this room.
        attribute: Of the module.
        help: What ``equipoise --help`` says of it: the first sentence of the command's own help.
        goes_on: Whether it saves as it goes, so that after a stop the same command goes on.
    """

    module: str
    attribute: str
    help: str
    goes_on: bool = False


#: Every command by name.
COMMANDS: Mapping[str, CommandPlace] = MappingProxyType(
    {
        "apply": CommandPlace(
            "apply",
            "command",
            "Apply CALIBRATOR, saved by `equipoise calibrate`, to the predictions in FILE.",
        ),
        "audit": CommandPlace("audit", "command", "Audit the calibration of predictions in FILE."),
        "calibrate": CommandPlace(
            "calibrate",
            "command",
            "Fit a calibrator on FILE, held-out predictions with their labels, and save it.",
        ),
        "compare": CommandPlace(
            "training",
            "compare_command",
            "Run methods x networks x data x seeds from one file, and print the table; finished runs are not repeated.",
            goes_on=True,
        ),
        "compare-files": CommandPlace(
            "compare_files",
            "command",
            "Compare methods by files of predictions, one file per seed, all of the same rows.",
        ),
        "demo": CommandPlace(
            "demo",
            "command",
            "Train five methods with five seeds on embedded data, calibrate, print the table and write a report.",
            goes_on=True,
        ),
        "doctor": CommandPlace(
            "doctor",
            "command",
            "Explain the installation: versions, extras, threads, and the cache of compiled code.",
        ),
        "export": CommandPlace(
            "export",
            "command",
            "Export a RUN of `train` or `compare`, or a MODEL of `save`, to ONNX: inputs in, calibrated `probs` out.",
        ),
        "list": CommandPlace("listing", "list_command", "List methods by name, with paper and fidelity."),
        "merge": CommandPlace(
            "states",
            "merge_command",
            "Add saved states: one file per day, machine or partition becomes one of them all.",
        ),
        "plot": CommandPlace(
            "plot",
            "command",
            "Draw a KIND of picture of the finished runs in folders RUNS; one file per dataset and network.",
        ),
        "report": CommandPlace(
            "report",
            "command",
            "Write a report on folders of runs or on predictions: one file that opens offline.",
        ),
        "runs": CommandPlace(
            "runs", "runs_command", "List the runs in FOLDER: finished, half-finished, failed, broken."
        ),
        "save": CommandPlace(
            "save",
            "command",
            "Save the model of RUN, made by `train` or `compare`, as one file: network, calibrator, scaling of inputs.",
        ),
        "score": CommandPlace(
            "score", "command", "Print every calibration metric of FILE with its interval."
        ),
        "show": CommandPlace(
            "listing",
            "show_command",
            "Show one method: what it does, when to use it, its options, and what its paper reported.",
        ),
        "table": CommandPlace(
            "runs",
            "table_command",
            "Print the table of the finished runs in FOLDER: methods in rows, metrics in columns, ties marked.",
        ),
        "train": CommandPlace(
            "training",
            "train_command",
            "Train, predict and score one run, or go on where it stopped.",
            goes_on=True,
        ),
    }
)


def load_command(name: str) -> click.Command:
    """Return a command of the table.

    Example:
        >>> load_command("show").name
        'show'
    """
    place = COMMANDS[name]
    command: click.Command = getattr(import_module(f"equipoise.cli.{place.module}"), place.attribute)
    return command


class CommandTable(click.Group):
    """The commands of the table; one is loaded when it is called, and none to list them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None if there is none of that name."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was called; a slip of the pen is answered with the nearest name."""
        guess = None if args[0] in COMMANDS else nearest(args[0], COMMANDS)
        if guess and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {guess!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write names and help from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin like what was typed."""
        found = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        own = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=COMMANDS[name].help) for name in found), *own]
