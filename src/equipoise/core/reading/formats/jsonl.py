"""JSON Lines: an object per line, read line by line in bounded memory, every error with its line and key."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import ColumnReader, NewScores, Reading, WrittenColumns
from equipoise.core.reading.formats.cells import Cells, is_integer, unusual_types
from equipoise.core.reading.formats.immutable_file import ImmutableFile
from equipoise.core.reading.formats.notes import Notes
from equipoise.core.reading.formats.text import ARROW_BLOCK, LONGEST_LINE, MOST_CELLS, TextReader
from equipoise.core.reading.storage import File
from equipoise.kernels.threads import n_threads

__all__ = ["JsonlReader", "rewrite_jsonl", "write_jsonl"]

#: The key under which the first object of a file written here holds the notes.
NOTES = "equipoise"

#: Hashes of rows that a calibrator was fitted on, of which the notes keep a sample.
_MOST_ROWS = 4096
#: Bytes at the start of a file that tell which keys there are.
_LOOKED_AT = 1 << 18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JsonlReader(TextReader[dict[str, Any]]):
    """The keys of the objects in a file, one object per line; the first lines tell which keys there are.

    A value is a number, a text, true, false or null, or a list of numbers, as scores of all classes are. Keys that are
    not read may hold anything.
    """

    def __init__(self, path: File, max_bytes: int | None = None) -> None:
        file, self._path = ImmutableFile(path), path
        self.where, self.size, self.max_bytes = path.name, file.length, max_bytes
        self._stream = io.BufferedReader(file, 1 << 17)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        first = self._first_values()
        if not first:
            raise self.fail('is empty. Every line must hold an object, such as {"confidence": 0.9, ...}.')
        self.row_shapes = {
            name: (len(value),) if isinstance(value, list) else ()
            for name, value in first.items()
            if name != NOTES
        }
        self.n_columns = sum(
            shape[0] if shape else 1 for shape in self.row_shapes.values() if shape is not None
        )
        self._outcomes = {name for name, value in first.items() if isinstance(value, bool)}
        notes = first.get(NOTES)
        if notes is not None and not isinstance(notes, dict):
            raise self.fail(f"the notes under `{NOTES}` must be an object. Remove them.")
        self.read_notes(self._path, json.dumps(notes) if notes else None)

    def _first_values(self) -> dict[str, Any]:
        """Return the first value of every key of the first lines; a null is a value only if nothing else follows."""
        first: dict[str, Any] = {}
        for _, record in self.records():
            first |= {name: value for name, value in record.items() if first.get(name) is None}
            if self._stream.tell() > _LOOKED_AT:
                break
        return first

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def is_text(self, name: str) -> bool:
        """Say whether the first value of a key is text that is not a whole number."""
        if self.row_shapes[name] or name in self._outcomes:
            return False
        return not is_integer(self.first_cell(name))

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of each line and its object; empty lines are skipped."""
        self._stream.seek(0)
        number = 0
        while raw := self._stream.readline(LONGEST_LINE):
            number += 1
            if number == 1:
                raw = raw.removeprefix(_BYTE_ORDER_MARK)
            if raw.strip():
                yield number, self._object(raw, number)

    def _object(self, raw: bytes, number: int) -> dict[str, Any]:
        if len(raw) >= LONGEST_LINE and not raw.endswith(b"\n"):
            raise self.fail(
                f"line {number} is longer than {LONGEST_LINE} bytes. Is this a file of JSON lines?"
            )
        try:
            found = json.loads(raw, object_pairs_hook=_without_repeats)
        except UnicodeDecodeError:
            raise self.fail(f"line {number} is not UTF-8 text. Save the file as UTF-8.") from None
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]
            raise self.fail(f"line {number} cannot be read as JSON ({reason}).") from None
        if not isinstance(found, dict):
            raise self.fail(
                f'line {number} must hold an object such as {{"confidence": 0.9, ...}}, got {type(found).__name__}.'
            )
        return found

    def arrow_batches(self, readings: Mapping[str, Reading]) -> Iterator[Any]:
        """Yield the keys as record batches of Arrow."""
        import pyarrow
        import pyarrow.json

        if not hasattr(pyarrow.json, "open_json"):  # before version 20
            raise ImportError("pyarrow.json.open_json")
        types = {name: self._arrow_type(pyarrow, name, reading) for name, reading in readings.items()}
        self._stream.seek(0)
        reader = pyarrow.json.open_json(
            pyarrow.PythonFile(self._stream, mode="r"),
            pyarrow.json.ReadOptions(use_threads=n_threads() > 1, block_size=ARROW_BLOCK),
            pyarrow.json.ParseOptions(
                explicit_schema=pyarrow.schema(list(types.items())), unexpected_field_behavior="ignore"
            ),
        )
        yield from reader

    def _arrow_type(self, arrow: Any, name: str, reading: Reading) -> Any:
        if self.row_shapes[name]:
            return arrow.list_(arrow.float64())
        kinds = {"number": "float64", "label": "int64", "correct": "bool_", "hash": "uint64"}
        return getattr(arrow, kinds.get(reading, "string"))()

    def cells(self, lines: list[int]) -> Cells:
        """Return an empty block of columns."""
        return Cells(self.where, lines, percent=self.percent, empty="null or nothing", column="key")

    def pruned(self, record: dict[str, Any], readings: Mapping[str, Reading]) -> dict[str, Any]:
        """Return the values that are read; others, such as a prompt, may be long."""
        return {name: record.get(name) for name in readings}

    def cell(self, record: dict[str, Any], name: str) -> str:
        """Return a value as text; null and a missing key are empty."""
        value = record.get(name)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return repr(value)
        return json.dumps(value)[:60]

    def is_missing(self, record: dict[str, Any], name: str, reading: Reading) -> bool:
        """Say whether an object lacks a value, or one of a list."""
        value = record.get(name)
        if isinstance(value, list):
            return any(one is None or (isinstance(one, float) and math.isnan(one)) for one in value)
        return super().is_missing(record, name, reading)

    def add_column(self, block: Cells, name: str, records: list[dict[str, Any]], reading: Reading) -> None:
        """Add the values of a key, lists of numbers as rows of an array."""
        if not self.row_shapes[name]:
            if reading == "label":  # true and false are classes 1 and 0, as in arrays
                records = [
                    {name: int(record[name])} if isinstance(record.get(name), bool) else record
                    for record in records
                ]
            super().add_column(block, name, records, reading)
            return
        values = [record.get(name) for record in records]
        width = self.row_shapes[name]
        for line, value in zip(block.lines.tolist(), values, strict=True):
            if not isinstance(value, list) or (len(value),) != width:
                got = f"a list of {len(value)}" if isinstance(value, list) else _called(value)
                raise self.fail(
                    f"line {line}, key {name!r} must hold a list of {(width or (0,))[0]} numbers, got {got}."
                )
            bad = next(
                (one for one in value if isinstance(one, bool) or not isinstance(one, int | float)), None
            )
            if bad is not None or None in value:
                raise self.fail(
                    f"line {line}, key {name!r} must hold a list of numbers, got {_called(bad)} in it."
                )
        try:
            rows = np.array(values, dtype=np.float64)
            block.columns[name] = rows.astype(np.float32) if self.dtype(name) == "<f4" else rows
        except OverflowError:
            raise self.fail(f"key {name!r} holds a number that is too large.") from None


def _called(value: Any) -> str:
    return "null or nothing" if value is None else json.dumps(value)[:40]


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:60]!r} occurs twice")
    return found


def rewrite_jsonl(
    readers: Sequence[ColumnReader], path: Path, scores: NewScores, notes: Notes, *, side: Path
) -> None:
    """Write objects with other scores; every other key and the order stay as they are.

    Args:
        readers: The tables, whose rows follow each other.
        path: Where the objects go.
        scores: The new scores.
        notes: Notes about the table.
        side: Where the notes go.
    """
    names = dict(zip(scores.old, scores.new, strict=True))
    dtypes: dict[str, Any] = {}
    with path.open("w", encoding="utf-8", newline="") as stream:
        for reader in readers:
            assert isinstance(reader, JsonlReader)
            scores.place(list(reader.row_shapes))
            dtypes = dtypes or {name: dtype for name, dtype in reader.dtypes.items() if name not in names}
            records = reader.records()
            while block := list(islice(records, max(1, MOST_CELLS // max(1, reader.n_columns)))):
                fresh = {name: column.tolist() for name, column in scores.columns(len(block)).items()}
                for row, (_, record) in enumerate(block):
                    new = {names[old]: values[row] for old, values in fresh.items()}
                    made = {
                        key: value
                        for name, old_value in record.items()
                        if name != NOTES
                        for key, value in (
                            [(names[name], new[names[name]])]
                            if name in names and not scores.keep_old
                            else [(name, old_value)]
                        )
                    }
                    stream.write(json.dumps(made | new, ensure_ascii=False) + "\n")
    side.write_text(notes.to_json({"dtypes": dtypes}), encoding="utf-8")


def write_jsonl(path: Path, columns: WrittenColumns, notes: Notes, *, side: Path | None = None) -> None:
    r"""Write an object per row that reads back to the same numbers; the first also holds the notes.

    Args:
        path: Where to.
        columns: The columns; those of several numbers per row become lists.
        notes: Notes about the table.
        side: Where the notes go; by default into the first object.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.jsonl"
        >>> write_jsonl(path, {"probs": np.array([[0.25, 0.75]]), "labels": np.array([1])}, Notes())
        >>> path.read_text()
        '{"probs": [0.25, 0.75], "labels": 1}\n'
    """
    if NOTES in columns:
        raise DataError(
            f"{path.name}: a column is called {NOTES!r}, under which files hold their notes. Rename it."
        )
    if notes.fitted_on is not None and side is None:
        notes = replace(notes, fitted_on=notes.fitted_on.sketch(_MOST_ROWS))
    text = notes.to_json({"dtypes": unusual_types(columns)})
    if side is not None:
        side.write_text(text, encoding="utf-8")
        text = ""
    length = len(next(iter(columns.values())))
    step = max(1, MOST_CELLS // max(1, sum(int(np.prod(column.shape[1:])) for column in columns.values())))
    with path.open("w", encoding="utf-8", newline="") as stream:
        for start in range(0, length, step):
            parts = [column[start : start + step].tolist() for column in columns.values()]
            for place, values in enumerate(zip(*parts, strict=True)):
                row: dict[str, Any] = dict(zip(columns, values, strict=True))
                if text and start + place == 0:
                    row[NOTES] = json.loads(text)
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
