"""What runs, what is done, how long it will take: read from the run folders, so that any engine can report it."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, final

from equipoise.core.progress import clock_text
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.specs.run import Spec

__all__ = ["RunSummary", "StatusLine"]

#: Seconds between two lines about runs that are under way, where there is no terminal.
_PERIOD = 60.0


@final
@dataclass(frozen=True)
class RunSummary:
    """How a set of runs ended.

    Attributes:
        done: Folders of runs that are finished.
        failed: Label and sentence of each run that is not.

    Example:
        >>> RunSummary().is_whole
        True
    """

    done: list[RunFolder] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every run is finished."""
        return not self.failed


@final
class StatusLine:
    """One line on a terminal that says how far a set of runs is.

    Args:
        specs: The runs.
        folder: Where their folders are.
        quiet: Say nothing.
        stream: Where to write; standard error by default.
        clock: Returns the time in seconds.

    Example:
        >>> line = StatusLine([], Path("."), quiet=True)
        >>> line.show(done=0, running=[])
    """

    def __init__(
        self,
        specs: Sequence[Spec],
        folder: Path,
        *,
        quiet: bool,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._specs, self._folder, self._clock = specs, folder, clock
        self._stream = sys.stderr if stream is None else stream
        self._live = not quiet and self._stream.isatty()
        self._lines = not quiet and not self._live
        self._began = clock()
        self._last_line = self._began
        self._first: float | None = None

    def text(self, *, done: int, running: Sequence[Spec]) -> str:
        """Return the line."""
        share = (done + sum(self._share(spec) for spec in running)) / max(len(self._specs), 1)
        if self._first is None:
            self._first = share
        gained, elapsed = share - self._first, self._clock() - self._began
        left = (
            f", about {clock_text(elapsed * (1 - share) / gained)} left" if gained > 0 and elapsed > 2 else ""
        )
        now = "; ".join(f"{spec.method.label} seed {spec.seed} {self._place(spec)}" for spec in running[:3])
        return f"{done}/{len(self._specs)} runs done{left}" + (f" · {now}" if now else "")

    def _epochs(self, spec: Spec) -> int:
        history = self._folder / spec.identity / "history.csv"
        return max(history.read_bytes().count(b"\n") - 1, 0) if history.is_file() else 0

    def _share(self, spec: Spec) -> float:
        return min(self._epochs(spec) / spec.training.epochs, 1.0)

    def _place(self, spec: Spec) -> str:
        return f"epoch {self._epochs(spec)}/{spec.training.epochs}"

    def show(self, *, done: int, running: Sequence[Spec]) -> None:
        """Draw the line over the last one, if there is a terminal; elsewhere write it once a minute."""
        if self._lines and self._clock() - self._last_line >= _PERIOD:
            self.print(self.text(done=done, running=running))
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write("\r\x1b[K" + self.text(done=done, running=running)[:width])
            self._stream.flush()

    def print_finished(self, specs: Sequence[Spec]) -> None:
        """Print which runs are finished before anything is begun, so that nobody takes their numbers for new ones."""
        finished = [spec for spec in specs if RunFolder(self._folder / spec.identity).is_finished()]
        for spec in finished:
            self.print(f"already finished: {spec.label}")

    def print(self, sentence: str) -> None:
        """Write a line that stays."""
        self._last_line = self._clock()
        if self._live:
            self._stream.write(f"\r\x1b[K{sentence}\n")
        elif self._lines:
            self._stream.write(f"{sentence}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Leave the terminal clean."""
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
