"""CSV files: read line by line in bounded memory, every complaint with its line."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.reading.formats.base import ColumnReader, NewScores, Reading, WrittenColumns
from equipoise.core.reading.formats.cells import Cells, is_integer, unusual_types
from equipoise.core.reading.formats.immutable_file import ImmutableFile
from equipoise.core.reading.formats.notes import Notes
from equipoise.core.reading.formats.text import ARROW_BLOCK, LONGEST_LINE, MOST_CELLS, TextReader
from equipoise.core.reading.storage import File
from equipoise.kernels.threads import n_threads

__all__ = ["NOTES", "CsvReader", "rewrite_csv", "write_csv", "write_tsv"]

#: The column whose first cell holds the notes of a file written here.
NOTES = "equipoise"

_LONGEST_CELL = 131_072

#: The number of hashes that a cell holds, of rows that a calibrator was fitted on.
_MOST_ROWS = 4096

#: A cell in quotes, in which a delimiter is text.
_QUOTED = re.compile(r'"[^"]*"')
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: What Arrow, which compares exactly, takes for a missing value, for true and for false; other spellings are left to
#: the reader of single lines.
_ARROW_MISSING = [
    "",
    "nan",
    "NaN",
    "NAN",
    "na",
    "NA",
    "n/a",
    "N/A",
    "null",
    "NULL",
    "Null",
    "none",
    "None",
    "NONE",
]
_ARROW_TRUE = ["true", "True", "TRUE", "1", "1.0"]
_ARROW_FALSE = ["false", "False", "FALSE", "0", "0.0"]


class CsvReader(TextReader[list[str]]):
    """The columns of a CSV file with a header; comma, semicolon or tab, as the header shows."""

    def __init__(self, path: File, max_bytes: int | None = None) -> None:
        file = ImmutableFile(path)
        self._path = path
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
        self.read_notes(self._path, self.cell(first, NOTES) if NOTES in self._position else None)

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    @property
    def names(self) -> list[str]:
        """The columns in order, that of the notes included."""
        return self._names

    @property
    def delimiter(self) -> str:
        """What separates the cells."""
        return self._delimiter

    def delimiter_for(self, path: Path) -> str:
        """Return what separates the cells of a table made from this one: the same, unless the ending differs."""
        ending = path.suffix.lower()
        return self._delimiter if ending == self._path.suffix.lower() else "\t" if ending == ".tsv" else ","

    def plain(self, cell: str) -> str:
        """Return the content of a cell as it is written."""
        return next(csv.reader([cell], delimiter=self._delimiter), [""])[0] if '"' in cell else cell

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

    def arrow_batches(self, readings: Mapping[str, Reading]) -> Iterator[Any]:
        """Yield the columns as record batches of Arrow."""
        import pyarrow
        import pyarrow.csv

        first = next(self.records())[1]
        numbers = [self.cell(first, name) for name, reading in readings.items() if reading == "number"]
        decimal = "," if self._delimiter != "," and any("," in cell for cell in numbers) else "."
        types = {name: _arrow_type(reading, self.cell(first, name)) for name, reading in readings.items()}
        self._stream.seek(0)
        reader = pyarrow.csv.open_csv(
            pyarrow.PythonFile(self._stream, mode="r"),
            pyarrow.csv.ReadOptions(
                use_threads=n_threads() > 1, block_size=ARROW_BLOCK, column_names=self._names, skip_rows=1
            ),
            pyarrow.csv.ParseOptions(delimiter=self._delimiter),
            pyarrow.csv.ConvertOptions(
                column_types={name: getattr(pyarrow, kind)() for name, kind in types.items()},
                include_columns=list(readings),
                null_values=_ARROW_MISSING if self.drop_missing else [],
                true_values=_ARROW_TRUE,
                false_values=_ARROW_FALSE,
                decimal_point=decimal,
            ),
        )
        yield from reader

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

    def raw_records(self) -> Iterator[tuple[list[str], str]]:
        """Yield every row as its cells are written, quotes included, and how its line ends; the header is first."""
        self._stream.seek(0)
        raw = self._decoded(self._stream.readline(LONGEST_LINE), 1)
        mark = _BYTE_ORDER_MARK.decode()
        cells, end = self._raw_cells(raw.removeprefix(mark), self._names)
        yield [mark + cells[0] if raw.startswith(mark) else cells[0], *cells[1:]], end
        seen: list[str] = []
        for _, record in self._records(self._stream, seen):
            # Lines without a cell are no rows.
            yield self._raw_cells("".join(seen).lstrip("\r\n"), record)
            seen.clear()

    def _raw_cells(self, raw: str, record: list[str]) -> tuple[list[str], str]:
        text = raw.rstrip("\r\n")
        end = raw[len(text) :]
        if '"' not in text:
            found = text.split(self._delimiter)
        else:
            sign = re.escape(self._delimiter)
            found = re.findall(rf'((?:"(?:[^"]|"")*"|[^"{sign}][^{sign}]*|))(?:{sign}|$(?!\n))', text)[
                : len(record)
            ]
        rejoined = self._delimiter.join(found) == text
        return (found if rejoined and len(found) == len(record) else self._quoted(record)), end

    def _quoted(self, record: list[str]) -> list[str]:
        return [_quoted_cell(cell, self._delimiter) for cell in record]

    def _records(self, stream: BinaryIO, seen: list[str] | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield rows with their lines; ``seen`` gets the lines of each as they are written."""
        lines = self._lines(stream)
        if seen is not None:
            lines = (seen.append(line) or line for line in lines)  # type: ignore[func-returns-value]
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
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


def _arrow_type(reading: Reading, first: str) -> str:
    """Return the type in which Arrow reads a column; class numbers may be written as pandas writes floats."""
    if reading == "label":
        return "float64" if "." in first else "int64"
    return {"number": "float64", "correct": "bool_", "hash": "uint64"}.get(reading, "string")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _quoted_cell(cell: str, delimiter: str) -> str:
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if any(sign in cell for sign in f'"\r\n{delimiter}') else cell


def rewrite_csv(
    readers: Sequence[ColumnReader], path: Path, scores: NewScores, notes: Notes, *, side: Path
) -> None:
    """Write tables with other scores; every other cell, the quotes, the line ends and the order stay as they are.

    Args:
        readers: The tables, whose rows follow each other; all have the same columns.
        path: Where the table goes; by its ending cells are separated by commas or by tabs if those of the first
            table are not separated by what its own ending says.
        scores: The new scores.
        notes: Notes about the table.
        side: Where the notes go.

    Raises:
        DataError: If the tables have different columns.
    """
    first = _as_csv(readers[0])
    placed = scores.place([name for name in first.names if name != NOTES])
    delimiter = first.delimiter_for(path)
    dtypes = {name: dtype for name, dtype in first.dtypes.items() if name in dict(placed)}
    with path.open("w", encoding="utf-8", newline="") as stream:
        for place, one in enumerate(map(_as_csv, readers)):
            if one.names != first.names:
                raise one.fail(f"its columns differ from those of {first.where}. Pass one file at a time.")
            _rewrite_rows(stream, one, scores, placed, delimiter=delimiter, header=not place)
    side.write_text(notes.to_json({"dtypes": dtypes}), encoding="utf-8")


def _rewrite_rows(
    stream: TextIO,
    reader: CsvReader,
    scores: NewScores,
    placed: Sequence[tuple[str, str | None]],
    *,
    delimiter: str,
    header: bool,
) -> None:
    position = {name: place for place, name in enumerate(reader.names)}
    records = reader.raw_records()
    cells, line_end = next(records)
    line_end = line_end or "\n"
    if header:
        named = [
            cells[position[name]] if old is None else _quoted_cell(name, delimiter) for name, old in placed
        ]
        if cells[0].startswith(_BYTE_ORDER_MARK.decode()) and placed[0][1] is not None:
            named[0] = _BYTE_ORDER_MARK.decode() + named[0]
        stream.write(delimiter.join(named) + line_end)
    kept = [None if old is not None else position[name] for name, old in placed]
    same, raw_scores = delimiter == reader.delimiter, [position[name] for name in scores.old]
    has_commas = False
    while block := list(islice(records, max(1, MOST_CELLS // len(placed)))):
        fresh = {name: column.astype(np.str_).tolist() for name, column in scores.columns(len(block)).items()}
        if scores.added is not None:
            fresh = {name: [_quoted_cell(cell, delimiter) for cell in cells] for name, cells in fresh.items()}
        elif same and delimiter != ",":  # the decimal mark of the file stays
            has_commas = has_commas or any(
                "," in written[place] for written, _ in block for place in raw_scores
            )
            if has_commas:
                fresh = {name: [cell.replace(".", ",") for cell in cells] for name, cells in fresh.items()}
        for row, (written, _) in enumerate(block):
            record = written if same else [_quoted_cell(reader.plain(cell), delimiter) for cell in written]
            parts = [
                fresh[str(old)][row] if place is None else record[place]
                for place, (_, old) in zip(kept, placed, strict=True)
            ]
            stream.write(delimiter.join(parts) + line_end)


def _as_csv(reader: ColumnReader) -> CsvReader:
    assert isinstance(reader, CsvReader)
    return reader


def write_csv(
    path: Path, columns: WrittenColumns, notes: Notes, *, delimiter: str = ",", side: Path | None = None
) -> None:
    """Write columns as text that reads back to the same numbers, and notes into a column of their own.

    Scores of several classes become one column per class, named after the classes where that is unambiguous.

    Args:
        path: Where the table goes.
        columns: Its columns.
        notes: Notes about it.
        delimiter: What separates cells.
        side: Where the notes go, if not into a column.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.csv"
        >>> write_csv(path, {"probs": np.array([[0.25, 0.75]]), "labels": np.array([1])}, Notes())
        >>> path.read_text().split()
        ['prob_0,prob_1,labels', '0.25,0.75,1']
    """
    if notes.fitted_on is not None and side is None:
        notes = replace(notes, fitted_on=notes.fitted_on.sketch(_MOST_ROWS))
    flat, kept = _one_column_each(columns, notes)
    text = kept.to_json({"dtypes": unusual_types(flat)})
    if side is not None:
        side.write_text(text, encoding="utf-8")
        text = ""
    if len(text) > _LONGEST_CELL // 2:
        raise DataError(
            f"{path.name}: one cell cannot hold {len(text)} letters of class names and types. Write .npz."
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
        suffixes = [names[number] if names and named else number for number in range(column.shape[1])]
        parts = [f"{name.removesuffix('s')}_{suffix}" for suffix in suffixes]
        flat |= {part: column[:, number] for number, part in enumerate(parts)}
        if named and not notes.has_originals:
            notes = replace(notes, class_names=None, n_classes=None)
        if notes.calibrated == (name,):
            notes = replace(notes, calibrated=tuple(parts))
    return flat, notes


def _can_be_suffixes(names: tuple[str, ...] | None) -> bool:
    if names is None or len({name.strip().lower() for name in names}) < len(names):
        return False
    return all(
        name == name.strip() and name.isprintable() and name and not _is_number(name) for name in names
    )


def write_tsv(path: Path, columns: WrittenColumns, notes: Notes, *, side: Path | None = None) -> None:
    """Write like :func:`write_csv`, with tabs.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.tsv"
        >>> write_tsv(path, {"labels": np.array([1])}, Notes())
        >>> path.read_text().splitlines()[0]
        'labels'
    """
    write_csv(path, columns, notes, delimiter="\t", side=side)
