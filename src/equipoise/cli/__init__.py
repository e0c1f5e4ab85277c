"""The command line: parse, call, print."""

from __future__ import annotations

import atexit
import gc
import sys

from equipoise.cli.errors import report_unexpected as _report_unexpected
from equipoise.core.lazy import listed_names as _listed_names

__all__ = ["main"]

__dir__ = _listed_names(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: done. 1: a check or a run failed. 2: bad usage or input. 70: an unexpected error. 130 and 143: stopped by
    Ctrl-C or SIGTERM.

    Args:
        arguments: The words after the command's name; by default those of this process.

    Returns:
        The exit code.

    Example:
        >>> main(["score", "no-such-file.npz"])
        2
    """
    if arguments is None:
        # At its end, Python looks for garbage among all objects of all modules, which takes a third of a second.
        atexit.register(gc.freeze)
    try:
        from equipoise.cli.app import run
    except Exception as error:  # noqa: BLE001 - an installation that is not whole
        if not isinstance(error, ModuleNotFoundError) or error.name != "click":
            return _report_unexpected(error)
        sys.stderr.write("equipoise: click is not installed. Run: pip install click\n")
        return 2
    return run(sys.argv[1:] if arguments is None else arguments)
