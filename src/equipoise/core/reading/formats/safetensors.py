"""Safetensors files: named tensors, read slice by slice."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.errors import DataError, require
from equipoise.core.reading.formats.base import ArrayReader, WrittenColumns
from equipoise.core.reading.formats.notes import Notes, parse

__all__ = ["SafetensorsReader", "write_safetensors"]

_LONGEST_HEADER = 16 << 20
_TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "U16", "U32", "U64", "BOOL")


class SafetensorsReader(ArrayReader):
    """The tensors of one file; text is kept as numbers, with its words in the notes."""

    def __init__(self, path: Path) -> None:
        package = require("safetensors", extra="safetensors", purpose="read .safetensors files")
        _check_start(path)
        try:
            self._file = package.safe_open(path, framework="pt")
            metadata = self._file.metadata() or {}
            self._slices = {name: self._file.get_slice(name) for name in self._file.keys()}  # noqa: SIM118
            shapes = {name: tuple(part.get_shape()) for name, part in self._slices.items()}
        except (package.SafetensorError, OSError, ValueError) as error:
            raise _corrupt(path.name, error) from None
        text = metadata.get("equipoise", "")
        super().__init__(path, shapes, Notes.from_json(text, where=path.name))
        words = parse(text, where=path.name).get("words")
        self._words = words if isinstance(words, dict) else {}

    def is_text(self, name: str) -> bool:
        """Say whether a column holds text."""
        return name in self._words

    def rows_of(self, name: str) -> Callable[[int, int], Any]:
        """Return a function that gives the rows from start to stop."""
        part = self._slices[name]
        if part.get_dtype() not in _TYPES:
            raise self.fail(f"`{name}` must hold plain numbers, its type is {part.get_dtype()}.")
        if name not in self._words:
            return lambda start, stop: part[start:stop]
        listed = self._words[name] if isinstance(self._words[name], list) else []
        words = np.array([str(word) for word in listed], dtype=np.str_)
        return lambda start, stop: self._spelt(words, as_numpy(part[start:stop]), name)

    def _spelt(self, words: Array, codes: Array, name: str) -> Array:
        if codes.dtype.kind not in "iu" or not len(words) or codes.min() < 0 or codes.max() >= len(words):
            raise self.fail(
                f"`{name}` does not fit its words in the notes. The file is damaged: write it again."
            )
        spelt: Array = words[codes]
        return spelt


def _check_start(path: Path) -> None:
    """Refuse a header of absurd length before anything parses it."""
    with path.open("rb") as stream:
        start = stream.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 2 <= length <= min(_LONGEST_HEADER, path.stat().st_size - 8):
        raise _corrupt(path.name, ValueError(f"its header would have {length} bytes"))


def _corrupt(where: str, error: Exception) -> DataError:
    reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
    return DataError(
        f"{where} is cut off, damaged, or no safetensors file ({reason}). Copy or write it again."
    )


def write_safetensors(path: Path, columns: WrittenColumns, notes: Notes) -> None:
    """Write columns as tensors, with the notes in the file's own metadata.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.safetensors"
        >>> write_safetensors(path, {"labels": np.array([0, 1])}, Notes(split="test"))
        >>> SafetensorsReader(path).notes.split
        'test'
    """
    package = require("safetensors.numpy", extra="safetensors", purpose="write .safetensors files")
    tensors, words = {}, {}
    for name, column in columns.items():
        values = column
        if column.dtype.kind == "U":
            found, values = np.unique(column, return_inverse=True)
            words[name] = found.tolist()
        tensors[name] = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    text = notes.to_json({"words": words})
    package.save_file(tensors, path, metadata={"equipoise": text} if text else None)
