"""The folder where machine code is kept: one for each state of the files it is made from.

Numba's own cache looks at the file of a function and not at what was inlined into it: after a change in a helper the
old code would go on running. So the folder is named by a digest of all files of this room, of the compiler, and of the
Python, for each of which numba keeps an index of its own; other files, another folder. Nothing in it is ever out of
date, and nothing has to be deleted to be right.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

from equipoise.compiled import locks

__all__ = ["alone", "cache_folder"]

_LOCK = "lock"
_ROOM = Path(__file__).parent


def cache_folder() -> Path | None:
    """Return the folder for machine code of these very files, or None if there is none that can be written.

    `NUMBA_CACHE_DIR` is the first choice, then the folder of this room, then the user's folder for such things. Where
    nothing can be written, or no file locked, every process compiles anew.

    Example:
        >>> folder = cache_folder()
        >>> folder is None or folder.name.startswith("equipoise-")
        True
    """
    return _cache_folder(os.environ.get("NUMBA_CACHE_DIR"))


@cache
def _cache_folder(named: str | None) -> Path | None:
    for place in [Path(named)] if named else [_ROOM / "__pycache__", *_of_the_user()]:
        folder = place / f"equipoise-{_digest()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file, (folder / _LOCK).open("ab"):
                _lock(file)  # some file systems of clusters cannot
                return folder
        except OSError:
            continue
    return None


def _of_the_user() -> list[Path]:
    try:
        return [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")]
    except RuntimeError:  # without a home, as a user whom a container does not know may be
        return []


def _digest() -> str:
    try:
        compiler = version("numba")
    except PackageNotFoundError:
        compiler = "none"
    parts = [path.read_bytes() for path in sorted(_ROOM.glob("*.py"))]
    tools = f"{compiler} {sys.implementation.cache_tag}".encode()
    return hashlib.blake2b(b"\0".join([*parts, tools]), digest_size=8).hexdigest()


@contextmanager
def alone() -> Iterator[None]:
    """Let one process after the other compile: what the first has written the others load.

    Two that wrote into numba's index at once could each name the other's code.
    """
    folder = cache_folder()
    if folder is None:
        yield
        return
    with (folder / _LOCK).open("ab") as file:
        _lock(file)
        yield


def _lock(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # on Windows
        return None
    start, is_told = time.monotonic(), False
    while True:
        try:
            # Let go with the file, whatever happens to the process.
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        if not is_told and time.monotonic() - start > locks.PATIENCE:
            locks.warn_of_lock(file.name)
            is_told = True
