"""Ctrl-C and SIGTERM: received at once, acted on between two batches."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, final

__all__ = ["Interruption"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@final
class Interruption:
    """Remembers a signal instead of dying of it, for the length of a ``with`` block.

    A second signal is not held back: whoever presses Ctrl-C twice means it. The handlers found are put back at
    the end. Outside the main thread, where Python allows no handlers, it hears nothing.

    Example:
        >>> with Interruption() as interruption:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     interruption.signal
        15
    """

    def __init__(self) -> None:
        self.signal: int = 0
        self._found: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._found = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.signal = int(number)
        self._give_back()

    def _give_back(self) -> None:
        for number, handler in self._found.items():
            signal.signal(number, handler)
        self._found = {}

    def exit(self) -> None:
        """Raise what the signal stands for: KeyboardInterrupt (exit code 130) or SystemExit(143).

        Example:
            >>> interruption = Interruption()
            >>> interruption.signal = signal.SIGTERM
            >>> interruption.exit()
            Traceback (most recent call last):
            ...
            SystemExit: 143
        """
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + self.signal)
