"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["atomic_path", "write_bytes", "write_text"]


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside ``path``; rename it into place if the block succeeds.

    The file is flushed to the disk before it takes the name, so neither a crash of the program nor of the
    machine leaves half a file under the final name.

    Args:
        path: Where the finished file shall stand.

    Yields:
        A path with the same ending, to write to.

    Example:
        >>> target = Path(tempfile.mkdtemp()) / "a.txt"
        >>> with atomic_path(target) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to a file, all or nothing.

    Example:
        >>> target = Path(tempfile.mkdtemp()) / "a.bin"
        >>> write_bytes(target, b"whole")
        >>> target.read_bytes()
        b'whole'
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write UTF-8 text to a file, all or nothing.

    Example:
        >>> target = Path(tempfile.mkdtemp()) / "a.txt"
        >>> write_text(target, "whole")
        >>> target.read_text()
        'whole'
    """
    write_bytes(path, content.encode("utf-8"))
