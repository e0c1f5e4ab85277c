"""Partitioned tables: the names of folders, such as ``day=2026-03-02``, are columns of the files in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeAlias, final
from urllib.parse import unquote

import numpy as np

from equipoise.core.bins import Precision
from equipoise.core.reading.formats.base import Chunk, ColumnReader, Reading
from equipoise.core.reading.storage import File

__all__ = ["FilePart", "PartReader", "as_parts"]

#: How Hive spells a missing value.
_MISSING = "__HIVE_DEFAULT_PARTITION__"

Value: TypeAlias = str | int | None


@final
@dataclass(frozen=True)
class FilePart:
    """One file of a partitioned table.

    Attributes:
        file: The file.
        name: Its path below the table's folder, for messages.
        values: What the folders say of all its rows; None for a missing value.
    """

    file: File
    name: str
    values: Mapping[str, Value]


def as_parts(files: Sequence[tuple[File, PurePosixPath]]) -> list[FilePart | File]:
    """Return files with what their folders say of them.

    Values are numbers if all of a column are whole numbers as one writes them, else text: ``03`` stays ``03``.

    Args:
        files: Each with its path below the table's folder.

    Example:
        >>> from pathlib import Path
        >>> below = PurePosixPath("day=3/site=New%20York/a.parquet")
        >>> as_parts([(Path("rows") / below, below)])[0].values
        {'day': 3, 'site': 'New York'}
    """
    said = [_said(below) for _, below in files]
    columns: dict[str, set[str | None]] = {}
    for values in said:
        for name, value in values.items():
            columns.setdefault(name, set()).add(value)
    numbers = {name for name, values in columns.items() if all(map(_is_whole, values))}
    return [
        FilePart(file, str(below), {name: _typed(value, name in numbers) for name, value in values.items()})
        if values and below.suffix.lower() == ".parquet"
        else file
        for (file, below), values in zip(files, said, strict=True)
    ]


def _said(below: PurePosixPath) -> dict[str, str | None]:
    pairs = [part.partition("=") for part in below.parts[:-1]]
    return {
        unquote(name): None if value == _MISSING else unquote(value)
        for name, mark, value in pairs
        if mark and name
    }


def _is_whole(value: str | None) -> bool:
    return value is None or (len(value) < 19 and value.lstrip("-").isdigit() and str(int(value)) == value)


def _typed(value: str | None, number: bool) -> Value:
    return int(value) if number and value is not None else value


@final
class PartReader(ColumnReader):
    """The columns of a file and of its folders; where both have one, the file's own counts."""

    def __init__(self, inner: ColumnReader, part: FilePart) -> None:
        self._inner, self.where = inner, part.name
        inner.where = part.name
        self._values = {name: value for name, value in part.values.items() if name not in inner.row_shapes}
        self.row_shapes = {**inner.row_shapes, **dict.fromkeys(self._values, ())}
        self.notes, self.size, self.max_bytes = inner.notes, inner.size, inner.max_bytes
        self.drop_missing, self.percent = inner.drop_missing, inner.percent

    @property
    def inner(self) -> ColumnReader:
        """The file itself."""
        return self._inner

    @property
    def constants(self) -> Mapping[str, Value]:
        """What the folders say of all rows."""
        return self._values

    def close(self) -> None:
        """Let go of the file."""
        self._inner.close()

    def is_text(self, name: str) -> bool:
        """Say whether a column holds text."""
        return isinstance(self._values[name], str) if name in self._values else self._inner.is_text(name)

    def precision(self, name: str) -> Precision | None:
        """Return the precision in which the numbers of a column are stored."""
        return None if name in self._values else self._inner.precision(name)

    def chunks(self, readings: Mapping[str, Reading], *, n_rows: int | None) -> Iterator[Chunk]:
        """Yield the rows of some columns in order."""
        told = [name for name in readings if name in self._values]
        for name in told:
            if self._values[name] is None:
                raise self.fail(
                    f"`{name}` has a missing value in the name of its folder. Name or move the folder."
                )
        stored = {name: reading for name, reading in readings.items() if name not in told}
        for chunk in self._inner.chunks(stored or self._any(), n_rows=n_rows):
            if not chunk.columns:
                yield chunk
                continue
            length = len(next(iter(chunk.columns.values())))
            columns = {name: chunk.columns[name] for name in stored}
            columns |= {name: np.full(length, self._values[name]) for name in told}
            yield replace(chunk, columns=columns)

    def _any(self) -> dict[str, Reading]:
        """Return the first column, to learn how many rows there are."""
        return {next(iter(self._inner.row_shapes)): "number"}
