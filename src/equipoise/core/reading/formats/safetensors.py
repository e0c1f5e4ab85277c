"""Safetensors files: named tensors, read slice by slice."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.arrays import Array, round_to_bfloat16
from equipoise.core.atomic_files import save_tensors
from equipoise.core.bins import Precision
from equipoise.core.errors import DataError, first_line, require
from equipoise.core.reading.formats.base import (
    LONGEST_TEXT,
    ArrayReader,
    ColumnReader,
    NewScores,
    WrittenColumns,
    as_text,
    stored_as,
)
from equipoise.core.reading.formats.immutable_file import ImmutableFile
from equipoise.core.reading.formats.notes import Notes, parse
from equipoise.core.reading.formats.npy import check_text
from equipoise.core.reading.storage import File

__all__ = ["SafetensorsReader", "rewrite_safetensors", "write_safetensors"]

_PIECE = 1 << 20

#: How each type is stored; bfloat16, which NumPy does not have, as the upper half of float32.
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip


@dataclass(frozen=True)
class _Tensor:
    dtype: str
    shape: tuple[int, ...]
    base: int
    first: int
    last: int

    @property
    def begin(self) -> int:
        return self.base + self.first

    @property
    def n_bytes(self) -> int:
        return self.last - self.first


class SafetensorsReader(ArrayReader):
    """The tensors of one file; text is kept as numbers, with its words in the notes.

    The library reads and checks the header. It would map the tensors to memory, where a file that changes meanwhile
    ends the process; so their bytes are read like those of any other file.
    """

    def __init__(self, path: File, max_bytes: int | None = None) -> None:
        self._file = ImmutableFile(path)
        try:
            self._open(max_bytes)
        except BaseException:
            self.close()
            raise

    def _open(self, max_bytes: int | None) -> None:
        header, begin = _header(self._file)
        self.metadata: dict[str, str] = header.pop("__metadata__", None) or {}
        self._tensors = {
            name: _Tensor(facts["dtype"], tuple(facts["shape"]), begin, *facts["data_offsets"])
            for name, facts in header.items()
        }
        text = self.metadata.get("equipoise", "")
        content = parse(text, where=self._file.where)
        self._tensors = _in_order(self._tensors, content.get("columns"))
        super().__init__(self._file.where, self._tensors, size=self._file.length, max_bytes=max_bytes)
        self.notes = Notes.from_json(text, where=self.where)
        words = content.get("words")
        self._words = words if isinstance(words, dict) else {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def is_text(self, name: str) -> bool:
        """Return whether a column holds text."""
        return name in self._words

    def precision(self, name: str) -> Precision | None:
        """Return the precision of a column whose numbers are given in another type."""
        return "bfloat16" if self._tensors[name].dtype == "BF16" else None

    def stored(self, name: str) -> tuple[str, tuple[int, ...], Callable[[int, int], Array]]:
        """Return the type and shape of a tensor in the file, and a function that gives its bytes."""
        tensor = self._tensors[name]
        return tensor.dtype, tensor.shape, lambda at, count: self._file.take(tensor.begin + at, count)

    def bytes_of(self, name: str) -> int:
        """Return how many bytes a tensor takes."""
        return self._tensors[name].n_bytes

    @property
    def words(self) -> dict[str, Any]:
        """The texts behind columns of text."""
        return self._words

    def rows_of(self, name: str) -> Callable[[int, int], Any]:
        """Return a function that gives the rows from start to stop."""
        tensor = self._tensors[name]
        if tensor.dtype not in _TYPES:
            raise self.fail(f"`{name}` must hold plain numbers, its type is {tensor.dtype}.")
        if name not in self._words:
            return lambda start, stop: self._rows(tensor, start, stop)
        listed = self._words[name] if isinstance(self._words[name], list) else []
        if any(not isinstance(word, str) or len(word) > LONGEST_TEXT for word in listed):
            raise self.fail(f"`{name}` must hold texts of at most {LONGEST_TEXT} characters.")
        words = as_text(listed, where=f"{self.where}: `{name}`")
        self.check_growth(prod(tensor.shape) * words.dtype.itemsize)
        return lambda start, stop: self._spelt(words, self._rows(tensor, start, stop), name)

    def _rows(self, tensor: _Tensor, start: int, stop: int) -> Array:
        dtype = np.dtype(_TYPES[tensor.dtype])
        width = dtype.itemsize * prod(tensor.shape[1:])
        content = self._file.take(tensor.begin + start * width, (stop - start) * width)
        rows: Array = content.view(dtype).reshape(stop - start, *tensor.shape[1:])
        return (rows.astype(np.uint32) << 16).view(np.float32) if tensor.dtype == "BF16" else rows

    def _spelt(self, words: Array, codes: Array, name: str) -> Array:
        fits = codes.dtype.kind in "iu" and len(words) and codes.min() >= 0 and codes.max() < len(words)
        if not fits:
            raise self.fail(
                f"`{name}` does not fit its words in the notes. The file is damaged: write it again."
            )
        spelt: Array = check_text(words[codes], where=f"{self.where}: `{name}`")
        return spelt


def _header(file: ImmutableFile) -> tuple[dict[str, Any], int]:
    """Return the header and where the numbers begin.

    The library checks that the header is valid and that its tensors fill the file.
    """
    library = require("safetensors", extra="safetensors", purpose="read .safetensors files")
    try:
        with library.safe_open(file.path, framework="np"):
            pass
        length = int(file.take(0, 8).view("<u8")[0])
        header: dict[str, Any] = json.loads(file.take(8, length).tobytes())
    except (library.SafetensorError, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = first_line(error, most=160)
        raise DataError(
            f"{file.where} is cut off, damaged, or not a safetensors file ({reason}). Copy or write it again."
        ) from None
    return header, 8 + length


def _in_order(tensors: dict[str, _Tensor], columns: Any) -> dict[str, _Tensor]:
    """Return the tensors in the order of the notes, then those that the notes do not name."""
    first = [name for name in columns if isinstance(name, str)] if isinstance(columns, list) else []
    return {name: tensors[name] for name in (*first, *tensors) if name in tensors}


def write_safetensors(path: Path, columns: WrittenColumns, notes: Notes) -> None:
    """Write columns as tensors, with the notes in the file's own metadata.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.safetensors"
        >>> write_safetensors(path, {"labels": np.array([0, 1])}, Notes(split="test"))
        >>> SafetensorsReader(path).notes.split
        'test'
    """
    tensors, words = {}, {}
    for name, column in columns.items():
        values = column
        if column.dtype.kind == "U":
            found, values = np.unique(column, return_inverse=True)
            words[name] = found.tolist()
        tensors[name] = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    # The format sorts the tensors; the notes keep the order of the columns.
    text = notes.to_json({"words": words, "columns": list(tensors) if len(tensors) > 1 else None})
    metadata = {"equipoise": text} if text else {}
    save_tensors(path, tensors, metadata=metadata, framework="numpy", purpose="write .safetensors files")


def rewrite_safetensors(
    readers: Sequence[ColumnReader], path: Path, scores: NewScores, notes: Notes, *, side: Path
) -> None:
    """Write a file with other scores; the bytes and the types of every other tensor stay as they are.

    Args:
        readers: The file, the only one.
        path: Where it goes.
        scores: The new scores.
        notes: Notes about the file, which go to its metadata.
        side: Not used: the file has a place for its notes.
    """
    (reader,) = readers
    assert isinstance(reader, SafetensorsReader)
    fresh = scores.columns(reader.length_of(scores.old[0]))
    header: dict[str, Any] = {}
    contents: list[Callable[[int, int], Array]] = []
    place, placed = 0, scores.place(list(reader.row_shapes))
    for name, old in placed:
        kind, shape, take = reader.stored(name if old is None else old)
        if old is not None and scores.added is not None:
            if scores.added.kind != "b":
                raise DataError(
                    "a .safetensors file cannot hold a column of text. Write .npz, .csv or .parquet."
                )
            kind, shape = "BOOL", fresh[old].shape
            take = partial(_slice, np.ascontiguousarray(fresh[old]).view(np.uint8))
        elif old is not None:
            kind, content = _as_bytes(fresh[old].reshape(shape), kind)
            take = partial(_slice, content)
        size = reader.bytes_of(name) if old is None else prod(shape) * np.dtype(_TYPES[kind]).itemsize
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [place, place + size]}
        contents.append(take)
        place += size
    own = notes.to_json({"words": reader.words, "columns": list(header) if len(header) > 1 else None})
    metadata = reader.metadata | {"equipoise": own}
    text = json.dumps({"__metadata__": metadata, **header}, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for facts, take in zip(header.values(), contents, strict=True):
            first, last = facts["data_offsets"]
            for at in range(0, last - first, _PIECE):
                stream.write(take(at, min(_PIECE, last - first - at)).data)


def _slice(content: Array, at: int, count: int) -> Array:
    return content[at : at + count]


def _as_bytes(values: Array, kind: str) -> tuple[str, Array]:
    """Return the type in which scores are stored, and their bytes."""
    if kind == "BF16":
        words = (round_to_bfloat16(values).view(np.uint32) >> np.uint32(16)).astype("<u2")
        return kind, words.reshape(-1).view(np.uint8)
    stored = np.ascontiguousarray(stored_as(values, _TYPES[kind]))
    return {8: "F64", 4: "F32", 2: "F16"}[stored.itemsize], stored.reshape(-1).view(np.uint8)
