"""A file that must not change while it is read, and how large it may become."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.reading.storage import File

__all__ = ["ImmutableFile", "check_growth"]

#: Files that unfold to less than this are harmless, whatever their size.
_HARMLESS = 256 << 20
#: Honest files unfold to less than this many times their size; constant columns, which tell nothing, to more.
_RATIO = 200


class ImmutableFile(io.RawIOBase):
    """A file opened for reading; what is read is copied, and refused once the file has changed on the disk.

    Memory that is mapped to a file follows it: numbers change when it is overwritten, and the process is killed when
    it is cut. So nothing is mapped.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.bin"
        >>> _ = path.write_bytes(b"abcd")
        >>> with ImmutableFile(path) as file:
        ...     bytes(file.take(1, 2))
        b'bc'
    """

    def __init__(self, path: File) -> None:
        self.where = path.name
        self._file = path.open("rb", buffering=0)
        #: The file on this machine; for a file elsewhere, its copy.
        self.path = str(path) if isinstance(path, Path) else self._file.name
        self._version = self._stat()

    def _stat(self) -> tuple[int, int]:
        found = os.fstat(self._file.fileno())
        return found.st_size, found.st_mtime_ns

    @property
    def length(self) -> int:
        """The number of bytes."""
        return self._version[0]

    def take(self, offset: int, count: int) -> Array:
        """Return a copy of some bytes.

        Raises:
            DataError: If they are not there, or the file has changed.
        """
        if not 0 <= count <= self.length - offset:
            raise DataError(
                f"{self.where} is cut off: {count} bytes from {offset} on are missing. Copy it again."
            )
        buffer, done = np.empty(count, np.uint8), 0
        self.seek(offset)
        while done < count:
            # A single call of the system gives two gigabytes at most.
            got = self.readinto(buffer[done:].data)
            if not got:
                raise self._changed()
            done += got
        return buffer

    def readinto(self, buffer: Any, /) -> int:
        """Read some bytes; raise if the file has changed since it was opened."""
        count = self._file.readinto(buffer)
        # Looked at after reading: what was read before the change is whole.
        if self._stat() != self._version:
            raise self._changed()
        return count or 0

    def _changed(self) -> DataError:
        return DataError(f"{self.where} has changed while it was read. Read it again when it is complete.")

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it has places."""
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the place."""
        return self._file.tell()

    def close(self) -> None:
        """Let go of the file."""
        if "_file" in vars(self):  # Python also closes an object whose file could not be opened
            self._file.close()
        super().close()


def check_growth(grown: int, *, size: int, max_bytes: int | None, where: str) -> None:
    """Raise if a file would take far more memory than its size tells.

    Args:
        grown: Bytes in memory.
        size: Bytes on the disk.
        max_bytes: What the caller allows; None for 256 MiB, or 200 times the size if that is more.
        where: The file, for the message.

    Raises:
        DataError: With the argument that allows it.

    Example:
        >>> check_growth(1000, size=10, max_bytes=None, where="a.npz")
        >>> check_growth(1 << 40, size=10, max_bytes=None, where="a.npz")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: a.npz: would grow from 10 to 1099511627776 bytes ...
    """
    most = max(_HARMLESS, _RATIO * size) if max_bytes is None else max_bytes
    if grown > most:
        raise DataError(
            f"would grow from {size} to {grown} bytes in memory, more than {most}. If it is honest, allow it: "
            "{max_bytes}.",
            where=where,
            arguments={"max_bytes": str(grown)},
        )
