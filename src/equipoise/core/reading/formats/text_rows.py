"""Files of text, a row per line: read in bounded memory, every error with its line."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import Chunk, ColumnReader, Reading
from equipoise.core.reading.formats.cells import Cells, is_missing
from equipoise.core.reading.formats.notes import Notes, parse, side_file
from equipoise.core.reading.formats.steady_file import SteadyFile
from equipoise.core.reading.storage import File

__all__ = ["LONGEST_LINE", "MOST_CELLS", "TextReader"]

#: Bytes of a line.
LONGEST_LINE = 1 << 22
#: Cells that are held as text at a time.
MOST_CELLS = 1 << 18
#: Notes beside a file are not larger than the file, or than this.
_LARGEST_NOTES = 1 << 24

Record = TypeVar("Record")


class TextReader(ColumnReader, Generic[Record]):
    """The columns of a file of lines. Formats say how a line becomes a record, and a record cells.

    Attributes:
        n_columns: About how many cells a record has.
        dtypes: The types that columns had before they were written, where that is known.
    """

    n_columns: int
    dtypes: Mapping[str, Any]

    @abstractmethod
    def records(self) -> Iterator[tuple[int, Record]]:
        """Yield the number of each line and its record, from the start of the file."""

    @abstractmethod
    def cell(self, record: Record, name: str) -> str:
        """Return a cell of a record as text; empty if there is none."""

    def pruned(self, record: Record, readings: Mapping[str, Reading]) -> Record:
        """Return what is needed of a record, which is held until its block is complete."""
        return record

    def cells(self, lines: list[int]) -> Cells:
        """Return an empty block of columns of these lines."""
        return Cells(self.where, lines, percent=self.percent)

    def dtype(self, name: str) -> Any:
        """Return the type a column had before it was written, if the file tells."""
        return self.dtypes.get(name)

    def read_notes(self, path: File, text: str | None) -> None:
        """Read the notes of the table: those in it, or in the file beside it.

        Args:
            path: The table.
            text: The notes in the table; None if it has none.
        """
        text, where = (_side_notes(path, self) or ("", self.where)) if text is None else (text, self.where)
        self.notes = Notes.from_json(text, where=where)
        lost = [name for name in self.notes.calibrated or () if name not in self.row_shapes]
        if lost:
            raise DataError(
                f"{where}: belongs to a table with a column {lost[0][:60]!r}, which {self.where} does not have. Delete "
                "it if the table is another one."
            )
        dtypes = parse(text, where=where).get("dtypes")
        self.dtypes = dtypes if isinstance(dtypes, dict) else {}

    def add_column(self, block: Cells, name: str, records: list[Record], reading: Reading) -> None:
        """Add a column of some records to a block."""
        block.add(name, [self.cell(record, name) for record in records], reading, self.dtype(name))

    def is_missing(self, record: Record, name: str, reading: Reading) -> bool:
        """Say whether a record lacks a value."""
        return is_missing(self.cell(record, name), reading)

    def first_cell(self, name: str) -> str:
        """Return the first cell of a column; where rows with missing values are left out, the first that is not."""
        cells = (
            self.cell(record, name) for _, record in self.records()
        )  # from the start: not while chunks are read
        first = next(cells, "")
        while self.drop_missing and is_missing(first, "number"):
            following = next(cells, None)
            if following is None:
                break
            first = following
        return first

    def chunks(self, readings: Mapping[str, Reading], *, n_rows: int | None) -> Iterator[Chunk]:
        """Yield the rows of some columns in order; rows that are left out count towards the size of a chunk."""
        start, parts, held = 0, list[Cells](), 0
        widths = dict.fromkeys(readings, 0)
        for block in self._blocks(readings, MOST_CELLS if n_rows is None else n_rows):
            parts.append(block)
            held += len(block.lines) + block.n_dropped
            # The longest text of a column gives every row of it its width.
            widths = {name: max(width, _row_bytes(block, name)) for name, width in widths.items()}
            self.check_growth((start + held) * sum(widths.values()))
            if n_rows is not None and held >= n_rows:
                yield self._joined(parts, start)
                start, parts, held = start + held, [], 0
        if parts:
            yield self._joined(parts, start)

    def _blocks(self, readings: Mapping[str, Reading], n_rows: int) -> Iterator[Cells]:
        """Yield blocks that never straddle a multiple of ``n_rows``; cells become numbers block by block."""
        limit = max(1, min(n_rows, MOST_CELLS // max(1, self.n_columns)))
        records, lines, room = list[Record](), list[int](), n_rows
        for line, record in self.records():
            records.append(self.pruned(record, readings))
            lines.append(line)
            if len(records) == min(limit, room):
                room = room - len(records) or n_rows
                yield self._block(records, lines, readings)
                records, lines = [], []
        if records:
            yield self._block(records, lines, readings)

    def _block(self, records: list[Record], lines: list[int], readings: Mapping[str, Reading]) -> Cells:
        n_read = len(records)
        if self.drop_missing:
            kept = [
                place
                for place, record in enumerate(records)
                if not any(self.is_missing(record, name, reading) for name, reading in readings.items())
            ]
            records, lines = [records[place] for place in kept], [lines[place] for place in kept]
        block = self.cells(lines)
        block.n_dropped = n_read - len(records)
        for name, reading in readings.items() if records else ():
            self.add_column(block, name, records, reading)
        return block

    def _joined(self, parts: list[Cells], start: int) -> Chunk:
        filled = [part for part in parts if len(part.lines)]
        n_dropped = sum(part.n_dropped for part in parts)
        if not filled:
            return Chunk({}, start, np.zeros(0, np.int64), n_dropped=n_dropped)
        for name, column in filled[0].columns.items():
            if any(part.columns[name].shape[1:] != column.shape[1:] for part in filled):
                raise self.fail(f"`{name}` must hold lists of one length, one score per class.")
        columns = {
            name: np.concatenate([part.columns[name] for part in filled]) for name in filled[0].columns
        }
        return Chunk(columns, start, np.concatenate([part.lines for part in filled]), n_dropped=n_dropped)


def _side_notes(path: File, table: ColumnReader) -> tuple[str, str] | None:
    """Return the notes in the file beside a table, and its name, if there is one."""
    side = side_file(path) if isinstance(path, Path) else None
    if side is None or not side.exists():
        return None
    with SteadyFile(side) as file:
        if file.length > max(_LARGEST_NOTES, table.size):
            raise DataError(f"{side.name}: has {file.length} bytes, more than the table itself. Delete it.")
        try:
            return file.take(0, file.length).tobytes().decode("utf-8"), side.name
        except UnicodeDecodeError:
            raise DataError(f"{side.name}: is not UTF-8 text. Delete it, or copy it again.") from None


def _row_bytes(block: Cells, name: str) -> int:
    column = block.columns.get(name)
    return 0 if column is None else int(column.itemsize * np.prod(column.shape[1:], dtype=np.int64))
