"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from equipoise.core.errors import FileError, first_line, require

__all__ = ["atomic_path", "save_tensors", "write_bytes", "write_text"]


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
    # A name of 255 bytes is allowed, but a longer one is not.
    temporary = target.with_name(f".{target.stem[:32]}-{secrets.token_hex(8)}{target.suffix}")
    try:
        # The system itself takes the umask into account, as for any new file.
        created = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        mode = stat.S_IMODE(os.fstat(created).st_mode)
        os.close(created)
        yield temporary
        # Some libraries put a private file of their own in its place.
        if stat.S_IMODE(temporary.stat().st_mode) != mode:
            temporary.chmod(mode)
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


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    *,
    metadata: Mapping[str, str],
    framework: Literal["numpy", "torch"],
    purpose: str,
) -> None:
    """Write tensors to a ``.safetensors`` file; pass the path that :func:`atomic_path` gives.

    Args:
        path: Path of the file.
        tensors: Arrays or tensors by name.
        metadata: Texts by name, kept in the file's header.
        framework: Kind of the tensors.
        purpose: Purpose of the file, for the message if safetensors is not installed.

    Raises:
        OSError: If the file cannot be written.
        MissingExtraError: If safetensors is not installed.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> target = Path(tempfile.mkdtemp()) / "a.safetensors"
        >>> save_tensors(target, {"a": np.zeros(2)}, metadata={}, framework="numpy", purpose="show it")
        >>> target.stat().st_size > 16
        True
    """
    package = require("safetensors", extra="safetensors", purpose=purpose)
    writer = require(f"safetensors.{framework}", extra="safetensors", purpose=purpose)
    try:
        writer.save_file(dict(tensors), path, metadata=dict(metadata) or None)
    except package.SafetensorError as error:
        raise OSError(first_line(error)) from None
