"""Ids that identify rows: each at most once in all files of a stream."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.errors import EquipoiseError
from equipoise.core.reading.columns import Columns
from equipoise.core.reading.files import SourceLike, find_sources, open_source
from equipoise.core.reading.formats.base import Chunk, ColumnReader, Reading
from equipoise.core.rows import Rows

__all__ = ["UniqueIds", "find_ids"]


def find_ids(path: SourceLike, columns: Columns, hashes: Collection[int]) -> list[str]:
    """Return the ids of a file that have these hashes, as text; none if no column of ids is named.

    Args:
        path: What was read.
        columns: How it was read.
        hashes: Some of the numbers that rows are known by.
    """
    name, found = columns.get("ids"), list[str]()
    for source in find_sources(path) if name is not None else ():
        with open_source(source, columns.get("max_bytes")) as reader:
            known = next(
                (one for one in reader.row_shapes if one.strip().lower() == str(name).strip().lower()), None
            )
            if known is None:
                continue
            readings: dict[str, Reading] = {known: "text"}
            for chunk in reader.chunks(readings, n_rows=reader.chunk_rows(readings)):
                ids = as_numpy(chunk.columns[known])
                wanted = np.isin(Rows.from_ids(ids).hashes, np.array(list(hashes), np.uint64))
                found += [str(one) for one in ids[wanted]]
    return found


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
    ) -> EquipoiseError:
        row = int(np.argmax(repeated))
        count = int(repeated.sum())
        rows = "1 row repeats an id" if count == 1 else f"{count} rows repeat an id"
        error = reader.fail(
            f"`{column}` must identify every row, and {rows}, first {str(ids[row])[:60]!r} in {{row}}. "
            "Such rows would count twice: remove them, or leave ids out."
        )
        return chunk.locate(error, row)
