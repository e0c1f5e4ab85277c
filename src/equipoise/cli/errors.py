"""Unexpected errors: one line, and an exit code of their own."""

from __future__ import annotations

import os
import sys
import traceback

from equipoise.core.errors import first_line
from equipoise.core.escaping import visible, without_secrets

__all__ = ["UNEXPECTED", "print_traceback_if_requested", "report_unexpected"]

#: EX_SOFTWARE of sysexits.h; 1 is the code of a failed check.
UNEXPECTED = 70


def report_unexpected(error: BaseException) -> int:
    """Print which error it was and how to get its traceback, and return the exit code."""
    print_traceback_if_requested()
    message = visible(without_secrets(first_line(error)))
    sys.stderr.write(
        f"equipoise: unexpected {type(error).__name__}: {message}. This is a bug, of equipoise or of "
        "code that it ran. Set EQUIPOISE_DEBUG=1 for the traceback.\n"
    )
    return UNEXPECTED


def print_traceback_if_requested() -> None:
    """Print the traceback of the current error if EQUIPOISE_DEBUG is set."""
    if os.environ.get("EQUIPOISE_DEBUG"):
        sys.stderr.write(visible(without_secrets(traceback.format_exc()), keep="\n"))
