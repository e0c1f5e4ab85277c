"""Parquet files: scalar columns or lists of scores, read chunk by chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, first_line, require
from equipoise.core.reading.formats.base import (
    LONGEST_TEXT,
    Chunk,
    ColumnReader,
    NewScores,
    Reading,
    WrittenColumns,
    as_text,
    from_arrow,
)
from equipoise.core.reading.formats.immutable_file import ImmutableFile
from equipoise.core.reading.formats.notes import Notes
from equipoise.core.reading.storage import File

__all__ = ["ParquetReader", "rewrite_parquet", "write_parquet"]

_NOTES = b"equipoise"


class ParquetReader(ColumnReader):
    """The columns of a Parquet file, read through a small buffer, so a large row group is never held whole."""

    def __init__(self, path: File, max_bytes: int | None = None) -> None:
        self._arrow = require("pyarrow", extra="parquet", purpose="read .parquet files")
        self._parquet = require("pyarrow.parquet", extra="parquet", purpose="read .parquet files")
        self._disk = ImmutableFile(path)
        self.where, self.size, self.max_bytes = path.name, self._disk.length, max_bytes
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        try:
            self._schema = self._opened().schema_arrow
            repeated = [name for name, count in Counter(self._schema.names).items() if count > 1]
            if repeated:
                raise self.fail(
                    f"holds the column {repeated[0][:60]!r} twice. Give every column its own name."
                )
            # Texts stay numbers of a dictionary: a long one that is repeated often would fill the memory.
            self._file = self._opened(read_dictionary=list(filter(self.is_text, self._schema.names)))
        except DataError:
            raise
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise self._corrupt(error) from None
        self.row_shapes = {field.name: self._row_shape(field.type) for field in self._schema}
        text = (self._schema.metadata or {}).get(_NOTES, b"").decode("utf-8", "replace")
        self.notes = Notes.from_json(text, where=self.where)

    def _opened(self, **options: Any) -> Any:
        return self._parquet.ParquetFile(
            self._arrow.PythonFile(self._disk, mode="r"),
            buffer_size=1 << 20,
            pre_buffer=False,
            page_checksum_verification=True,
            # No list of the footer has more entries than it has bytes.
            thrift_string_size_limit=self.size + 1,
            thrift_container_size_limit=self.size // 4 + 1000,
            **options,
        )

    def close(self) -> None:
        """Let go of the file."""
        self._disk.close()

    def _row_shape(self, kind: Any) -> tuple[int, ...] | None:
        types = self._arrow.types
        if types.is_fixed_size_list(kind):
            return (int(kind.list_size),)
        return None if types.is_list(kind) or types.is_large_list(kind) else ()

    def _checked_rows(self, names: list[str]) -> int:
        """Return the number of rows; raise for a file that would take an absurd amount of memory."""
        rows = int(self._file.metadata.num_rows)
        if rows <= 0:
            raise self.fail("holds no rows. There is nothing to score.")
        self._widths = {name: self._row_bytes(self._schema.field(name).type) for name in names}
        self.check_growth(rows * sum(self._widths.values()))
        return rows

    def _row_bytes(self, kind: Any) -> int:
        """Return the bytes of a row in memory that its type shows: nothing for texts and lists of any length."""
        types = self._arrow.types
        if types.is_fixed_size_list(kind):
            return int(kind.list_size) * self._row_bytes(kind.value_type)
        numbers = types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
        return (kind.bit_width + 7) // 8 if numbers else 0

    def _check_width(self, name: str, n_bytes: int) -> None:
        """Raise if all rows with so many bytes each would take an absurd amount of memory."""
        self._widths[name] = max(self._widths[name], n_bytes)
        self.check_growth(int(self._file.metadata.num_rows) * sum(self._widths.values()))

    def chunks(self, readings: Mapping[str, Reading], *, n_rows: int | None) -> Iterator[Chunk]:
        """Yield the rows of some columns in order."""
        for name in readings:
            self._check_type(name)
        rows = self._checked_rows(list(readings))
        size = self.chunk_rows(readings) if n_rows is None else n_rows
        start, held = 0, list[Chunk]()
        # Room is made for all rows of a chunk before they are there.
        for part in self._parts(min(size, rows, 8 * self.size), list(readings)):
            chunk = self._chunk(part, readings, start)
            if n_rows is None:
                held.append(chunk)
            else:
                yield chunk
            start += part.num_rows
        if start != rows:
            raise self.fail("holds another number of rows than it says. The file is damaged: write it again.")
        if n_rows is None:
            yield self._joined(held, list(readings))

    def _chunk(self, part: Any, readings: Mapping[str, Reading], start: int) -> Chunk:
        """Return some rows; those with a missing value may be left out."""
        rows, n_read = None, part.num_rows
        if self.drop_missing and any(part.column(name).null_count for name in readings):
            valid = np.ones(n_read, bool)
            for name in readings:
                valid &= from_arrow(part.column(name).is_valid())
            rows = np.flatnonzero(valid)
            part = part.take(self._arrow.array(rows))
            rows = rows + start
        if not part.num_rows:
            return Chunk({}, start, rows=rows, n_dropped=n_read)
        columns = {name: self._column(part.column(name), name, start) for name in readings}
        return Chunk(columns, start, rows=rows, n_dropped=n_read - part.num_rows)

    def _joined(self, parts: list[Chunk], names: list[str]) -> Chunk:
        n_dropped = sum(part.n_dropped for part in parts)
        filled = [part for part in parts if part.columns]
        if not filled:
            return Chunk({}, 0, n_dropped=n_dropped)
        columns = {name: self._whole([part.columns[name] for part in filled], name) for name in names}
        rows = None
        if n_dropped:
            rows = np.concatenate(
                [
                    part.start + np.arange(len(part.columns[names[0]])) if part.rows is None else part.rows
                    for part in filled
                ]
            )
        return Chunk(columns, 0, rows=rows, n_dropped=n_dropped)

    def is_text(self, name: str) -> bool:
        """Say whether a column holds text."""
        types, kind = self._arrow.types, self._schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind))

    @property
    def schema(self) -> Any:
        """Names and types of the columns, and the file's metadata."""
        return self._schema

    @property
    def compression(self) -> str:
        """How the file is packed, by its first column."""
        groups = self._file.metadata
        packed = groups.row_group(0).column(0).compression if groups.num_row_groups else "SNAPPY"
        return "none" if packed == "UNCOMPRESSED" else str(packed).lower()

    def batches(self) -> Iterator[Any]:
        """Yield all columns as they are stored, some rows at a time."""
        names = list(self._schema.names)
        self._checked_rows(names)
        for part in self._parts(self.chunk_rows(dict.fromkeys(names, "text")), names):
            table = self._arrow.Table.from_batches([part])
            yield table.cast(self._schema) if table.schema != self._schema else table

    def _parts(self, size: int, names: list[str]) -> Iterator[Any]:
        try:
            for part in self._file.iter_batches(batch_size=size, columns=names):
                part.validate(full=True)  # Arrow believes the places in a dictionary that a file names
                yield part
        except DataError:
            raise
        except (self._arrow.ArrowException, OSError, ValueError, MemoryError) as error:
            raise self._corrupt(error) from None

    def _whole(self, parts: list[Array], name: str) -> Array:
        if len({part.shape[1:] for part in parts}) > 1:
            raise self.fail(f"`{name}` must hold lists of one length, one score per class.")
        return np.concatenate(parts)

    def _check_type(self, name: str) -> None:
        types, kind = self._arrow.types, self._schema.field(name).type
        lists = any(test(kind) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list))
        inner = kind.value_type if lists or types.is_dictionary(kind) else kind
        numbers = (types.is_floating, types.is_integer, types.is_boolean)
        if not any(test(inner) for test in numbers) and (lists or not self.is_text(name)):
            raise self.fail(f"`{name}` must hold numbers, text or lists of numbers, its type is {kind}.")

    def _column(self, column: Any, name: str, start: int) -> Array:
        if column.null_count:
            row = start + int(np.argmax(from_arrow(column.is_null())))
            raise self._missing_value(name, "{row}", row)
        types = self._arrow.types
        if not (types.is_list(column.type) or types.is_large_list(column.type)):
            if types.is_fixed_size_list(column.type):
                return self._rows_of(column, int(column.type.list_size), name)
            return self._flat(column, name)
        lengths = from_arrow(column.value_lengths())
        if (lengths != lengths[0]).any():
            raise self.fail(f"`{name}` must hold lists of one length, got {lengths[0]} and others.")
        return self._rows_of(column, int(lengths[0]), name)

    def _rows_of(self, column: Any, width: int, name: str) -> Array:
        if width == 0:
            raise self.fail(f"`{name}` holds empty lists. There is nothing to score.")
        values = column.flatten()
        self._check_width(name, width * self._row_bytes(values.type))
        if values.null_count and not self.drop_missing:
            raise self._missing_value(name, "a list")
        # Missing values in lists become NaN, which marks rows to leave out.
        numbers = values.to_numpy(zero_copy_only=False) if values.null_count else from_arrow(values)
        return numbers.reshape(-1, width)

    def _flat(self, column: Any, name: str) -> Array:
        types = self._arrow.types
        if types.is_string(column.type) or types.is_large_string(column.type):
            column = column.dictionary_encode()
        if not types.is_dictionary(column.type):
            return from_arrow(column)
        entries = self._entries(column.dictionary, name)
        self._check_width(
            name, entries.itemsize
        )  # the longest text of a column gives every row of it its width
        decoded: Array = entries[from_arrow(column.indices)]
        return decoded

    def _entries(self, dictionary: Any, name: str) -> Array:
        """Return the entries of a dictionary, numbers or text."""
        types = self._arrow.types
        if dictionary.null_count:
            raise self.fail(f"`{name}` has a missing value in its dictionary. Drop or fill such rows.")
        if not (types.is_string(dictionary.type) or types.is_large_string(dictionary.type)):
            return from_arrow(dictionary)
        texts = dictionary.to_pylist()
        if any(len(text) > LONGEST_TEXT for text in texts):
            raise self.fail(f"`{name}` must hold at most {LONGEST_TEXT} characters per row.")
        return as_text(texts, where=f"{self.where}: `{name}`")

    def _missing_value(self, name: str, place: str, row: int | None = None) -> DataError:
        return self.fail(
            f"`{name}` has a missing value in {place}. Drop or fill such rows; {{drop_missing}} leaves them out.",
            row=row,
            arguments={"drop_missing": "True"},
        )

    def _corrupt(self, error: Exception) -> DataError:
        reason = first_line(error, most=160)
        return self.fail(f"is cut off, damaged, or no Parquet file ({reason}). Copy or write it again.")


def write_parquet(path: Path, columns: WrittenColumns, notes: Notes) -> None:
    """Write columns, scores as fixed-size lists, with the notes in the file's own metadata.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.parquet"
        >>> write_parquet(path, {"labels": np.array([0, 1])}, Notes(split="test"))
        >>> ParquetReader(path).notes.split
        'test'
    """
    arrow = require("pyarrow", extra="parquet", purpose="write .parquet files")
    parquet = require("pyarrow.parquet", extra="parquet", purpose="write .parquet files")
    arrays, width = {}, 1
    for name, column in columns.items():
        values = np.ascontiguousarray(column).reshape(-1)
        # From an array, Arrow takes text only up to its first null character.
        flat = arrow.array(values.tolist() if values.dtype.kind == "U" else values)
        if column.ndim == 2:
            width = column.shape[1]
            flat = arrow.FixedSizeListArray.from_arrays(flat, width)
        arrays[name] = flat
    table = arrow.table(arrays)
    text = notes.to_json()
    if text:
        table = table.replace_schema_metadata({_NOTES: text.encode()})
    parquet.write_table(table, path, row_group_size=max(1024, (1 << 22) // width), write_page_checksum=True)


def rewrite_parquet(
    readers: Sequence[ColumnReader], path: Path, scores: NewScores, notes: Notes, *, side: Path
) -> None:
    """Write tables with other scores; the values and types of every other column stay as they are.

    Args:
        readers: The tables, whose rows follow each other; all have the same columns.
        path: Where the table goes.
        scores: The new scores.
        notes: Notes about the table, which go to its metadata.
        side: Not used: the file has a place for its notes.

    Raises:
        DataError: If the tables have different columns.
    """
    arrow = require("pyarrow", extra="parquet", purpose="write .parquet files")
    parquet = require("pyarrow.parquet", extra="parquet", purpose="write .parquet files")
    opened = [_opened_part(reader) for reader in readers]
    first, constants = opened[0]
    constant_types = {name: arrow.array([values[name] for _, values in opened]).type for name in constants}
    names = [*first.schema.names, *constant_types]
    placed = scores.place(names)
    if scores.added is None:
        types = {old: _score_type(arrow, first.schema.field(old).type) for old in scores.old}
    else:
        types = dict.fromkeys(scores.old, arrow.bool_() if scores.added.kind == "b" else arrow.string())
    fields = {
        **{one.name: one for one in first.schema},
        **{name: arrow.field(name, constant_types[name]) for name in constant_types},
    }
    metadata = {**(first.schema.metadata or {}), _NOTES: notes.to_json().encode()}
    schema = arrow.schema(
        [fields[name] if old is None else arrow.field(name, types[old]) for name, old in placed],
        metadata=metadata,
    )
    with parquet.ParquetWriter(
        path, schema, compression=first.compression, write_page_checksum=True
    ) as writer:
        for reader, values in opened:
            if not reader.schema.equals(first.schema) or list(values) != list(constants):
                raise reader.fail(f"its columns differ from those of {first.where}. Pass one file at a time.")
            for part in reader.batches():
                fresh = scores.columns(part.num_rows)
                arrays = {name: part.column(name) for name in part.column_names}
                arrays |= {
                    name: arrow.array([value] * part.num_rows, type=constant_types[name])
                    for name, value in values.items()
                }
                made = [
                    arrays[name]
                    if old is None
                    else _score_array(arrow, fresh[old], types[old])
                    if scores.added is None
                    else arrow.array(fresh[old], type=types[old])
                    for name, old in placed
                ]
                writer.write_table(arrow.Table.from_arrays(made, schema=schema))


def _opened_part(reader: ColumnReader) -> tuple[ParquetReader, Mapping[str, Any]]:
    """Return the file of a reader, and what the names of its folders say of all its rows."""
    inner, constants = getattr(reader, "inner", reader), getattr(reader, "constants", {})
    assert isinstance(inner, ParquetReader)
    return inner, constants


def _score_type(arrow: Any, kind: Any) -> Any:
    """Return the type of new scores: that of the old ones, or double precision for integers."""
    types = arrow.types
    if types.is_fixed_size_list(kind):
        return arrow.list_(_score_type(arrow, kind.value_type), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        inner = _score_type(arrow, kind.value_type)
        return arrow.large_list(inner) if types.is_large_list(kind) else arrow.list_(inner)
    return kind if types.is_floating(kind) else arrow.float64()


def _score_array(arrow: Any, values: Array, kind: Any) -> Any:
    types = arrow.types
    if values.ndim == 1 and not (
        types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    ):
        return arrow.array(values.astype(kind.to_pandas_dtype()), type=kind)
    rows = values.reshape(len(values), -1)
    flat = arrow.array(rows.reshape(-1).astype(kind.value_type.to_pandas_dtype()), type=kind.value_type)
    if types.is_fixed_size_list(kind):
        return arrow.FixedSizeListArray.from_arrays(flat, type=kind)
    maker = arrow.LargeListArray if types.is_large_list(kind) else arrow.ListArray
    return maker.from_arrays(np.arange(len(rows) + 1) * rows.shape[1], flat, type=kind)
