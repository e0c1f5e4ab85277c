"""Standard output whose reader may stop early, as ``head`` does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast, final

from equipoise.core.escaping import visible

__all__ = ["output_to_whoever_reads"]

#: What could steer a terminal or show text backwards, but for line breaks, tabs, and the colors that commands use.
_STEERING = re.compile(
    "\x1b(?!\\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def output_to_whoever_reads(stream: TextIO | None) -> TextIO:
    """Return a stream that goes on without its reader.

    That a reader stops early is no failure, and no success either: a command goes on to its own exit code, so that a
    limit that does not hold is told to whoever looks at the first line only. click would end it with 1.
    """
    # None: it was closed before the start, as daemons do.
    return cast("TextIO", _Output(stream or open(os.devnull, "w", encoding="utf-8")))


@final
class _Output:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: Any) -> int:
        shown = _STEERING.sub(lambda found: visible(found[0]), text) if isinstance(text, str) else text
        with self._if_read():
            self._stream.write(shown)
        return len(text)

    def flush(self) -> None:
        with self._if_read():
            self._stream.flush()

    @property
    def buffer(self) -> Any:
        """What click writes to where the terminal's letters are few."""
        return _Output(cast("Any", self._stream).buffer)

    @contextmanager
    def _if_read(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # What is still in the buffer, and all that follows, goes nowhere; the interpreter's exit is quiet too.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
