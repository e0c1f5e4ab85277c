"""CSV files: read line by line in bounded memory, every complaint with its line."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import WrittenColumns
from equipoise.core.reading.formats.cells import Cells, is_integer, unusual_types
from equipoise.core.reading.formats.notes import Notes, parse
from equipoise.core.reading.formats.steady_file import SteadyFile
from equipoise.core.reading.formats.text_rows import LONGEST_LINE, MOST_CELLS, TextReader
from equipoise.core.reading.storage import File

__all__ = ["NOTES", "CsvReader", "write_csv", "write_tsv"]

#: The column whose first cell holds the notes of a file written here.
NOTES = "equipoise"

_LONGEST_CELL = 131_072

#: A cell has room for so many hashes of rows that a calibrator was fitted on.
_MOST_ROWS = 4096

#: A cell in quotes, in which a delimiter is text.
_QUOTED = re.compile(r'"[^"]*"')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CsvReader(TextReader[list[str]]):
    """The columns of a CSV file with a header; comma, semicolon or tab, as the header shows."""

    def __init__(self, path: File, max_bytes: int | None = None) -> None:
        file = SteadyFile(path)
        self._delimiters = "\t,;" if path.suffix.lower() == ".tsv" else ",\t;"
        self.where, self.size, self.max_bytes = path.name, file.length, max_bytes
        self._stream = io.BufferedReader(file, 1 << 17)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        self._marks: set[str] = set()
        self._delimiter, self._names = self._header(self._stream)
        self._position = {name: place for place, name in enumerate(self._names)}
        first = next(self._records(self._stream), (0, None))[1]
        if first is None:
            raise self.fail("holds a header and no rows. There is nothing to score.")
        self.n_columns = len(self._names)
        self.row_shapes = {name: () for name in self._names if name != NOTES}
        text = self.cell(first, NOTES) if NOTES in self._position else ""
        self.notes = Notes.from_json(text, where=self.where)
        dtypes = parse(text, where=self.where).get("dtypes")
        self._dtypes = dtypes if isinstance(dtypes, dict) else {}

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def is_text(self, name: str) -> bool:
        """Say whether the first cell of a column is not a whole number."""
        return not is_integer(self.first_cell(name))

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of each line and its cells."""
        self._stream.seek(0)
        self._header(self._stream)
        return self._records(self._stream)

    def cell(self, record: list[str], name: str) -> str:
        """Return a cell of a line."""
        return record[self._position[name]]

    def cells(self, lines: list[int]) -> Cells:
        """Return an empty block; commas are decimal marks where they do not separate cells."""
        marks = None if self._delimiter == "," else self._marks
        return Cells(self.where, lines, marks=marks, percent=self.percent)

    def dtype(self, name: str) -> Any:
        """Return the type a column had before it was written, if the file tells."""
        return self._dtypes.get(name)

    def _header(self, stream: BinaryIO) -> tuple[str, list[str]]:
        raw = stream.readline(LONGEST_LINE)
        text = self._decoded(raw.removeprefix(_BYTE_ORDER_MARK), 1)
        if not text.strip():
            raise self.fail("is empty, or its first line is. The first line must name the columns.")
        unquoted = _QUOTED.sub("", text)
        delimiter = next((sign for sign in self._delimiters if sign in unquoted), ",")
        try:
            names = next(csv.reader([text], delimiter=delimiter, strict=True))
        except csv.Error as error:
            raise self.fail(f"line 1 cannot be read as column names ({error}).") from None
        if all(_is_number(name) for name in names):
            raise self.fail(
                "line 1 holds numbers, not names. Put a header such as true_label,pred_label,confidence."
            )
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise self.fail(
                f"line 1 names the column {repeated[0][:60]!r} twice. Give every column its own name."
            )
        return delimiter, names

    def _records(self, stream: BinaryIO) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(self._lines(stream), delimiter=self._delimiter, strict=True)
        width = len(self._names)
        while True:
            try:
                record = next(reader, None)
            except csv.Error as error:
                raise self.fail(f"line {reader.line_num + 1} cannot be read ({error}).") from None
            if record is None:
                return
            line = reader.line_num + 1
            if len(record) == width:
                yield line, record
            elif record:
                raise self.fail(f"line {line} has {len(record)} cells, the header names {width} columns.")

    def _lines(self, stream: BinaryIO) -> Iterator[str]:
        number = 1
        while raw := stream.readline(LONGEST_LINE):
            number += 1
            yield self._decoded(raw, number)

    def _decoded(self, raw: bytes, number: int) -> str:
        if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
            raise self.fail(f"line {number} is longer than {LONGEST_LINE} bytes. Is this a CSV file?")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.fail(f"line {number} is not UTF-8 text. Save the file as UTF-8.") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def write_csv(path: Path, columns: WrittenColumns, notes: Notes, *, delimiter: str = ",") -> None:
    """Write columns as text that reads back to the same numbers, and notes into a column of their own.

    Scores of several classes become one column per class, named after the classes where that is unambiguous.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.csv"
        >>> write_csv(path, {"probs": np.array([[0.25, 0.75]]), "labels": np.array([1])}, Notes())
        >>> path.read_text().split()
        ['prob_0,prob_1,labels', '0.25,0.75,1']
    """
    if notes.fitted_on is not None:
        notes = replace(notes, fitted_on=notes.fitted_on.sketch(_MOST_ROWS))
    flat, kept = _one_column_each(columns, notes)
    text = kept.to_json({"dtypes": unusual_types(flat)})
    if len(text) > _LONGEST_CELL // 2:
        raise DataError(
            f"{path.name}: one cell has no room for {len(text)} letters of class names and types. Write .npz."
        )
    length = len(next(iter(flat.values())))
    step = max(1, MOST_CELLS // (len(flat) + 1))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator=_line_end(flat))
        writer.writerow([*flat, NOTES] if text else flat)
        for start in range(0, length, step):
            cells = [column[start : start + step].astype(np.str_).tolist() for column in flat.values()]
            if text:
                cells.append([text if start == 0 else "", *[""] * (len(cells[0]) - 1)])
            writer.writerows(zip(*cells, strict=True))


def _line_end(columns: Mapping[str, Array]) -> str:
    """Return how lines end; csv puts a lone carriage return into quotes only if it belongs to the ending."""
    texts = [column for column in columns.values() if column.dtype.kind == "U"]
    return "\r\n" if any((np.char.find(column, "\r") >= 0).any() for column in texts) else "\n"


def _one_column_each(columns: WrittenColumns, notes: Notes) -> tuple[dict[str, Array], Notes]:
    flat: dict[str, Array] = {}
    for name, column in columns.items():
        if column.ndim == 1:
            flat[name] = column
            continue
        names, named = notes.class_names, _can_be_suffixes(notes.class_names)
        for number in range(column.shape[1]):
            suffix = names[number] if names and named else number
            flat[f"{name.removesuffix('s')}_{suffix}"] = column[:, number]
        if named:
            notes = Notes(None, notes.split, None, notes.fitted_on)
    return flat, notes


def _can_be_suffixes(names: tuple[str, ...] | None) -> bool:
    if names is None or len({name.strip().lower() for name in names}) < len(names):
        return False
    return all(
        name == name.strip() and name.isprintable() and name and not _is_number(name) for name in names
    )


def write_tsv(path: Path, columns: WrittenColumns, notes: Notes) -> None:
    """Write like :func:`write_csv`, with tabs.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.tsv"
        >>> write_tsv(path, {"labels": np.array([1])}, Notes())
        >>> path.read_text().splitlines()[0]
        'labels'
    """
    write_csv(path, columns, notes, delimiter="\t")
