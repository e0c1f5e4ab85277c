"""Files of text, a row per line: read in bounded memory, every error with its line.

There are two ways through a file. Arrow reads large files fast. Where it meets anything that it cannot convert, and
where it is not installed, lines are read one by one by :class:`Cells`, which decides what a valid cell is and names the
line and the column of one that is not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import Chunk, ColumnReader, Reading, from_arrow
from equipoise.core.reading.formats.cells import Cells, is_missing
from equipoise.core.reading.formats.immutable_file import ImmutableFile
from equipoise.core.reading.formats.notes import Notes, parse, side_file
from equipoise.core.reading.storage import File

__all__ = ["ARROW_BLOCK", "LONGEST_LINE", "MOST_CELLS", "TextReader"]

#: Bytes of a line.
LONGEST_LINE = 1 << 22
#: Cells that are held as text at a time.
MOST_CELLS = 1 << 18
#: Smaller files are read line by line: importing Arrow takes longer.
ARROW_BYTES = 2 << 20
#: Bytes that Arrow parses at a time.
ARROW_BLOCK = 1 << 20
#: Notes beside a file are not larger than the file, or than this.
_LARGEST_NOTES = 1 << 24

#: Beyond this, floats skip whole numbers.
_LARGEST_WHOLE = 2.0**53

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
        done = 0
        if self.size >= ARROW_BYTES:
            try:
                for chunk in self._arrow_chunks(readings, n_rows):
                    yield chunk
                    done = chunk.start + 1
                return
            except (ImportError, _Unconvertible):
                pass
        # Chunks have the same limits, whichever way they are read.
        for chunk in self._chunks_by_line(readings, n_rows):
            if chunk.start >= done:
                yield chunk

    @abstractmethod
    def arrow_batches(self, readings: Mapping[str, Reading]) -> Iterator[Any]:
        """Yield the columns as record batches of Arrow.

        Columns have the types that :meth:`_from_arrow` expects: float64 or lists of it, int64 or float64 for labels,
        bool, uint64, and strings.

        Raises:
            ImportError: If Arrow is not installed.
            ValueError: If it cannot convert a cell.
        """

    def _arrow_chunks(self, readings: Mapping[str, Reading], n_rows: int | None) -> Iterator[Chunk]:
        import pyarrow

        start, n_held, held, widths = 0, 0, list[Any](), dict.fromkeys(readings, 0)
        try:
            for batch in self.arrow_batches(readings):
                held.append(batch)
                n_held += batch.num_rows
                while n_rows is not None and n_held >= n_rows:
                    table = pyarrow.Table.from_batches(held)
                    yield self._from_arrow(table.slice(0, n_rows), readings, start, widths)
                    held, n_held = table.slice(n_rows).to_batches(), n_held - n_rows
                    start += n_rows
            if n_held:
                yield self._from_arrow(pyarrow.Table.from_batches(held), readings, start, widths)
        except DataError:
            raise
        except (pyarrow.ArrowException, ValueError) as error:
            raise _Unconvertible from error

    def _from_arrow(
        self, table: Any, readings: Mapping[str, Reading], start: int, widths: dict[str, int]
    ) -> Chunk:
        """Return the rows of a table of Arrow; ``widths`` are bytes per row of each column so far.

        Raises:
            _Unconvertible: For what only :class:`Cells` can convert or describe.
        """
        rows, n_read = None, table.num_rows
        if self.drop_missing:
            valid = np.ones(n_read, bool)
            for name, reading in readings.items():
                valid &= ~_missing(table.column(name), reading)
            if not valid.all():
                rows = np.flatnonzero(valid)
                table = table.take(rows)
                rows = rows + start
        columns: dict[str, Array] = {}
        for name, reading in readings.items() if table.num_rows else ():
            columns[name] = self._column(name, table.column(name), reading)
            widths[name] = max(widths[name], _row_bytes(columns[name]))
        self.check_growth((start + n_read) * sum(widths.values()))
        return Chunk(columns, start, rows, n_read - table.num_rows, self._line_of)

    def _column(self, name: str, column: Any, reading: Reading) -> Array:
        """Return a column of Arrow; texts are converted once each, as cells."""
        if column.null_count:
            raise _Unconvertible
        column = column.combine_chunks()
        if reading in ("name", "group", "text"):
            encoded = column.dictionary_encode()
            texts = encoded.dictionary.to_pylist()
            block = self.cells(list(range(len(texts))))
            try:
                block.add(name, texts, reading, self.dtype(name))
            except DataError as error:
                raise _Unconvertible from error
            decoded: Array = block.columns[name][from_arrow(encoded.indices)]
            return decoded
        if hasattr(column, "value_lengths"):
            width = (self.row_shapes[name] or (0,))[0]
            if column.flatten().null_count or (from_arrow(column.value_lengths()) != width).any():
                raise _Unconvertible
            values: Array = from_arrow(column.flatten()).reshape(-1, width)
        else:
            values = from_arrow(column)
        if reading == "label" and values.dtype.kind == "f":
            if not (np.abs(values) < _LARGEST_WHOLE).all() or (np.floor(values) != values).any():
                raise _Unconvertible
            return values.astype(np.int64)
        return values.astype(np.float32) if self.dtype(name) == "<f4" else values

    def _line_of(self, row: int) -> int:
        """Return the line of a row, by reading the file up to it."""
        return next(islice(self.records(), row, None))[0]

    def _chunks_by_line(self, readings: Mapping[str, Reading], n_rows: int | None) -> Iterator[Chunk]:
        start, parts, held = 0, list[Cells](), 0
        widths = dict.fromkeys(readings, 0)
        for block in self._blocks(readings, MOST_CELLS if n_rows is None else n_rows):
            parts.append(block)
            held += len(block.lines) + block.n_dropped
            # The longest text of a column gives every row of it its width.
            for name, column in block.columns.items():
                widths[name] = max(widths[name], _row_bytes(column))
            self.check_growth((start + held) * sum(widths.values()))
            if n_rows is not None and held >= n_rows:
                yield self._joined(parts, start)
                start, parts, held = start + held, [], 0
        if parts:
            yield self._joined(parts, start)

    def _blocks(self, readings: Mapping[str, Reading], n_rows: int) -> Iterator[Cells]:
        """Yield blocks that never straddle a multiple of ``n_rows``; cells become numbers block by block."""
        limit = max(1, min(n_rows, MOST_CELLS // max(1, self.n_columns)))
        records, lines, remaining = list[Record](), list[int](), n_rows
        for line, record in self.records():
            records.append(self.pruned(record, readings))
            lines.append(line)
            if len(records) == min(limit, remaining):
                remaining = remaining - len(records) or n_rows
                yield self._block(records, lines, readings)
                records, lines = [], []
        if records:
            yield self._block(records, lines, readings)

    def _block(self, records: list[Record], lines: list[int], readings: Mapping[str, Reading]) -> Cells:
        kept = list(range(len(records)))
        if self.drop_missing:
            kept = [
                row
                for row, record in enumerate(records)
                if not any(self.is_missing(record, name, reading) for name, reading in readings.items())
            ]
        block = self.cells([lines[row] for row in kept])
        block.rows, block.n_dropped = np.array(kept, np.int64), len(records) - len(kept)
        if kept:
            records = [records[row] for row in kept]
            for name, reading in readings.items():
                self.add_column(block, name, records, reading)
        return block

    def _joined(self, parts: list[Cells], start: int) -> Chunk:
        ends = np.cumsum([len(part.lines) + part.n_dropped for part in parts])
        rows = np.concatenate(
            [
                start + end - len(part.lines) - part.n_dropped + part.rows
                for part, end in zip(parts, ends, strict=True)
            ]
        )
        lines = np.concatenate([part.lines for part in parts])
        filled = [part.columns for part in parts if len(part.lines)]
        for name in filled[0] if filled else ():
            if len({columns[name].shape[1:] for columns in filled}) > 1:
                raise self.fail(f"`{name}` must hold lists of one length, one score per class.")
        return Chunk(
            {
                name: np.concatenate([columns[name] for columns in filled])
                for name in (filled[0] if filled else ())
            },
            start,
            rows,
            int(ends[-1]) - len(rows),
            lambda row: int(lines[np.searchsorted(rows, row)]),
        )


class _Unconvertible(Exception):  # noqa: N818 - it never reaches a caller
    """Arrow does not convert something that the reader of single lines converts or describes."""


def _missing(column: Any, reading: Reading) -> Array:
    """Return which values of a column of Arrow are missing, as :func:`is_missing` does."""
    if reading in ("group", "hash"):
        return np.zeros(len(column), bool)
    column = column.combine_chunks()
    if reading not in ("name", "text"):
        return from_arrow(column.is_null())
    encoded = column.dictionary_encode()
    empty = np.array([not (text or "").strip() for text in encoded.dictionary.to_pylist()] + [True])
    missing: Array = empty[from_arrow(encoded.indices.fill_null(len(empty) - 1))]
    return missing


def _side_notes(path: File, table: ColumnReader) -> tuple[str, str] | None:
    """Return the notes in the file beside a table, and its name, if there is one."""
    side = side_file(path) if isinstance(path, Path) else None
    if side is None or not side.exists():
        return None
    with ImmutableFile(side) as file:
        if file.length > max(_LARGEST_NOTES, table.size):
            raise DataError(f"{side.name}: has {file.length} bytes, more than the table itself. Delete it.")
        try:
            return file.take(0, file.length).tobytes().decode("utf-8"), side.name
        except UnicodeDecodeError:
            raise DataError(f"{side.name}: is not UTF-8 text. Delete it, or copy it again.") from None


def _row_bytes(column: Array) -> int:
    return int(column.itemsize * np.prod(column.shape[1:], dtype=np.int64))
