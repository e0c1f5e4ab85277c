"""Ids that identify rows: each at most once in all files of a stream."""

from __future__ import annotations

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import Chunk, ColumnReader
from equipoise.core.rows import Rows

__all__ = ["UniqueIds"]


class UniqueIds:
    """The ids of a stream so far, by one 64-bit hash each, in a few sorted blocks.

    Blocks of similar length are merged, so that adding n ids takes time of the order of n log n.
    """

    def __init__(self) -> None:
        self._blocks: list[Array] = []

    def add(self, reader: ColumnReader, chunk: Chunk, column: str) -> None:
        """Add the ids of a chunk.

        Raises:
            DataError: If an id occurs twice, with the first such id, its row, and how many ids do.
        """
        ids = as_numpy(chunk.columns[column])
        if ids.ndim != 1 or ids.dtype.kind not in "iuU":
            return  # Predictions reports this
        hashes = Rows.from_ids(ids).hashes
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        repeated = np.zeros(len(ids), bool)
        repeated[order[1:]] = ordered[1:] == ordered[:-1]
        for block in self._blocks:
            places = np.searchsorted(block, hashes).clip(max=len(block) - 1)
            repeated |= block[places] == hashes
        if repeated.any():
            raise self._failure(reader, chunk, column, ids, repeated)
        while self._blocks and len(self._blocks[-1]) <= 2 * len(ordered):
            ordered = np.sort(np.concatenate([self._blocks.pop(), ordered]), kind="stable")
        self._blocks.append(ordered)

    def _failure(
        self, reader: ColumnReader, chunk: Chunk, column: str, ids: Array, repeated: Array
    ) -> DataError:
        row = int(np.argmax(repeated))
        place = f"row {chunk.start + row}" if chunk.lines is None else f"line {chunk.lines[row]}"
        count = int(repeated.sum())
        rows = "1 row repeats an id" if count == 1 else f"{count} rows repeat an id"
        return reader.fail(
            f"`{column}` must identify every row, and {rows}, first {str(ids[row])[:60]!r} in {place}. Such rows would "
            "count twice: remove them, or leave ids out."
        )
