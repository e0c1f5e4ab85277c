"""The table of commands, and how mistakes become one sentence and an exit code."""

from __future__ import annotations

import os
import re
import sys

import click

from equipoise import __version__
from equipoise.cli import (
    apply,
    audit,
    calibrate,
    demo,
    doctor,
    export,
    listing,
    plot,
    report,
    runs,
    score,
    training,
)
from equipoise.cli.inputs import OPTION_OF
from equipoise.core.errors import EquipoiseError

__all__ = ["COMMANDS", "app", "run"]

#: Every command by name.
COMMANDS: dict[str, click.Command] = {
    "apply": apply.command,
    "audit": audit.command,
    "calibrate": calibrate.command,
    "compare": training.compare_command,
    "demo": demo.command,
    "doctor": doctor.command,
    "export": export.command,
    "list": listing.list_command,
    "plot": plot.command,
    "report": report.command,
    "runs": runs.runs_command,
    "score": score.command,
    "show": listing.show_command,
    "table": runs.table_command,
    "train": training.train_command,
}

_LONGEST = 600


@click.group(
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Try:  equipoise demo",
)
@click.version_option(__version__, prog_name="equipoise")
def app() -> None:
    """Measure, improve and prove the calibration of neural classifiers."""


def run(arguments: list[str]) -> int:
    """Run a command; a user's mistake is one sentence on standard error, never a traceback."""
    try:
        result = app.main(arguments, prog_name="equipoise", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return 130
    except SystemExit as stop:
        # click answers a closed pipe with exit code 1; that a reader stops early is no failure.
        if isinstance(stop.__context__, BrokenPipeError):
            return _mute()
        raise
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except MemoryError:
        click.echo("equipoise: there is not enough memory for this.", err=True)
        return 2
    except (EquipoiseError, ValueError, TypeError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return _mute()
        if os.environ.get("EQUIPOISE_DEBUG"):
            raise
        click.echo(f"equipoise: {_sentence(error)}", err=True)
        return 2
    return result if isinstance(result, int) else 0


def _sentence(error: Exception) -> str:
    """Return an error in one line, with arguments of functions as the options that give them."""
    text = " ".join(str(error).split()) or type(error).__name__
    for name, option in OPTION_OF.items():
        text = re.sub(rf"(?<![\w`]){name}=(?=[^\s.,;)])", f"{option} ", text)
        text = re.sub(rf"(?<![\w`]){name}=(?=\s|$|[.,;)](?!\.))", option, text)
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def _mute() -> int:
    """Close standard output, whose reader has gone, so that the interpreter's exit is quiet too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
