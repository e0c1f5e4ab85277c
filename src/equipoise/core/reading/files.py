"""Which files are meant, in which formats, and the columns that the names of their folders are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TypeAlias, final
from urllib.parse import unquote

import numpy as np

from equipoise.core.bins import Precision
from equipoise.core.errors import DataError
from equipoise.core.names import nearest
from equipoise.core.reading.columns import KNOWN_NAMES
from equipoise.core.reading.formats import ENDINGS, READERS
from equipoise.core.reading.formats.base import Chunk, ColumnReader, Reading
from equipoise.core.reading.formats.npy import NpyReader
from equipoise.core.reading.storage import File, files_at, is_address, is_row_file

__all__ = [
    "AnyPath",
    "FilePart",
    "FileSource",
    "PartReader",
    "SourceLike",
    "as_parts",
    "ending_of",
    "find_sources",
    "name_of",
    "npy_columns",
    "open_source",
]


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
    values_of_files = [_folder_values(below) for _, below in files]
    columns: dict[str, set[str | None]] = {}
    for values in values_of_files:
        for name, value in values.items():
            columns.setdefault(name, set()).add(value)
    numbers = {name for name, values in columns.items() if all(map(_is_whole, values))}
    return [
        FilePart(file, str(below), {name: _typed(value, name in numbers) for name, value in values.items()})
        if values and below.suffix.lower() == ".parquet"
        else file
        for (file, below), values in zip(files, values_of_files, strict=True)
    ]


def _folder_values(below: PurePosixPath) -> dict[str, str | None]:
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
        constant = [name for name in readings if name in self._values]
        for name in constant:
            if self._values[name] is None:
                raise self.fail(
                    f"`{name}` has a missing value in the name of its folder. Name or move the folder."
                )
        stored = {name: reading for name, reading in readings.items() if name not in constant}
        for chunk in self._inner.chunks(stored or self._any(), n_rows=n_rows):
            if not chunk.columns:
                yield chunk
                continue
            length = len(next(iter(chunk.columns.values())))
            columns = {name: chunk.columns[name] for name in stored}
            columns |= {name: np.full(length, self._values[name]) for name in constant}
            yield replace(chunk, columns=columns)

    def _any(self) -> dict[str, Reading]:
        """Return the first column, to learn how many rows there are."""
        return {next(iter(self._inner.row_shapes)): "number"}


AnyPath: TypeAlias = str | os.PathLike[str]

#: What a caller may name: a path, pattern, folder or address, several, or a column name per .npy file.
SourceLike: TypeAlias = AnyPath | Sequence["SourceLike"] | Mapping[str, AnyPath]

#: One table: a file, here or elsewhere; a file of a partitioned table; or .npy files by column.
FileSource: TypeAlias = File | FilePart | Mapping[str, Path]

_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".ckpt")


def find_sources(path: SourceLike) -> list[FileSource]:
    """Return the tables that a caller names, in order; patterns give their files sorted by name.

    Args:
        path: A file, a pattern such as ``"part-*.parquet"``, a folder of Parquet files, an address such as
            ``"s3://bucket/rows"``, several of them, a list of .npy files (the columns of one table, named by their
            file names), or a mapping from column names to .npy files. Folders below the one named, or matched by a
            pattern, that are called ``name=value`` are columns of the Parquet files in them.

    Raises:
        DataError: If nothing is named, or a file twice, or one is missing, or of no known kind.

    Example:
        >>> find_sources("missing.npz")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: missing.npz: there is no such file.
    """
    if isinstance(path, Mapping):
        return [npy_columns({str(name): _checked(Path(file)) for name, file in path.items()})]
    if is_address(path):
        return _elsewhere(str(path))
    if path == "":  # to the system the folder one is in, to whoever wrote it a variable that was never set
        raise DataError("read_predictions: the name of the file is empty. Pass a path.")
    if isinstance(path, str | os.PathLike):
        files: list[Path] = _expanded(Path(path))
        return [_by_name(files)] if files[0].suffix.lower() == ".npy" else _parts(files, _fixed(Path(path)))
    items = list(path)
    if not items:
        raise DataError("read_predictions: no file was named. Pass a path.")
    if all(isinstance(item, str | os.PathLike) and _is_npy(item) for item in items):
        return [_by_name([file for item in items for file in _expanded(Path(str(item)))])]
    return _each_once([source for item in items for source in find_sources(item)])


def open_source(
    source: FileSource, max_bytes: int | None = None, *, drop_missing: bool = False, percent: bool = False
) -> ColumnReader:
    r"""Open a table.

    Args:
        source: The file, or .npy files by column.
        max_bytes: How large it may become in memory; None for the usual limit.
        drop_missing: Whether rows with missing values are left out.
        percent: Whether numbers in text may be followed by a percent sign.

    Raises:
        DataError: If it cannot be read, or is damaged.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.csv"
        >>> _ = path.write_text("labels,probs\n1,0.5\n")
        >>> list(open_source(path).row_shapes)
        ['labels', 'probs']
    """
    try:
        if isinstance(source, FilePart):
            return PartReader(
                open_source(source.file, max_bytes, drop_missing=drop_missing, percent=percent), source
            )
        opened = (
            NpyReader(source, max_bytes)
            if isinstance(source, Mapping)
            else READERS[ending_of(source)](source, max_bytes)
        )
        opened.drop_missing, opened.percent = drop_missing, percent
        return opened
    except OSError as error:
        raise DataError(f"{name_of(source)}: cannot be read ({error.strerror or error}).") from None


def name_of(source: FileSource) -> str:
    """Return the name of a table for messages.

    Example:
        >>> name_of(Path("rows/a.csv"))
        'a.csv'
    """
    return ", ".join(map(str, source.values())) if isinstance(source, Mapping) else source.name


def ending_of(path: File) -> str:
    """Return a file's ending in lower case.

    Raises:
        DataError: If no reader or writer knows it.

    Example:
        >>> ending_of(Path("a.NPZ"))
        '.npz'
    """
    ending = path.suffix.lower()
    if ending in ENDINGS:
        return ending
    known = ", ".join(ENDINGS)
    if ending in _PICKLES:
        raise DataError(
            f"{path.name}: {ending} files are pickles, which can run programs and are never loaded. "
            "Save the arrays with numpy.savez(path, logits=..., labels=...)."
        )
    guess = nearest(ending, ENDINGS) if ending else None
    remedy = f"Did you mean {guess}?" if guess else "Rename or convert the file."
    raise DataError(f"{path.name}: the ending must be one of {known}, got {ending or 'none'}. {remedy}")


def npy_columns(paths: Mapping[str, Path]) -> Mapping[str, Path]:
    """Return .npy files by column; raise for files of another kind.

    Raises:
        DataError: For other endings.

    Example:
        >>> list(npy_columns({"logits": Path("a.npy")}))
        ['logits']
    """
    for path in paths.values():
        if ending_of(path) != ".npy":
            raise DataError(f"{path.name}: only .npy files are given by column; pass this one by itself.")
    if not paths:
        raise DataError("read_predictions: no file was named. Pass a path.")
    return paths


def _elsewhere(address: str) -> list[FileSource]:
    """Return the tables that an address names; those on this machine are read where they are."""
    found = files_at(address)
    if isinstance(found, str):
        return find_sources(found)
    for one in found:
        if ending_of(one.file) == ".npy":
            raise DataError(
                f"{one.file.shown}: .npy files come in pairs and are read from this machine. Copy them here."
            )
    return [*as_parts([(one.file, one.below) for one in found])]


def _each_once(sources: list[FileSource]) -> list[FileSource]:
    """Return the tables, or raise for one whose rows would count twice: intervals would be too narrow."""
    seen: dict[str, Sequence[File]] = {}
    for source in sources:
        files = _files_of(source)
        # By name first, as storages cannot be hashed; two of them may have a file of the same name.
        known = seen.setdefault(" ".join(str(getattr(file, "shown", file)) for file in files), files)
        if known is not files and known == files:
            raise DataError(
                f"{files[0].name}: is named twice, so that its rows would count twice. Name it once."
            )
    return sources


def _files_of(source: FileSource) -> Sequence[File]:
    """Return the files that a table is read from, by the one name that each has."""
    if isinstance(source, Mapping):
        return sorted(path.resolve() for path in source.values())
    file = source.file if isinstance(source, FilePart) else source
    return [file.resolve() if isinstance(file, Path) else file]


def _parts(files: Sequence[Path], base: Path) -> list[FileSource]:
    return [*as_parts([(file, PurePosixPath(file.relative_to(base).as_posix())) for file in files])]


def _fixed(path: Path) -> Path:
    """Return the folder that all files named have in common: the one named, or what is before a pattern."""
    if os.path.isdir(path):
        return path
    if path.exists():
        return path.parent
    magic = next(place for place, part in enumerate(path.parts) if has_magic(part))
    return Path(*path.parts[:magic])


def _expanded(path: Path) -> list[Path]:
    if os.path.isdir(path):
        try:
            inside = sorted(_table_files(path, path))
            _check_inside(inside, path)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from None
        return [_checked(file) for file in inside] or [_checked(path)]
    if has_magic(str(path)) and not path.exists():
        found = [Path(name) for name in sorted(glob(str(path)))]
        if not found:
            raise DataError(f"{path}: no file matches this pattern.")
        return [_checked(file) for file in found]
    return [_checked(path)]


def _table_files(folder: Path, table: Path) -> Iterator[Path]:
    """Yield the files of a table in a folder; other folders are not looked into, however much they hold."""
    for path in folder.iterdir():
        if "=" in path.name and path.is_dir():
            if path.is_symlink():  # elsewhere; or in the table, where its rows count already
                raise DataError(
                    f"{path}: is a symbolic link to {path.resolve()}, and links to folders are not followed within a "
                    "table. Copy the folder here, or pass its own path too."
                )
            yield from _table_files(path, table)
        elif is_row_file(path.relative_to(table)):
            yield path


def _check_inside(files: Sequence[Path], table: Path) -> None:
    """Raise for a file of a table that is a link out of it, or to another file of it, whose rows would count twice."""
    base, seen = table.resolve(), dict[Path, Path]()
    for file in files:
        real = file.resolve()
        if not real.is_relative_to(base):
            raise DataError(
                f"{file}: is a symbolic link to {real}, outside the folder {table}, and is not followed. Copy the file "
                "here, or pass its own path too."
            )
        if real in seen:
            raise DataError(
                f"{file}: is the same file as {seen[real]}, so that its rows would count twice. Remove the link."
            )
        seen[real] = file


def _checked(path: Path) -> Path:
    try:
        if path.is_dir():
            raise DataError(
                f"{path}: is a directory without .parquet files. Name the file in it, or a pattern such as '*.npz'."
            )
        ending_of(path)
        if not path.exists():
            there = (
                [file.name for file in islice(path.parent.iterdir(), 1000)] if path.parent.is_dir() else []
            )
            guess = nearest(path.name, there)
            raise DataError(f"{path}: there is no such file.{f' Did you mean {guess!r}?' if guess else ''}")
        if not path.is_file():
            raise DataError(f"{path}: is no regular file. Copy its content to one first.")
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{str(path)[:200]!r}: cannot be read ({error}).") from None
    return path


def _is_npy(path: AnyPath) -> bool:
    return not is_address(path) and Path(path).suffix.lower() == ".npy"


def _by_name(files: Sequence[Path]) -> Mapping[str, Path]:
    """Return .npy files as the columns of one table; scores may stand alone, as those of production do."""
    columns: dict[str, Path] = {}
    for file in files:
        name = _column_name(file.stem)
        if name in columns:
            raise DataError(
                f"{file.name} and {columns[name].name} would both be `{name}`. Say which is which: "
                '{"logits": ..., "labels": ...}.'
            )
        columns[name] = _checked(file)
    return columns


def _column_name(stem: str) -> str:
    """Return the known name that a file name ends with, as in ``val_logits``; otherwise the file name."""
    known = {name for names in KNOWN_NAMES.values() for name in names}
    places = [0, *(found.end() for found in re.finditer(r"[_\-. ]", stem))]
    for place in places:
        if stem[place:].lower() in known:
            return stem[place:]
    return stem
