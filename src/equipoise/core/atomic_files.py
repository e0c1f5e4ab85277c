"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from equipoise.core.errors import FileError

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

    Raises:
        FileError: If the disk is full, the folder is missing or may not be written to.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "a.txt"
        >>> with atomic_path(target) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    target = Path(path)
    # A name of 255 bytes is allowed, but leaves no room for more.
    temporary = target.with_name(f".{target.stem[:32]}-{secrets.token_hex(8)}{target.suffix}")
    try:
        # The system itself takes the umask into account, as for any new file.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        with temporary.open("r+b") as stream:  # Windows flushes only what is open for writing
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        if isinstance(error, FileError) or not _concerns(error, temporary, target):
            raise
        # Libraries name the temporary file, or none.
        reason = error.strerror or str(error)
        raise FileError(
            f"{target}: cannot be written ({reason}). Is the disk full, or the folder gone?"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _concerns(error: OSError, *paths: Path) -> bool:
    named = {str(name) for name in (error.filename, error.filename2) if name is not None}
    return not named or bool(named & {str(path) for path in paths})


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to a file, all or nothing.

    Example:
        >>> import tempfile
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
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "a.txt"
        >>> write_text(target, "whole")
        >>> target.read_text()
        'whole'
    """
    write_bytes(path, content.encode("utf-8"))
