"""What every format gives: the named columns of one file, read in order, some rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.bins import Precision
from equipoise.core.errors import DataError, EquipoiseError
from equipoise.core.reading.formats.immutable_file import check_growth
from equipoise.core.reading.formats.notes import Notes

__all__ = [
    "LONGEST_TEXT",
    "ArrayReader",
    "Chunk",
    "ColumnReader",
    "NewScores",
    "Reading",
    "WrittenColumns",
    "as_text",
    "from_arrow",
    "stored_as",
]

#: How a column is meant: "label" is a class number, "name" a class name, "correct" true or false. Formats
#: with types of their own need not
#: care; CSV does.
Reading: TypeAlias = Literal["number", "label", "name", "text", "group", "hash", "correct"]

#: What a writer is given: columns of one length, by name.
WrittenColumns: TypeAlias = Mapping[str, Array]

#: Characters of a text: NumPy stores every text of a column at the length of the longest.
LONGEST_TEXT = 256

#: About the number of elements in a chunk, if the caller asks for no number of rows.
_ELEMENTS = 1 << 22
_ROWS = 1 << 18


def as_text(texts: Sequence[str], *, where: str) -> Array:
    r"""Return texts as an array that gives each of them back as it was.

    NumPy drops null characters at the end of a text, so that two texts of a file could become one.

    Args:
        texts: One or more texts.
        where: Prefix of error messages.

    Raises:
        DataError: If a text ends in a null character.

    Example:
        >>> as_text(["a", "a\0b"], where="doc").tolist()
        ['a', 'a\x00b']
    """
    if any(text.endswith("\0") for text in texts):
        raise DataError(
            f"{where} holds text that ends in a null character, which arrays cannot keep. Remove it."
        )
    return np.array(texts, dtype=np.str_)


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file.

    Attributes:
        columns: An array per name; empty if all rows were left out.
        start: The number of the first row in its file.
        rows: The number of each row in its file, if rows were left out.
        n_dropped: How many rows were left out because of a missing value.
        line_of: Returns the line of a row by its number in the file, for text files.
    """

    columns: Mapping[str, Any]
    start: int
    rows: Array | None = None
    n_dropped: int = 0
    line_of: Callable[[int], int] | None = None

    def locate(self, error: EquipoiseError, row: int) -> EquipoiseError:
        """Return an error about a row of the chunk with the place of that row in the file."""
        number = self.start + row if self.rows is None else int(self.rows[row])
        return error.at(row=number, line=None if self.line_of is None else self.line_of(number))


@dataclass(frozen=True)
class NewScores:
    """Scores that replace those of a table, or join them.

    Attributes:
        old: The columns of scores in the table: one array, or one column per class.
        new: What each of them is called afterwards.
        keep_old: Whether the old columns stay; the new ones then follow all others.
        take: Gives the next rows: ``(n,)`` for one column, ``(n, k)`` for a column per class, otherwise the shape
            of the old array.
        added: Type of a column that is no score but something said about each row, ``(n,)``; None for scores.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    keep_old: bool
    take: Callable[[int], Array]
    added: np.dtype[Any] | None = None

    def columns(self, n_rows: int) -> dict[str, Array]:
        """Return the next rows of each old column."""
        values = self.take(n_rows)
        if len(self.old) == 1:
            return {self.old[0]: values}
        return {name: values[:, place] for place, name in enumerate(self.old)}

    def place(self, names: Sequence[str]) -> list[tuple[str, str | None]]:
        """Return the columns of the new table in order: the name, and the old column whose new scores it holds.

        Raises:
            DataError: If two columns would have one name.
        """
        renamed = dict(zip(self.old, self.new, strict=True))
        kept = [name for name in names if self.keep_old or name not in renamed]
        twice = [name for name in self.new if name in kept]
        if twice:
            raise DataError(
                f"the table has a column {twice[0][:60]!r} already, which a new column would be called. "
                "Rename or drop it, or choose another suffix."
            )
        if self.keep_old:
            return [(name, None) for name in names] + [(new, old) for old, new in renamed.items()]
        return [(renamed.get(name, name), name if name in renamed else None) for name in names]


def from_arrow(values: Any) -> Array:
    """Return an array of Arrow, without missing values, as one of NumPy.

    Arrow's own conversion imports pandas where that is installed, which takes longer than reading a file.

    Example:
        >>> import pyarrow
        >>> from_arrow(pyarrow.array([True, False])), from_arrow(pyarrow.array([1, 2]))
        (array([ True, False]), array([1, 2]))
    """
    if str(values.type) == "bool":
        return np.from_dlpack(values.cast("uint8")).view(np.bool_)
    return np.from_dlpack(values)


def stored_as(values: Array, dtype: Any) -> Array:
    """Return scores in the type that a table stores them in, or in float64 if that is no floating-point type.

    Example:
        >>> stored_as(np.array([0.5]), np.dtype(np.float32)).dtype, stored_as(np.array([0.5]), np.dtype(int)).dtype
        (dtype('float32'), dtype('float64'))
    """
    kind = np.dtype(dtype)
    return values.astype(kind if kind.kind == "f" else np.float64, copy=False)


class ColumnReader(ABC):
    """The columns of one file.

    Attributes:
        where: The file's name, for messages.
        row_shapes: For every column the shape of one row: ``()`` for one value, ``(k,)`` for scores of k classes;
            None where only reading tells.
        notes: What the file says about itself.
    """

    #: Arrays that say something about the whole file, and are no columns.
    note_names: Collection[str] = ()

    where: str
    row_shapes: Mapping[str, tuple[int, ...] | None]
    notes: Notes

    #: Bytes on the disk, and how many of memory the caller allows.
    size: int
    max_bytes: int | None

    #: Whether rows with missing values are left out, and whether numbers may be followed by a percent sign.
    drop_missing: bool = False
    percent: bool = False

    @abstractmethod
    def chunks(self, readings: Mapping[str, Reading], *, n_rows: int | None) -> Iterator[Chunk]:
        """Yield the rows of some columns in order, at most ``n_rows`` at a time, or all at once for None."""

    @abstractmethod
    def is_text(self, name: str) -> bool:
        """Say whether a column holds text; in a file without types, whether its first cell is no integer."""

    def precision(self, name: str) -> Precision | None:
        """Return the precision in which the numbers of a column are stored, if they are given in another type."""
        del name
        return None

    def close(self) -> None:  # noqa: B027 - not every table keeps its file open
        """Let go of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def chunk_rows(self, names: Mapping[str, Reading]) -> int:
        """Return how many rows make a chunk of moderate size."""
        shapes = [self.row_shapes[name] for name in names]
        width = sum(128 if shape is None else prod(shape) for shape in shapes)
        width += sum(32 for name in names if self.is_text(name))
        return min(_ROWS, max(1, _ELEMENTS // max(1, width)))

    def check_growth(self, grown: int) -> None:
        """Raise if the requested columns would take more memory than is allowed."""
        check_growth(grown, size=self.size, max_bytes=self.max_bytes, where=self.where)

    def fail(
        self,
        message: str,
        *,
        row: int | None = None,
        line: int | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> DataError:
        """Return an error about this file, for the caller to raise."""
        return DataError(message, where=self.where, row=row, line=line, arguments=arguments)


class ArrayHeader(Protocol):
    """What a file says about one of its arrays."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    @property
    def n_bytes(self) -> int:
        """The bytes of its numbers."""


class ArrayReader(ColumnReader):
    """Columns that are arrays of known shape."""

    def __init__(
        self, where: str, arrays: Mapping[str, ArrayHeader], *, size: int, max_bytes: int | None
    ) -> None:
        self.where, self.size, self.max_bytes = where, size, max_bytes
        self.notes = Notes()
        self._shapes = {name: header.shape for name, header in arrays.items()}
        self._n_bytes = {name: header.n_bytes for name, header in arrays.items()}
        self.row_shapes = {name: shape[1:] for name, shape in self._shapes.items()}

    @abstractmethod
    def rows_of(self, name: str) -> Callable[[int, int], Any]:
        """Return a function that gives the rows from start to stop; it is called in order."""

    def chunks(self, readings: Mapping[str, Reading], *, n_rows: int | None) -> Iterator[Chunk]:
        """Yield the rows of some columns in order."""
        self.check_growth(sum(self._n_bytes[name] for name in readings))
        length = self._length(list(readings))
        step = length if n_rows is None else n_rows
        readers = {name: self.rows_of(name) for name in readings}
        for start in range(0, length, step):
            stop = min(start + step, length)
            yield Chunk({name: read(start, stop) for name, read in readers.items()}, start)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return self._shapes[name]

    def check_arrays(self, names: Sequence[str]) -> None:
        """Raise if arrays would take far more memory than the size of the file tells."""
        self.check_growth(sum(self._n_bytes[name] for name in names))

    def length_of(self, name: str) -> int:
        """Return how many rows an array has."""
        return self._length([name])

    def _length(self, names: list[str]) -> int:
        for name in names:
            if not self._shapes[name]:
                raise self.fail(f"`{name}` must have a value for every row, it is a single number.")
            if 0 in self._shapes[name]:
                raise self.fail(
                    f"`{name}` is empty, its shape is {self._shapes[name]}. There is nothing to score."
                )
        lengths = {name: self._shapes[name][0] for name in names}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
            raise self.fail(f"all arrays must have as many rows: {listed}. Are they from the same split?")
        return next(iter(lengths.values()))
