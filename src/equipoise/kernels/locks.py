"""Locks that other processes hold: a process that waits for one says so, and for whom."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

__all__ = ["PATIENCE", "LockWarning", "holder_of", "warn_of_lock"]

#: Seconds that a process waits for a lock before it says so.
PATIENCE = 3.0


class LockWarning(UserWarning):
    """A lock is waited for that another process holds, perhaps one that was stopped or hangs."""


def warn_of_lock(path: str | os.PathLike[str]) -> None:
    """Warn that the lock of a file is waited for, with the process that holds it as far as the system tells."""
    holder = holder_of(path)
    who = "another process" if holder is None else f"process {holder}"
    warnings.warn(
        f"waiting for the lock {os.fspath(path)}, held by {who}. If it was stopped or hangs, continue or end it.",
        LockWarning,
        stacklevel=3,
    )


def holder_of(path: str | os.PathLike[str]) -> int | None:
    """Return the process that holds the lock of a file; None if none does, or the system does not tell.

    Example:
        >>> holder_of("nowhere.lock") is None
        True
    """
    place = os.path.realpath(path)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            for descriptor in (process / "fd").iterdir():
                if os.readlink(descriptor) == place and _is_locked(process / "fdinfo" / descriptor.name):
                    return int(process.name)
        except OSError:  # gone meanwhile, or not ours to look at
            continue
    return None


def _is_locked(description: Path) -> bool:
    return any(line.startswith("lock:") for line in description.read_text().splitlines())
