"""The .npz archives of NumPy: read member by member, never unpickled, never trusted."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import ArrayReader, WrittenColumns
from equipoise.core.reading.formats.notes import Notes
from equipoise.core.reading.formats.npy_header import Header, check_dtype, check_text, read_header
from equipoise.core.rows import Rows

__all__ = ["NpzReader", "write_npz"]

_PIECE = 1 << 20

#: A directory longer than this holds tens of thousands of members; it is read in one go.
_LONGEST_READ = 4 << 20
_MOST_MEMBERS = 4096

#: Deflate can shrink constant arrays a thousandfold, so a ratio alone is no sign of malice; with the size it is.
_RATIO = 200
_LARGE = 256 << 20

_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


class NpzReader(ArrayReader):
    """The arrays of one archive; members that nobody asks for are not read beyond their headers."""

    def __init__(self, path: Path) -> None:
        self._stream = _Careful(path.open("rb"), path.name)
        try:
            self._open(path)
        except BaseException:
            self.close()
            raise

    def _open(self, path: Path) -> None:
        try:
            self._archive = zipfile.ZipFile(cast("BinaryIO", self._stream))
            members = _checked_members(self._archive, path)
            self._headers = {name: self._header(path, name, info) for name, info in members.items()}
        except DataError:
            raise
        except _FAULTS as error:
            raise _corrupt(path.name, error) from None
        self._members = members
        super().__init__(path, {name: header.shape for name, header in self._headers.items()}, Notes())
        self.notes = self._read_notes()

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def _header(self, path: Path, name: str, info: zipfile.ZipInfo) -> Header:
        where = f"{path.name}: `{name}`"
        with self._archive.open(info) as stream:
            header = read_header(cast("BinaryIO", stream), where=where)
        held = info.file_size - header.offset
        if held != header.n_bytes and not header.dtype.hasobject:
            raise DataError(
                f"{where} is damaged: its header promises {header.n_bytes} bytes of numbers, the archive holds {held}."
            )
        return header

    def is_text(self, name: str) -> bool:
        """Say whether a column holds text."""
        return self._headers[name].dtype.kind == "U"

    def rows_of(self, name: str) -> Callable[[int, int], Any]:
        """Return a function that gives the rows from start to stop, called in order."""
        header = self._headers[name]
        check_dtype(header.dtype, where=f"{self.where}: `{name}`")
        stream = self._archive.open(self._members[name])
        self._fill(stream, np.empty(header.offset, np.uint8), name)
        if header.fortran_order and len(header.shape) > 1:
            # Rows are scattered over the whole member, so it cannot be read in order.
            flat = self._take(stream, header.shape[::-1], header.dtype, name)
            return lambda start, stop: np.ascontiguousarray(flat.T[start:stop])
        return lambda start, stop: self._take(stream, (stop - start, *header.shape[1:]), header.dtype, name)

    def _take(self, stream: Any, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Array:
        buffer = np.empty(prod(shape) * dtype.itemsize, np.uint8)
        self._fill(stream, buffer, name)
        return check_text(buffer.view(dtype).reshape(shape), where=f"{self.where}: `{name}`")

    def _fill(self, stream: Any, buffer: Array, name: str) -> None:
        done = 0
        try:
            while done < len(buffer):
                piece = stream.read(min(_PIECE, len(buffer) - done))
                if not piece:
                    raise EOFError("it ends early")
                buffer[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
                done += len(piece)
        except _FAULTS as error:
            raise _corrupt(f"{self.where}: `{name}`", error) from None

    def _read_notes(self) -> Notes:
        split, n_classes = self._small("split", "U", ()), self._small("n_classes", "iu", ())
        names = self._small("class_names", "U", (None,))
        return Notes(
            class_names=None if names is None else tuple(names.tolist()),
            split=None if split is None else str(split),
            n_classes=None if n_classes is None else int(n_classes),
            fitted_on=self._fitted_on(),
        )

    def _small(self, name: str, kinds: str, shape: tuple[int | None, ...]) -> Array | None:
        header = self._headers.get(name)
        if header is None or header.dtype.kind not in kinds or len(header.shape) != len(shape):
            return None
        if header.dtype.itemsize == 0 or header.n_bytes > _LARGE:
            return None
        values: Array = self.rows_of(name)(0, header.shape[0] if header.shape else 1)
        return values.reshape(header.shape)

    def _fitted_on(self) -> Rows | None:
        for name, named in (("fitted_on_id_hash", True), ("fitted_on_row_hash", False)):
            hashes = self._small(name, "u", (None,))
            if hashes is not None:
                return Rows(hashes.astype(np.uint64), named)
        return None


class _Careful(io.RawIOBase):
    """A file that refuses reads of absurd size, such as the directory of an archive of a million members."""

    def __init__(self, stream: BinaryIO, where: str) -> None:
        self._inner, self._where = stream, where

    def read(self, size: int | None = -1, /) -> bytes:
        # Without a size, zipfile wants the end of the file, where a comment has at most 64 kB.
        wanted = 1 << 17 if size is None or size < 0 else size
        if wanted > _LONGEST_READ:
            raise DataError(
                f"{self._where} has a directory of {size} bytes, too long for arrays. Save it again."
            )
        return self._inner.read(wanted)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._inner.close()
        super().close()


def _checked_members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    size = path.stat().st_size
    members: dict[str, zipfile.ZipInfo] = {}
    if len(archive.infolist()) > _MOST_MEMBERS:
        raise DataError(
            f"{path.name} holds {len(archive.infolist())} members. Save scores as one array, not one each."
        )
    for info in archive.infolist():
        _check_member(info, size, path.name)
        name = info.filename.removesuffix(".npy")
        if name in members:
            raise DataError(f"{path.name} holds `{name}` twice. Which one counts? Save it again.")
        if name != info.filename:
            members[name] = info
    if not members:
        raise DataError(
            f"{path.name} holds no arrays. Save it with numpy.savez(path, logits=..., labels=...)."
        )
    total = sum(info.file_size for info in archive.infolist())
    if total > _LARGE and total > _RATIO * size:
        raise _bomb(path.name, size, total)
    return members


def _check_member(info: zipfile.ZipInfo, size: int, where: str) -> None:
    name = info.filename
    shown = repr(name[:80])
    if "/" in name or "\\" in name or ".." in name or "/" in info.orig_filename or "\0" in info.orig_filename:
        raise DataError(
            f"{where} holds a member with a path in its name, {shown}. Save arrays under plain names."
        )
    if info.flag_bits & 0x1:
        raise DataError(f"{where} is encrypted, at {shown}. Save it without a password.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{where} is packed in a way that numpy does not use, at {shown}. Save it again.")
    if info.compress_size > size:
        raise DataError(f"{where} is cut off: {shown} is said to be larger than the file. Copy it again.")
    if info.file_size > _LARGE and info.file_size > _RATIO * max(1, info.compress_size):
        raise _bomb(where, info.compress_size, info.file_size)


def _bomb(where: str, packed: int, size: int) -> DataError:
    return DataError(
        f"{where} would grow from {packed} to {size} bytes, which predictions do not. If it is honest, save it "
        "without compression, with numpy.savez."
    )


def _corrupt(where: str, error: Exception) -> DataError:
    reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
    return DataError(f"{where} is cut off, damaged, or no .npz archive ({reason}). Copy or save it again.")


def write_npz(path: Path, columns: WrittenColumns, notes: Notes) -> None:
    """Write columns and notes as arrays of an archive that ``numpy.load`` reads.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.npz"
        >>> write_npz(path, {"labels": np.array([0, 1])}, Notes(split="test"))
        >>> str(np.load(path)["split"])
        'test'
    """
    arrays = dict(columns)
    if notes.class_names is not None:
        arrays["class_names"] = np.array(notes.class_names, dtype=np.str_)
    if notes.split is not None:
        arrays["split"] = np.array(notes.split)
    if notes.n_classes is not None:
        arrays["n_classes"] = np.array(notes.n_classes)
    if notes.fitted_on is not None:
        name = "fitted_on_id_hash" if notes.fitted_on.named else "fitted_on_row_hash"
        arrays[name] = notes.fitted_on.hashes
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
