"""The table of commands, one module each, and their help in one line, which is known without loading them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from equipoise.core.names import nearest

__all__ = ["COMMANDS", "CommandEntry", "CommandTable", "load_command"]


class CommandEntry(NamedTuple):
    """A command of the table.

    Attributes:
        help: The line of ``equipoise --help``: the first sentence of the command's own help.
        resumes: Whether the command saves its progress, so that it continues when it is run again.
    """

    help: str
    resumes: bool = False


#: Every command by name; ``compare-files`` is ``command`` in ``cli/compare_files.py``.
COMMANDS: Mapping[str, CommandEntry] = MappingProxyType(
    {
        "adapt": CommandEntry("Adapt CALIBRATOR to other class frequencies, and save it."),
        "apply": CommandEntry(
            "Apply CALIBRATOR or DECISION, saved by `calibrate` or `decide`, to the predictions in FILE."
        ),
        "audit": CommandEntry("Audit the calibration of predictions in FILE."),
        "auto": CommandEntry(
            "Find the best calibrated model within a budget: trained, calibrated, tested, with a report.",
            resumes=True,
        ),
        "calibrate": CommandEntry(
            "Fit a calibrator on FILE, held-out predictions with their labels, and save it."
        ),
        "compare": CommandEntry(
            "Run methods x networks x data x seeds from one file, and print the table; finished runs are not repeated.",
            resumes=True,
        ),
        "compare-files": CommandEntry(
            "Compare methods by files of predictions, one file per seed, all of the same rows."
        ),
        "decide": CommandEntry(
            "Certify a threshold, fit prediction sets or choose the cheapest action on FILE, and save the decision."
        ),
        "demo": CommandEntry(
            "Train five methods with five seeds on embedded data, calibrate, print the table and write a report.",
            resumes=True,
        ),
        "doctor": CommandEntry(
            "Explain the installation: versions, extras, threads, and the cache of compiled code."
        ),
        "export": CommandEntry(
            "Export a RUN of `train` or `compare`, or a MODEL of `save`, to ONNX: inputs in, calibrated `probs` out."
        ),
        "list": CommandEntry("List methods by name, with paper and fidelity."),
        "merge": CommandEntry(
            "Add saved states: one file per day, machine or partition becomes one file for all."
        ),
        "plan": CommandEntry("Choose rows of FILE to label, so that the accuracy is known to a given width."),
        "plot": CommandEntry(
            "Draw a KIND of figure of the finished runs in folders RUNS; one file per dataset and network."
        ),
        "report": CommandEntry(
            "Write a report on folders of runs or on predictions: one file that opens offline."
        ),
        "runs": CommandEntry("List the runs in FOLDER: finished, half-finished, failed, broken."),
        "save": CommandEntry(
            "Save the model of RUN, made by `train` or `compare`, as one file: network, calibrator, scaling of inputs."
        ),
        "score": CommandEntry("Print every calibration metric of FILE with its interval."),
        "show": CommandEntry(
            "Show one method: what it does, when to use it, its options, and what its paper reported."
        ),
        "table": CommandEntry(
            "Print the table of the finished runs in FOLDER: methods in rows, metrics in columns, ties marked."
        ),
        "train": CommandEntry(
            "Train, predict and score one run, or continue where it stopped.", resumes=True
        ),
        "watch": CommandEntry(
            "Continue the monitors in STATE with the labelled rows of one day, and alarm if a claim is broken."
        ),
    }
)


def load_command(name: str) -> click.Command:
    """Return a command of the table.

    Example:
        >>> load_command("show").name
        'show'
    """
    command: click.Command = import_module(f"equipoise.cli.{name.replace('-', '_')}").command
    return command


class CommandTable(click.Group):
    """The commands of the table; each is loaded only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None if there is none of that name."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was called; an unknown name raises with the nearest one."""
        guess = None if args[0] in COMMANDS else nearest(args[0], COMMANDS)
        if guess and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {guess!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write names and help from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with the typed text."""
        found = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        own = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=COMMANDS[name].help) for name in found), *own]
