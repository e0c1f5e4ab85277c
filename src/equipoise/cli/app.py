"""The program: warnings and errors as one line each, and exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import click

from equipoise import __version__
from equipoise.cli.commands import COMMANDS, CommandTable
from equipoise.cli.errors import print_traceback_if_requested, report_unexpected
from equipoise.cli.inputs import OPTION_OF
from equipoise.cli.output import safe_stream
from equipoise.core.errors import EquipoiseError, EquipoiseWarning
from equipoise.core.escaping import visible, without_secrets
from equipoise.kernels.locks import LockWarning

__all__ = ["app", "run"]

_LONGEST = 600
_TERMINATED = 128 + signal.SIGTERM
_COMPLETION = "_EQUIPOISE_COMPLETE"
#: The option that replaces the name of an argument in messages.
_OPTIONS = {**OPTION_OF, "root": "--data", "positive": "--positive", "by": "--by"}


@click.group(
    cls=CommandTable,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Try:  equipoise demo",
)
@click.version_option(__version__, prog_name="equipoise")
def app() -> None:
    """Measure and correct the confidence of classifiers, and turn it into decisions with a guarantee."""


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; errors are one line on standard error, never a traceback."""
    try:
        with (
            redirect_stdout(safe_stream(sys.stdout)),
            _short_warnings(),
        ):
            result = app.main(arguments, prog_name="equipoise", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _say_that_it_resumes(arguments)
        return 130
    except SystemExit as stop:
        if stop.code == _TERMINATED:
            _say_that_it_resumes(arguments)
        elif stop.code not in (None, 0) and _COMPLETION not in os.environ:
            return report_unexpected(stop)  # code of others called sys.exit
        raise
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(visible(without_secrets(shown.getvalue()), keep="\n"), err=True, nl=False)
        return 2
    except MemoryError:
        click.echo("equipoise: not enough memory.", err=True)
        return 2
    except (EquipoiseError, ValueError, TypeError, OSError) as error:
        print_traceback_if_requested()
        click.echo(f"equipoise: {_sentence(error)}", err=True)
        return 2
    except Exception as error:  # noqa: BLE001 - a fault of ours or of a library
        return report_unexpected(error)
    return result if isinstance(result, int) else 0


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print our own warnings as one line; those of libraries stay as they are."""
    with warnings.catch_warnings():
        for kind in (EquipoiseWarning, LockWarning):
            warnings.simplefilter("always", kind)
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *origin: Any, **options: Any) -> None:
            if issubclass(category, (EquipoiseWarning, LockWarning)):
                click.echo(f"equipoise: warning: {' '.join(str(message).split())}", err=True)
            else:
                others(message, category, *origin, **options)

        warnings.showwarning = show
        yield


def _say_that_it_resumes(arguments: list[str]) -> None:
    if any(word in COMMANDS and COMMANDS[word].resumes for word in arguments[:1]):
        click.echo(
            "equipoise: stopped. Finished work is saved; run the same command again to continue.", err=True
        )


def _sentence(error: Exception) -> str:
    """Return an error in one line."""
    described = error.describe(_OPTIONS) if isinstance(error, EquipoiseError) else str(error)
    text = " ".join(described.split()) or type(error).__name__
    text = visible(without_secrets(text))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
