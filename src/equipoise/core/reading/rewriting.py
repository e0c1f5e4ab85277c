"""A user's table with other scores: its other columns, its order, its types and its format stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.atomic_files import atomic_path
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.reading.columns import CLASS_PREFIXES, KNOWN_NAMES, Columns
from equipoise.core.reading.conversion import labels_are_text
from equipoise.core.reading.files import (
    FilePart,
    FileSource,
    SourceLike,
    ending_of,
    find_sources,
    open_source,
)
from equipoise.core.reading.formats import REWRITERS, WITHOUT_METADATA, WRITERS
from equipoise.core.reading.formats.base import ColumnReader, NewScores, Reading
from equipoise.core.reading.formats.cells import is_integer
from equipoise.core.reading.formats.csv import CsvReader
from equipoise.core.reading.formats.notes import Notes, side_file
from equipoise.core.reading.layout import Layout, find_layout
from equipoise.core.reading.to_predictions import PredictionReader
from equipoise.core.rows import Rows

__all__ = ["RewrittenTable", "ScoreTable"]

ScoreKind = Literal["logits", "probs"]

_FAMILIES = {".tsv": ".csv"}


@dataclass(frozen=True)
class RewrittenTable:
    """What was written.

    Attributes:
        path: The table.
        notes: The file of its notes, if they are not in the table itself.
        n_rows: Rows of the table.
        kind: ``logits``, ``probs``, ``top1`` or ``confidence``.
        columns: The columns that hold the new scores.
        has_labels: Whether the table has a column of labels.
        n_without_group: For a calibrator or a threshold by group, the groups without one of their own and their rows.
        counts: For a column of decisions, the rows with each of its values; for sets, by the number of their classes.
    """

    path: Path
    notes: Path | None
    n_rows: int
    kind: str
    columns: tuple[str, ...]
    has_labels: bool
    n_without_group: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


class ScoreTable:
    """A table whose scores can be exchanged; nothing but the identity of its rows is read before.

    Args:
        path: What :func:`equipoise.read_predictions` takes.
        columns: Description of its columns.
    """

    def __init__(self, path: SourceLike, columns: Columns) -> None:
        self._sources, self._columns = find_sources(path), columns
        if columns.get("drop_missing"):
            raise DataError(
                "{drop_missing} cannot be used here: a table keeps all its rows. Fill in or remove those with missing "
                "values first.",
                arguments={"drop_missing": "True"},
            )
        with open_source(self._sources[0], columns.get("max_bytes")) as reader:
            self._notes, self.where = reader.notes, reader.where
            self._layout = find_layout(reader, columns)
            self._row_shapes = reader.row_shapes
        self._rows: Rows | None = None

    @property
    def is_calibrated(self) -> bool:
        """Whether a calibrator was applied to the scores before.

        Rows known by scores that are no longer theirs have been through one, too.
        """
        concerned = self._notes.calibrated in (None, self._layout.score_columns)
        return self._layout.hashes == "row_hash" or (concerned and self._notes.fitted_on is not None)

    def rows(self) -> Rows:
        """Return which rows these are, without those that are ignored; read once, in bounded memory."""
        if self._rows is None:
            reader = PredictionReader(self._sources, self._columns)
            parts = [part.rows for source in self._sources for _, part in reader.chunks(source, 0)]
            if not parts:
                raise DataError(
                    f"{self.where}: no rows to calibrate: every label is ignored. Choose another label to ignore."
                )
            self._rows = Rows(np.concatenate([part.hashes for part in parts]), parts[0].named)
        return self._rows

    def write(
        self,
        target: Path,
        change: Callable[[Predictions], Predictions],
        *,
        fitted_on: Rows,
        calibrator: str,
        kind: ScoreKind | None = None,
        suffix: str = "",
    ) -> RewrittenTable:
        """Write the table with other scores.

        Args:
            target: Where to; its ending names the format.
            change: Makes the new scores, some rows at a time.
            fitted_on: The rows that the calibrator was fitted on.
            calibrator: The calibrator in words.
            kind: What the new scores are; by default what the old ones are.
            suffix: Added to the names of the columns of new scores, which then stand beside the old ones.

        Raises:
            DataError: If the format cannot keep the table.
        """
        layout = self._layout
        if not layout.scores and kind == "logits":
            raise DataError(f"{self.where}: a confidence stays a probability. Leave the kind of scores out.")
        kind = kind or ("logits" if layout.kind == "logits" else "probs")
        old = layout.score_columns
        same = not layout.scores or kind == layout.kind
        new = tuple((name if same else _renamed(name, kind)) + suffix for name in old)
        stream = _Stream(self._new_scores(change, kind))
        scores = NewScores(old, new, bool(suffix), stream.take)
        notes = self._new_notes(fitted_on, calibrator, new, has_originals=bool(suffix))
        side = side_file(target) if ending_of(target) in WITHOUT_METADATA else None
        self._write(target, scores, notes, side)
        return RewrittenTable(
            path=target,
            notes=side,
            n_rows=stream.n_taken,
            kind=kind if layout.scores else layout.kind,
            columns=new,
            has_labels=(layout.labels or layout.correct) is not None,
        )

    def _write(self, target: Path, scores: NewScores, notes: Notes, side: Path | None) -> None:
        ending = ending_of(target)
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(target))
            # The notes are in place before the table that they belong to.
            unused = Path(stack.enter_context(TemporaryDirectory())) / "notes"
            sidecar = unused if side is None else stack.enter_context(atomic_path(side))
            readers = [
                stack.enter_context(open_source(source, self._columns.get("max_bytes")))
                for source in self._sources
            ]
            try:
                if self._keeps_format(ending):
                    REWRITERS[ending](readers, temporary, scores, notes, side=sidecar)
                else:
                    self._convert(readers, temporary, scores, notes, side=None if side is None else sidecar)
            except DataError as error:
                where = target.name if error.where == temporary.name else error.where
                raise error.at(where=where or self.where) from None

    def add(self, target: Path, name: str, make: Callable[[Predictions], Array]) -> RewrittenTable:
        """Write the table with one more column, and everything else as it is.

        Args:
            target: Where to; its ending names the format.
            name: Name of the new column.
            make: Makes the values of some rows: booleans or text ``(n,)``. Labels are not read.

        Raises:
            DataError: If the table has a column of this name, or the format cannot keep the table.
        """
        layout = self._layout
        shape = self._row_shapes[layout.score_columns[0]]
        if shape is not None and len(shape) > 1:
            raise DataError(
                f"{self.where}: a column cannot be added to dense predictions. Pass one row per prediction."
            )
        made = [make(part) for part in self._score_chunks(with_groups=True)]
        values = np.concatenate(made)
        stream = _Stream(iter([values]))
        new = NewScores(layout.score_columns[:1], (name,), True, stream.take, added=values.dtype)
        side = side_file(target)
        has_notes = bool(self._notes.to_json()) and ending_of(target) in WITHOUT_METADATA
        self._write(target, new, self._notes, side if has_notes else None)
        if not has_notes:
            side.unlink(missing_ok=True)  # notes on an earlier file of this name
        return RewrittenTable(
            path=target,
            notes=side if has_notes else None,
            n_rows=len(values),
            kind=layout.kind,
            columns=(name,),
            has_labels=(layout.labels or layout.correct) is not None,
        )

    def _score_chunks(self, *, with_groups: bool = False) -> Iterator[Predictions]:
        reader = PredictionReader(self._sources, self._columns)
        for source in self._sources:
            for _, part in reader.chunks(source, 0, only_scores=True, with_groups=with_groups):
                yield part

    def _new_notes(
        self, fitted_on: Rows, calibrator: str, new: tuple[str, ...], *, has_originals: bool
    ) -> Notes:
        names = self._columns.get("class_names") or self._notes.class_names
        if has_originals and names is None:
            names = self._layout.class_names
        shared = bool(len(fitted_on.hashes)) and bool(fitted_on.shared(self.rows()))
        return Notes(
            class_names=None if names is None else tuple(names),
            split=self._columns.get("split") or self._notes.split,
            n_classes=self._columns.get("n_classes") or self._notes.n_classes,
            fitted_on=fitted_on.union(self._notes.fitted_on),
            rows=self._all_rows() if shared else None,
            calibrator=calibrator,
            calibrated=new,
            has_originals=has_originals,
        )

    def _all_rows(self) -> Rows:
        """Return the identity of all rows in their order; ignored rows are nobody."""
        rows = self.rows()
        ignored, labels = self._columns.get("ignore_index"), self._layout.labels
        if ignored is None or labels is None:
            return rows
        kept, readings = list[Array](), dict[str, Reading]({labels: "label"})
        for source in self._sources:
            with open_source(source, self._columns.get("max_bytes")) as reader:
                chunks = reader.chunks(readings, n_rows=reader.chunk_rows(readings))
                kept.extend(as_numpy(chunk.columns[labels]).reshape(-1) != ignored for chunk in chunks)
        mask = np.concatenate(kept)
        hashes = np.zeros(len(mask), np.uint64)
        hashes[mask] = rows.hashes
        return Rows(hashes, rows.named)

    def _new_scores(self, change: Callable[[Predictions], Predictions], kind: ScoreKind) -> Iterator[Array]:
        """Yield the new scores in the shape of the old ones."""
        shape = self._row_shapes[self._layout.score_columns[0]]
        dense = () if shape is None else shape[1:]
        for part in self._score_chunks(with_groups=bool(self._columns.get("groups"))):
            values = _values(change(part), kind)
            if kind == "probs" and self._columns.get("percent"):
                values = 100 * values
            if dense:
                rows = values.reshape(len(values) // prod(dense), *dense, *values.shape[1:])
                values = rows if values.ndim == 1 else np.moveaxis(rows, -1, 1)
            yield values

    def _keeps_format(self, ending: str) -> bool:
        """Whether the table is written in the format it is read from."""
        family = _FAMILIES.get(ending, ending)
        single = len(self._sources) == 1 or family in (".csv", ".parquet")
        return single and all(_family(source) == family for source in self._sources)

    def _convert(
        self,
        readers: Sequence[ColumnReader],
        path: Path,
        scores: NewScores,
        notes: Notes,
        *,
        side: Path | None,
    ) -> None:
        """Write a table in another format than the one it is read from; all of it is held in memory."""
        tables = [_all_columns(reader, find_layout(reader, self._columns)) for reader in readers]
        if any(list(table) != list(tables[0]) for table in tables):
            raise DataError(f"{self.where}: the files have different columns. Pass one file at a time.")
        columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        if readers and isinstance(readers[0], CsvReader):
            columns = {name: _typed(column) for name, column in columns.items()}
        fresh = scores.columns(len(next(iter(columns.values()))))
        made = {
            name: columns[name]
            if old is None
            else fresh[old].reshape(columns[old].shape if scores.added is None else (-1,))
            for name, old in scores.place(list(columns))
        }
        wide = [name for name, column in made.items() if column.ndim > 2]
        if wide and path.suffix != ".npz":
            raise DataError(
                f"{self.where}: `{wide[0]}` has the shape {made[wide[0]].shape}, which {path.suffix} files do not "
                "keep. Write .npz."
            )
        if side is None:
            WRITERS[path.suffix.lower()](path, made, notes)
        else:
            WRITERS[path.suffix.lower()](path, made, notes, side=side)  # type: ignore[call-arg]


class _Stream:
    """Arrays of any length, in pieces of a requested length."""

    def __init__(self, parts: Iterator[Array]) -> None:
        self._parts, self._held, self.n_taken = parts, list[Array](), 0

    def take(self, n_rows: int) -> Array:
        while sum(map(len, self._held)) < n_rows:
            self._held.append(next(self._parts))
        joined = self._held[0] if len(self._held) == 1 else np.concatenate(self._held)
        self._held = [joined[n_rows:]] if len(joined) > n_rows else []
        self.n_taken += n_rows
        return joined[:n_rows]


def _family(source: FileSource) -> str | None:
    if isinstance(source, Mapping):
        return None  # arrays in files of their own
    ending = ending_of(source.file if isinstance(source, FilePart) else source)
    return _FAMILIES.get(ending, ending)


def _values(found: Predictions, kind: ScoreKind) -> Array:
    if found.scores is None:
        return found.confidence
    if found.kind == kind:
        return found.scores
    if kind == "probs":
        return found.probs[:, 1] if found.one_column else found.probs
    return found.logits[:, 1] - found.logits[:, 0] if found.one_column else found.logits


def _renamed(name: str, kind: ScoreKind) -> str:
    """Return the name of a column whose scores are now of another kind; names that tell no kind stay.

    Example:
        >>> _renamed("p_cat", "logits"), _renamed("probs", "logits"), _renamed("score", "logits")
        ('logit_cat', 'logits', 'score')
    """
    if any(name.strip().lower() in KNOWN_NAMES[one] for one in ("logits", "probs")):
        return kind
    prefix, found, rest = name.strip().partition("_")
    return f"{kind.removesuffix('s')}_{rest}" if found and prefix.lower() in CLASS_PREFIXES else name


def _all_columns(reader: ColumnReader, layout: Layout) -> dict[str, Array]:
    readings: dict[str, Reading] = dict.fromkeys(
        (name for name in reader.row_shapes if name not in reader.note_names), "text"
    )
    readings |= layout.readings()
    if labels_are_text(reader, layout):
        readings |= {name: "name" for name in (layout.labels, layout.predicted) if name is not None}
    parts = list(reader.chunks(readings, n_rows=None))
    return {name: as_numpy(parts[0].columns[name]) for name in readings if name in parts[0].columns}


def _typed(column: Array) -> Array:
    """Return cells of text as numbers, if every one of them is written as a number is.

    Example:
        >>> _typed(np.array(["1", "20"])), _typed(np.array(["01", "20"])), _typed(np.array(["1.5", "2"]))
        (array([ 1, 20]), array(['01', '20'], dtype='<U2'), array([1.5, 2. ]))
    """
    if column.dtype.kind != "U":
        return column
    cells = column.tolist()
    if any(cell != cell.strip() or (len(cell) > 1 and cell[0] in "0+" and cell[1] != ".") for cell in cells):
        return column
    try:
        if all(is_integer(cell) for cell in cells):
            return np.array([int(cell) for cell in cells], np.int64)
        return column if any("_" in cell for cell in cells) else np.array([float(cell) for cell in cells])
    except (ValueError, OverflowError):
        return column
