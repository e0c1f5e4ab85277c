"""Options and output that commands have in common."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "SHARE",
    "check_output",
    "check_report",
    "json_option",
    "print_json",
    "quiet_option",
    "verify_option",
]

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """Add ``--json``: machine-readable output on standard output and nothing else there."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(function)


def quiet_option(function: F) -> F:
    """Add ``--quiet``: no progress, no remarks."""
    return click.option("--quiet", "-q", is_flag=True, help="Print results only.")(function)


def verify_option(function: F) -> F:
    """Add ``--verify``: hash the files of runs, whatever their size and time."""
    return click.option(
        "--verify",
        is_flag=True,
        help="Hash every file of the runs; by default only those whose size or time differ.",
    )(function)


SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


def check_output(path: Path, endings: tuple[str, ...], *, option: str = "--output") -> None:
    """Raise before any work is done if a result could not be written in the end."""
    problem = ""
    if path.suffix.lower() not in endings:
        problem = f"{str(path)!r} must end in {' or '.join(endings)}."
    elif not path.parent.is_dir():
        problem = f"the folder {str(path.parent)!r} does not exist. Make it first."
    elif path.is_dir():
        problem = f"{str(path)!r} is a folder. Name a file in it."
    if problem:
        raise click.BadParameter(problem, param_hint=f"'{option}'")


def check_report(path: Path, *, option: str = "--report") -> None:
    """Raise before any work is done if a report could not be written in the end."""
    from equipoise.report.write import ENDINGS  # slow to load, and few commands write a report

    check_output(path, ENDINGS, option=option)


def print_json(content: Any) -> None:
    """Print one JSON document; numbers that JSON does not know become null."""
    click.echo(json.dumps(_plain(content), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value
