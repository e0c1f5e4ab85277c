"""Ctrl-C and SIGTERM: heard at once, obeyed between two batches."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, final

__all__ = ["Interruption"]

_HEARD = (signal.SIGINT, signal.SIGTERM)


@final
class Interruption:
    """Remembers a signal instead of dying of it, for the length of a ``with`` block.

    A second signal is not held back: whoever presses Ctrl-C twice means it. The handlers found are put back at
    the end. Outside the main thread, where Python allows no handlers, it hears nothing.

    Example:
        >>> with Interruption() as interruption:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     interruption.heard
        15
    """

    def __init__(self) -> None:
        self.heard: int = 0
        self._found: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._found = {number: signal.signal(number, self._hear) for number in _HEARD}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard = int(number)
        self._give_back()

    def _give_back(self) -> None:
        for number, handler in self._found.items():
            signal.signal(number, handler)
        self._found = {}

    def leave(self) -> None:
        """Raise what the signal stands for: KeyboardInterrupt (exit code 130) or SystemExit(143).

        Example:
            >>> interruption = Interruption()
            >>> interruption.heard = signal.SIGTERM
            >>> interruption.leave()
            Traceback (most recent call last):
            ...
            SystemExit: 143
        """
        if self.heard == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + self.heard)
