"""Standard output of commands: JSON, tables, and a stream whose reader may stop early."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast, final

import click

from equipoise.core.escaping import json_text, visible
from equipoise.core.tables import Table

__all__ = [
    "check_output",
    "check_report",
    "print_json",
    "print_table",
    "safe_stream",
    "terminal_width",
    "text_width",
]

_WIDEST_TEXT = 100

#: Characters that control a terminal or reverse text, except line breaks, tabs, and the colors that commands use.
_CONTROLS = re.compile(
    "\x1b(?!\\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


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
    """Print one JSON document; numbers that JSON does not have become null."""
    click.echo(json_text(content))


def terminal_width() -> int | None:
    """Return the width of the terminal; None in a pipe, where lines stay whole."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def text_width() -> int:
    """Return the width of paragraphs: that of the terminal, but no more than is pleasant to read."""
    return min(terminal_width() or _WIDEST_TEXT, _WIDEST_TEXT)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> None:
    """Print rows of texts in columns; cells are wrapped where the table would be wider than the terminal.

    Args:
        heads: Headings.
        rows: Cells.
        width: The greatest width; by default that of the terminal, and without limit in a pipe.
    """
    table = Table.of(heads, rows, align="w" * len(heads))
    click.echo(table.to_text(width=width or terminal_width()))


def safe_stream(stream: TextIO | None) -> TextIO:
    """Return a stream that continues without its reader, and escapes what could control a terminal.

    A reader that stops early, as ``head`` does, is not an error: the command continues to its own exit code, so that a
    failed gate is reported even if only the first line is read. click would exit with 1.
    """
    # None: it was closed before the start, as daemons do.
    return cast("TextIO", _Output(stream or open(os.devnull, "w", encoding="utf-8")))


@final
class _Output:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: Any) -> int:
        shown = _CONTROLS.sub(lambda found: visible(found[0]), text) if isinstance(text, str) else text
        with self._if_read():
            self._stream.write(shown)
        return len(text)

    def flush(self) -> None:
        with self._if_read():
            self._stream.flush()

    @property
    def buffer(self) -> Any:
        """The binary stream, which click uses where the terminal cannot encode all characters."""
        return _Output(cast("Any", self._stream).buffer)

    @contextmanager
    def _if_read(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # The rest of the output is discarded, and the interpreter exits without a message.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
