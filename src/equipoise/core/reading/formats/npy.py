"""Pairs of .npy files: one array each, scores and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.errors import DataError
from equipoise.core.files import atomic_path
from equipoise.core.reading.formats.base import ArrayReader, WrittenColumns
from equipoise.core.reading.formats.notes import Notes
from equipoise.core.reading.formats.npy_header import Header, check_dtype, check_text, read_header

__all__ = ["NpyReader", "write_npy"]


class NpyReader(ArrayReader):
    """Several .npy files as the columns of one table, mapped into memory and copied chunk by chunk."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths
        self._headers = {name: _checked_header(path) for name, path in paths.items()}
        shapes = {name: header.shape for name, header in self._headers.items()}
        super().__init__(next(iter(paths.values())), shapes, Notes())
        self.where = " and ".join(path.name for path in paths.values())

    def is_text(self, name: str) -> bool:
        """Say whether a column holds text."""
        return self._headers[name].dtype.kind == "U"

    def rows_of(self, name: str) -> Callable[[int, int], Any]:
        """Return a function that gives the rows from start to stop."""
        header, path = self._headers[name], self._paths[name]
        check_dtype(header.dtype, where=path.name)
        mapped = np.memmap(
            path,
            dtype=header.dtype,
            mode="r",
            offset=header.offset,
            shape=header.shape,
            order="F" if header.fortran_order else "C",
        )
        return lambda start, stop: check_text(np.array(mapped[start:stop], order="C"), where=path.name)


def _checked_header(path: Path) -> Header:
    with path.open("rb") as stream:
        header = read_header(stream, where=path.name)
    held = path.stat().st_size - header.offset
    if held != header.n_bytes and not header.dtype.hasobject:
        raise DataError(
            f"{path.name} is cut off or damaged: its header promises {header.n_bytes} bytes of numbers, "
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
