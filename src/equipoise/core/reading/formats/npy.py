"""Files of .npy: one array each, scores and labels, or scores alone."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.atomic_files import atomic_path
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import ArrayReader, WrittenColumns
from equipoise.core.reading.formats.npy_header import (
    LONGEST_HEADER,
    Header,
    check_dtype,
    check_text,
    read_header,
)
from equipoise.core.reading.formats.steady_file import SteadyFile

__all__ = ["NpyReader", "write_npy"]


class NpyReader(ArrayReader):
    """Several .npy files as the columns of one table, copied chunk by chunk."""

    def __init__(self, paths: Mapping[str, Path], max_bytes: int | None = None) -> None:
        with ExitStack() as stack:
            self._files = {name: stack.enter_context(SteadyFile(path)) for name, path in paths.items()}
            self._headers = {name: _checked_header(file) for name, file in self._files.items()}
            self._open = stack.pop_all()
        size = sum(file.length for file in self._files.values())
        where = " and ".join(path.name for path in paths.values())
        super().__init__(where, self._headers, size=size, max_bytes=max_bytes)

    def close(self) -> None:
        """Let go of the files."""
        self._open.close()

    def is_text(self, name: str) -> bool:
        """Say whether a column holds text."""
        return self._headers[name].dtype.kind == "U"

    def rows_of(self, name: str) -> Callable[[int, int], Any]:
        """Return a function that gives the rows from start to stop."""
        header, file = self._headers[name], self._files[name]
        check_dtype(header.dtype, where=file.where)
        take = _by_column if header.fortran_order else _by_row
        return lambda start, stop: check_text(take(file, header, start, stop), where=file.where)


def _by_row(file: SteadyFile, header: Header, start: int, stop: int) -> Array:
    width = header.dtype.itemsize * prod(header.shape[1:])
    content = file.take(header.offset + start * width, (stop - start) * width)
    return content.view(header.dtype).reshape(stop - start, *header.shape[1:])


def _by_column(file: SteadyFile, header: Header, start: int, stop: int) -> Array:
    """Return rows of an array whose first axis varies fastest: a piece of each column."""
    item, (length, *rest) = header.dtype.itemsize, header.shape
    starts = (header.offset + item * (column * length + start) for column in range(prod(rest)))
    columns = np.stack([file.take(place, (stop - start) * item).view(header.dtype) for place in starts])
    return np.ascontiguousarray(columns.T.reshape(stop - start, *rest, order="F"))


def _checked_header(file: SteadyFile) -> Header:
    header = read_header(
        io.BytesIO(file.take(0, min(file.length, LONGEST_HEADER)).tobytes()), where=file.where
    )
    held = file.length - header.offset
    if held != header.n_bytes and not header.dtype.hasobject:
        raise DataError(
            f"{file.where} is cut off or damaged: its header promises {header.n_bytes} bytes of numbers, "
            f"{held} are there. Copy it again."
        )
    return header


def write_npy(paths: Mapping[str, Path], columns: WrittenColumns) -> None:
    """Write each column to its own file; either all files appear or, should writing fail, none.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "labels.npy"
        >>> write_npy({"labels": path}, {"labels": np.array([0, 1])})
        >>> np.load(path)
        array([0, 1])
    """
    with ExitStack() as stack:
        for name, path in paths.items():
            np.save(stack.enter_context(atomic_path(path)), columns[name], allow_pickle=False)
