"""A progress bar on a terminal for anything that may take longer than two seconds, and plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TextIO, TypeVar, final

__all__ = ["PlainLines", "clock_text", "progress"]

T = TypeVar("T")


def progress(
    items: Iterable[T],
    *,
    label: str,
    total: int | None = None,
    unit: str = "",
    quiet: bool = False,
    stream: TextIO | None = None,
) -> Iterator[T]:
    """Pass items through, and draw a bar once two seconds have gone by.

    Nothing is drawn when the stream is not a terminal, so pipes and log files stay clean; :class:`PlainLines` are for
    these.

    Args:
        items: What to iterate over.
        label: A word or two in front of the bar.
        total: How many there are; taken from ``len(items)`` if it has one.
        unit: A word after the count.
        quiet: Never draw.
        stream: Where to draw; standard error by default.

    Yields:
        The items, unchanged.

    Example:
        >>> sum(progress(range(4), label="adding"))
        6
    """
    out = sys.stderr if stream is None else stream
    if quiet or not out.isatty():
        yield from items
        return
    if total is None and isinstance(items, Sized):
        total = len(items)
    start = drawn = time.monotonic()
    shown = False
    try:
        for done, item in enumerate(items):
            now = time.monotonic()
            if now - start > 2 and now - drawn > 0.1:
                out.write("\r" + _line(label, done, total, unit, now - start) + "\x1b[K")
                out.flush()
                drawn, shown = now, True
            yield item
    finally:
        if shown:
            out.write("\r\x1b[K")
            out.flush()


@final
class PlainLines:
    r"""Lines of progress for log files and pipes; on a terminal, where there is a bar, nothing is written.

    The first and the last line are written, and others when some seconds have gone by since the one before.

    Args:
        seconds: Least time between two lines.
        stream: Where to write; standard error by default.
        clock: Tells the time.

    Example:
        >>> import io
        >>> out, times = io.StringIO(), iter([0, 5, 60, 61])
        >>> lines = PlainLines(seconds=10, stream=out, clock=lambda: next(times))
        >>> for number in range(1, 5):
        ...     lines.write(f"epoch {number}", last=number == 4)
        >>> out.getvalue().split("\n")
        ['epoch 1', 'epoch 3', 'epoch 4', '']
    """

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds, self._stream, self._clock = seconds, stream, clock
        self._written: float | None = None

    def write(self, line: str, *, last: bool = False) -> None:
        """Write a line, unless another was written just before."""
        out = sys.stderr if self._stream is None else self._stream
        if out.isatty():
            return
        now = self._clock()
        if last or self._written is None or now - self._written >= self._seconds:
            out.write(f"{line}\n")
            out.flush()
            self._written = now


def _line(label: str, done: int, total: int | None, unit: str, seconds: float) -> str:
    if not total:
        return f"{label} {done} {unit} ({clock_text(seconds)})"
    share = min(done / total, 1.0)
    filled = round(24 * share)
    left = f", {clock_text(seconds / share - seconds)} left" if share else ""
    return f"{label} {'█' * filled}{'░' * (24 - filled)} {done}/{total} {unit}{left}"


def clock_text(seconds: float) -> str:
    """Return a duration as people write it.

    Example:
        >>> clock_text(75), clock_text(3675)
        ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
