"""The .npz archives of NumPy: read member by member, never unpickled, never trusted."""

from __future__ import annotations

import io
import shutil
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, first_line
from equipoise.core.reading.formats.base import (
    ArrayReader,
    ColumnReader,
    NewScores,
    WrittenColumns,
    as_text,
    stored_as,
)
from equipoise.core.reading.formats.immutable_file import ImmutableFile
from equipoise.core.reading.formats.notes import Notes
from equipoise.core.reading.formats.npy import Header, check_dtype, check_text, read_header
from equipoise.core.reading.storage import File
from equipoise.core.rows import Rows

__all__ = ["NpzReader", "rewrite_npz", "write_npz"]

_PIECE = 1 << 20

#: A directory longer than this holds tens of thousands of members; it is read in one go.
_LONGEST_READ = 4 << 20
_MOST_MEMBERS = 4096

#: The bytes of the record that ends an archive, but for its comment.
_END = 22

#: Arrays that say something about the whole file: their names, the kinds of their types, their dimensions.
_NOTES = {
    "split": ("U", 0),
    "n_classes": ("iu", 0),
    "class_names": ("U", 1),
    "fitted_on_id_hash": ("u", 1),
    "fitted_on_row_hash": ("u", 1),
    "fitted_on_below": ("u", 0),
    "equipoise": ("U", 0),
    "equipoise_id_hash": ("u", 1),
    "equipoise_row_hash": ("u", 1),
}

_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


class NpzReader(ArrayReader):
    """The arrays of one archive; members that nobody asks for are not read beyond their headers."""

    note_names = tuple(_NOTES)

    def __init__(self, path: File, max_bytes: int | None = None) -> None:
        file = ImmutableFile(path)
        self._stream = _Careful(file)
        try:
            self._open(file, max_bytes)
        except BaseException:
            self.close()
            raise

    def _open(self, file: ImmutableFile, max_bytes: int | None) -> None:
        try:
            self._archive = zipfile.ZipFile(cast("BinaryIO", self._stream))
            self._members = _checked_members(self._archive, file)
            self._headers = {
                name: self._header(f"{file.where}: `{name}`", info) for name, info in self._members.items()
            }
        except DataError:
            raise
        except _FAULTS as error:
            raise _corrupt(file.where, error) from None
        super().__init__(file.where, self._headers, size=file.length, max_bytes=max_bytes)
        self.notes = self._read_notes()

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def _header(self, where: str, info: zipfile.ZipInfo) -> Header:
        with self._archive.open(info) as stream:
            header = read_header(cast("BinaryIO", stream), where=where)
        held = info.file_size - header.offset
        if held != header.n_bytes and not header.dtype.hasobject:
            raise DataError(
                f"{where} is damaged: its header claims {header.n_bytes} bytes of numbers, the archive holds {held}."
            )
        return header

    def is_text(self, name: str) -> bool:
        """Say whether a column holds text."""
        return self._headers[name].dtype.kind == "U"

    def type_of(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return the shape and the type of an array."""
        return self._headers[name].shape, self._headers[name].dtype

    def copy_member(self, name: str, archive: zipfile.ZipFile) -> None:
        """Copy an array to another archive as it is, without looking into it.

        Raises:
            DataError: If it is damaged.
        """
        info = self._members[name]
        try:
            with self._archive.open(info) as old, archive.open(f"{name}.npy", "w", force_zip64=True) as new:
                shutil.copyfileobj(old, new, _PIECE)
        except DataError:
            raise
        except _FAULTS as error:
            raise _corrupt(f"{self.where}: `{name}`", error) from None

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
        except DataError:
            raise
        except _FAULTS as error:
            raise _corrupt(f"{self.where}: `{name}`", error) from None

    def _read_notes(self) -> Notes:
        split, n_classes, names = (self._note(name) for name in ("split", "n_classes", "class_names"))
        fitted = (self._note("fitted_on_id_hash"), self._note("fitted_on_row_hash"))
        hashes = next((note for note in fitted if note is not None), None)
        kept = {named: self._note(f"equipoise_{kind}_hash") for named, kind in ((True, "id"), (False, "row"))}
        text = self._note("equipoise")
        return replace(
            Notes.from_json("" if text is None else str(text), where=self.where),
            rows=next(
                (Rows(note.astype(np.uint64), named) for named, note in kept.items() if note is not None),
                None,
            ),
            class_names=None if names is None else tuple(names.tolist()),
            split=None if split is None else str(split),
            n_classes=None if n_classes is None else int(n_classes),
            fitted_on=None if hashes is None else self._rows(hashes, named=hashes is fitted[0]),
        )

    def _rows(self, hashes: Array, *, named: bool) -> Rows:
        below = self._note("fitted_on_below")
        rows = Rows(hashes.astype(np.uint64), named)
        return rows if below is None else Rows(rows.hashes, named, int(below))

    def _note(self, name: str) -> Array | None:
        header, (kinds, dimensions) = self._headers.get(name), _NOTES[name]
        if header is None:
            return None
        self.check_growth(header.n_bytes)
        # Read before it is judged: a damaged header then shows in the member's checksum.
        values: Array = self.rows_of(name)(0, header.shape[0] if header.shape else 1)
        if header.dtype.kind in kinds and len(header.shape) == dimensions:
            return values.reshape(header.shape)
        if name.startswith(("fitted_on", "equipoise")) or dimensions == len(header.shape):
            raise self.fail(
                f"`{name}` has the type {header.dtype} and the shape {header.shape}, which cannot be understood. "
                "Save it under another name."
            )
        return None


class _Careful(io.RawIOBase):
    """A file that refuses reads of absurd size, such as the directory of an archive of a million members."""

    def __init__(self, file: ImmutableFile) -> None:
        self._inner, self._where = io.BufferedReader(file, 1 << 17), file.where

    def read(self, size: int | None = -1, /) -> bytes:
        # Without a size, zipfile wants the end of the file, where a comment has at most 64 kB.
        count = 1 << 17 if size is None or size < 0 else size
        if count > _LONGEST_READ:
            raise DataError(
                f"{self._where} has a directory of {size} bytes, too long for arrays. Save it again."
            )
        return self._inner.read(count)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._inner.close()
        super().close()


def _checked_members(archive: zipfile.ZipFile, file: ImmutableFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    if len(archive.infolist()) > _MOST_MEMBERS:
        raise DataError(
            f"{file.where} holds {len(archive.infolist())} members. Save scores as one array, not one each."
        )
    _check_count(archive, file)
    for info in archive.infolist():
        _check_member(info, file)
        name = info.filename.removesuffix(".npy")
        if name in members:
            raise DataError(f"{file.where} holds `{name}` twice. Which one counts? Save it again.")
        members[name] = info
    if not members:
        raise DataError(
            f"{file.where} holds no arrays. Save it with numpy.savez(path, logits=..., labels=...)."
        )
    return members


def _check_count(archive: zipfile.ZipFile, file: ImmutableFile) -> None:
    """Raise unless as many members are found as the end of the archive says.

    A damaged length within the directory makes the next members part of a comment, and they would be missed.
    """
    end = file.take(max(0, file.length - _END - len(archive.comment)), _END)
    n_members = int(end[10:12].view("<u2")[0])
    if bytes(end[:4]) != b"PK\5\6" or n_members != len(archive.infolist()):
        raise DataError(
            f"{file.where} is damaged: its directory holds {len(archive.infolist())} members, its end claims "
            f"{n_members}. Copy it again."
        )


def _check_member(info: zipfile.ZipInfo, file: ImmutableFile) -> None:
    where, name = file.where, info.filename
    shown = repr(name[:80])
    if "/" in name or "\\" in name or ".." in name or "/" in info.orig_filename or "\0" in info.orig_filename:
        raise DataError(
            f"{where} holds a member with a path in its name, {shown}. Save arrays under plain names."
        )
    if not name.endswith(".npy"):
        # It may be an array whose name was damaged; without it the numbers would be others.
        raise DataError(f"{where} holds {shown}, which is not an array. Save arrays only, with numpy.savez.")
    if info.flag_bits & 0x1:
        raise DataError(f"{where} is encrypted, at {shown}. Save it without a password.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{where} is packed in a way that numpy does not use, at {shown}. Save it again.")
    if info.compress_size > file.length:
        raise DataError(f"{where} is cut off: {shown} claims to be larger than the file. Copy it again.")


def _corrupt(where: str, error: Exception) -> DataError:
    return DataError(
        f"{where} is cut off, damaged, or no .npz archive ({first_line(error)}). Copy or save it again."
    )


def write_npz(path: Path, columns: WrittenColumns, notes: Notes) -> None:
    """Write columns and notes as arrays of an archive that ``numpy.load`` reads.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.npz"
        >>> write_npz(path, {"labels": np.array([0, 1])}, Notes(split="test"))
        >>> str(np.load(path)["split"])
        'test'
    """
    arrays = {**columns, **_note_arrays(path, notes)}
    with _new_archive(path) as archive:
        for name, array in arrays.items():
            _write_member(archive, name, array)


def rewrite_npz(
    readers: Sequence[ColumnReader], path: Path, scores: NewScores, notes: Notes, *, side: Path
) -> None:
    """Write an archive with other scores; every other member is copied byte for byte and never read.

    Args:
        readers: The archive, the only one.
        path: Where it goes.
        scores: The new scores.
        notes: Notes about the archive, which become arrays in it.
        side: Not used: the archive has a place for its notes.
    """
    (reader,) = readers
    assert isinstance(reader, NpzReader)
    arrays = _note_arrays(path, notes)
    names = [name for name in reader.row_shapes if name not in arrays and not name.startswith("fitted_on_")]
    length = reader.length_of(scores.old[0])
    fresh = scores.columns(length)
    with _new_archive(path) as archive:
        for name, old in scores.place(names):
            if old is None:
                reader.copy_member(name, archive)
            elif scores.added is not None:
                _write_member(archive, name, fresh[old])
            else:
                shape, dtype = reader.type_of(old)
                _write_member(archive, name, stored_as(fresh[old].reshape(shape), dtype))
        for name, array in arrays.items():
            _write_member(archive, name, array)


def _new_archive(path: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)


def _write_member(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)


def _note_arrays(path: Path, notes: Notes) -> dict[str, Array]:
    """Return notes as arrays by name."""
    arrays: dict[str, Array] = {}
    if notes.class_names is not None:
        arrays["class_names"] = as_text(notes.class_names, where=f"{path.name}: `class_names`")
    if notes.split is not None:
        arrays["split"] = as_text([notes.split], where=f"{path.name}: `split`").reshape(())
    if notes.n_classes is not None:
        arrays["n_classes"] = np.array(notes.n_classes)
    if notes.fitted_on is not None:
        name = "fitted_on_id_hash" if notes.fitted_on.named else "fitted_on_row_hash"
        arrays[name] = notes.fitted_on.hashes
        if notes.fitted_on.is_sketch:
            arrays["fitted_on_below"] = np.array(notes.fitted_on.below, np.uint64)
    if notes.rows is not None:
        arrays["equipoise_id_hash" if notes.rows.named else "equipoise_row_hash"] = notes.rows.hashes
    text = Notes(
        calibrator=notes.calibrator, calibrated=notes.calibrated, has_originals=notes.has_originals
    ).to_json()
    if text:
        arrays["equipoise"] = as_text([text], where=f"{path.name}: `equipoise`").reshape(())
    return arrays
