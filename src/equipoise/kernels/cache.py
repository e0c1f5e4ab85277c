"""The folder of machine code, one for each state of the files it is made from, and the decorator that uses it.

Numba's own cache compares the file of a function and not the files of the functions that were inlined into it: after
a change in a helper the old code would go on running. So the folder is named by a digest of all files of this package,
of the compiler, and of the Python. Nothing in it is ever out of date, and nothing has to be deleted.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from equipoise.kernels import locks

__all__ = ["cache_folder", "jit", "single_process"]

_LOCK = "lock"
_PACKAGE = Path(__file__).parent
_CONFIG = threading.Lock()


def cache_folder() -> Path | None:
    """Return the folder for machine code of these files, or None if no folder can be written to.

    `NUMBA_CACHE_DIR` is the first choice, then the folder of this package, then the user's cache folder. Where nothing
    can be written, or no file locked, every process compiles for itself.

    Example:
        >>> folder = cache_folder()
        >>> folder is None or folder.name.startswith("equipoise-")
        True
    """
    return _cache_folder(os.environ.get("NUMBA_CACHE_DIR"))


@cache
def _cache_folder(named: str | None) -> Path | None:
    for parent in [Path(named)] if named else [_PACKAGE / "__pycache__", *_user_folders()]:
        folder = parent / f"equipoise-{_digest()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file, (folder / _LOCK).open("ab"):
                _lock(file)  # some file systems of clusters cannot
                return folder
        except OSError:
            continue
    return None


def _user_folders() -> list[Path]:
    try:
        return [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")]
    except RuntimeError:  # no home directory, as for a user that a container does not know
        return []


def _digest() -> str:
    try:
        compiler = version("numba")
    except PackageNotFoundError:
        compiler = "none"
    parts = [path.read_bytes() for path in sorted(_PACKAGE.glob("*.py"))]
    tools = f"{compiler} {sys.implementation.cache_tag}".encode()
    return hashlib.blake2b(b"\0".join([*parts, tools]), digest_size=8).hexdigest()


@contextmanager
def single_process() -> Iterator[None]:
    """Let one process after the other compile: the others load what the first has written.

    Two processes that wrote numba's index at once could each name the other's code.
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
    start, is_reported = time.monotonic(), False
    while True:
        try:
            # Released with the file, whatever happens to the process.
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        if not is_reported and time.monotonic() - start > locks.PATIENCE:
            locks.warn_of_lock(file.name)
            is_reported = True


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, or load what an earlier process compiled from the same files.

    Args:
        **options: Options of ``numba.njit``, such as ``fastmath``. Python's lock is always released.
    """
    import numba

    def decorate(function: Callable[..., Any]) -> Any:
        folder = cache_folder()
        # Numba reads this setting when it is given a function, not when it compiles.
        with _CONFIG:
            before = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = str(folder or "")
            try:
                return numba.njit(nogil=True, cache=folder is not None, **options)(function)
            finally:
                numba.config.CACHE_DIR = before

    return decorate
