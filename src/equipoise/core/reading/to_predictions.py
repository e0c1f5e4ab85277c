"""Rows of a file become Predictions; errors name the file and the row or line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.errors import DataError, EquipoiseError
from equipoise.core.predictions import Predictions
from equipoise.core.reading.columns import Columns
from equipoise.core.reading.conversion import (
    UniqueIds,
    as_share,
    check_scale,
    class_numbers,
    labels_are_text,
    rescaled,
    seen_classes,
    without_missing,
)
from equipoise.core.reading.files import FileSource, open_source
from equipoise.core.reading.formats.base import Chunk, ColumnReader, Reading
from equipoise.core.reading.formats.cells import is_integer
from equipoise.core.reading.layout import Layout, find_layout
from equipoise.core.rows import Rows

__all__ = ["PredictionReader"]


class PredictionReader:
    """Reads readers of one stream: the requested columns, the classes known from all of them."""

    def __init__(self, sources: Sequence[FileSource], columns: Columns) -> None:
        self._sources, self._columns = sources, columns
        self.where = ""
        self._ids = UniqueIds()
        self._start: int | None = None

    def chunks(
        self, source: FileSource, n_rows: int | None, *, only_scores: bool = False, with_groups: bool = False
    ) -> Iterator[tuple[str, Predictions]]:
        """Yield the chunks of one file with its name.

        Args:
            source: The file.
            n_rows: The most rows of a chunk; 0 stands for a moderate size, None for all.
            only_scores: Leave labels, weights, groups and ids out, so that they neither need to be valid nor make a
                row be left out.
            with_groups: Read groups in spite of ``only_scores``.
        """
        with self._opened(source) as reader:
            self.where = reader.where
            layout = self._layout(reader)
            if only_scores:
                groups = layout.groups if with_groups else {}
                layout = replace(
                    layout, labels=None, correct=None, weights=None, groups=groups, ids=None, hashes=None
                )
            text = labels_are_text(reader, layout)
            names = self._class_names(reader, layout, text)
            readings = layout.readings()
            if text:
                readings |= {name: "name" for name in (layout.labels, layout.predicted) if name is not None}
            step = reader.chunk_rows(readings) if n_rows == 0 else n_rows
            held, n_dropped, seen = None, 0, 0
            names_rows = reader.notes.rows is not None and _is_calibrated(reader, layout)
            if names_rows and reader.drop_missing:
                raise reader.fail(
                    "a calibrator was applied to this table, and its notes name all rows: none can be left out. Leave "
                    "{drop_missing} out, or drop the rows before the calibrator is applied.",
                    arguments={"drop_missing": "True"},
                )
            for found in reader.chunks(readings, n_rows=step):
                chunk = without_missing(found) if reader.drop_missing else found
                n_dropped += chunk.n_dropped
                if not chunk.columns:
                    continue
                seen = (chunk.start + len(chunk.columns[layout.score_columns[0]])) * _places(chunk, layout)
                if layout.ids is not None:
                    self._ids.add(reader, chunk, layout.ids)
                if n_rows is None or not self._all_ignored(chunk, layout):
                    if held is not None:  # the last one also counts the rows left out after it
                        yield reader.where, held
                    held = self._predictions(reader, chunk, layout, names, text).with_dropped(n_dropped)
                    n_dropped = 0
                    if not reader.drop_missing:
                        yield reader.where, held
                        held = None
            if held is not None:
                yield reader.where, held.with_dropped(held.n_dropped + n_dropped)
            if names_rows and reader.notes.rows is not None and seen != len(reader.notes.rows.hashes):
                raise _other_rows(reader)

    def _opened(self, source: FileSource) -> ColumnReader:
        options = self._columns
        return open_source(
            source,
            options.get("max_bytes"),
            drop_missing=bool(options.get("drop_missing")),
            percent=bool(options.get("percent")),
        )

    def _layout(self, reader: ColumnReader) -> Layout:
        layout = find_layout(reader, self._columns)
        check_scale(reader, layout, self._columns)
        return layout

    def first_label(self) -> int:
        """Return the number of the first class among the labels of the stream."""
        with self._opened(self._sources[0]) as reader:
            layout = self._layout(reader)
            if layout.labels is None or labels_are_text(reader, layout):
                return 0
            readings = _label_readings(layout)
            chunk = next(iter(reader.chunks(readings, n_rows=reader.chunk_rows(readings))))
            return self._first_label(reader, layout, chunk, self._class_names(reader, layout, False))

    def seen_class_names(self) -> tuple[str, ...] | None:
        """Return the class names that only the labels of all files tell; None if they are known otherwise."""
        with self._opened(self._sources[0]) as reader:
            layout = self._layout(reader)
            names = self._class_names(reader, layout, labels_are_text(reader, layout))
        return self._seen if names is not None and names is self.__dict__.get("_seen") else None

    def _class_names(self, reader: ColumnReader, layout: Layout, text: bool) -> Sequence[str] | None:
        known = self._columns.get("class_names") or reader.notes.class_names or layout.class_names
        return self._seen if known is None and text and layout.kind == "top1" else known

    @cached_property
    def _seen(self) -> tuple[str, ...]:
        """The classes that occur anywhere in the stream."""
        return seen_classes(self._readers())

    def _readers(self) -> Iterator[tuple[ColumnReader, Layout]]:
        for source in self._sources:
            with self._opened(source) as reader:
                yield reader, self._layout(reader)

    def _first_label(
        self, reader: ColumnReader, layout: Layout, chunk: Chunk, names: Sequence[str] | None
    ) -> int:
        """Return the number of the first class: as given, as numbered columns show, or as is certain from all labels.

        All labels of the stream are looked at only where those of a chunk do not begin with 0.
        """
        given = self._columns.get("first_label")
        if given is not None:
            return given
        if layout.first_label is not None:
            return layout.first_label
        if self._start is not None:
            return self._start
        seen = self._label_range(layout, chunk)
        if not seen:
            return 0
        named = self._columns.get("class_names")
        if min(seen) < 0:
            two = len(names) == 2 if names else _n_classes(reader, layout, self._columns) in (2, None)
            return -1 if two and self._labels_seen == {-1, 1} else 0
        if min(seen) > 0 and named and not all(is_integer(name) for name in named):
            self._start = int(min(self._labels_seen) == 1 and max(self._labels_seen) == len(named))
        elif min(seen) == 0:
            self._start = 0
        return self._start or 0

    @cached_property
    def _labels_seen(self) -> set[float]:
        """What :meth:`_label_range` gives for all labels of the stream."""
        seen: set[float] = set()
        for reader, layout in self._readers():
            readings = _label_readings(layout)
            for chunk in reader.chunks(readings, n_rows=reader.chunk_rows(readings)):
                seen |= self._label_range(layout, chunk)
        return seen

    def _label_range(self, layout: Layout, chunk: Chunk) -> set[float]:
        """Return the least and the largest of some labels that count, and 0 where it occurs between them."""
        seen: set[float] = set()
        for name in _label_readings(layout) if chunk.columns else ():
            labels = as_numpy(chunk.columns[name])
            if labels.dtype.kind in "iuf":
                ignored = self._columns.get("ignore_index")
                labels = labels if ignored is None else labels[labels != ignored]
                extremes = {float(labels.min()), float(labels.max())} if labels.size else set()
                seen |= extremes
                if extremes and min(extremes) < 0 < max(extremes) and (labels == 0).any():
                    seen.add(0.0)
        return seen

    def _all_ignored(self, chunk: Chunk, layout: Layout) -> bool:
        ignored = self._columns.get("ignore_index")
        if layout.labels is None:
            return False
        labels = as_numpy(chunk.columns[layout.labels])
        return ignored is not None and labels.dtype.kind in "iu" and bool((labels == ignored).all())

    def _predictions(
        self, reader: ColumnReader, chunk: Chunk, layout: Layout, names: Sequence[str] | None, text: bool
    ) -> Predictions:
        columns = dict(chunk.columns)
        if not text and layout.labels is not None:
            columns |= self._numbered_from_zero(reader, chunk, layout, names)
        if text:
            for name in (layout.labels, layout.predicted):
                if name is not None:
                    columns[name] = class_numbers(reader, chunk, name, names)
        try:
            return self._checked(reader, replace(chunk, columns=columns), layout, names)
        except EquipoiseError as error:
            raise _located(error, reader, chunk, layout) from None
        except (ValueError, TypeError) as error:  # arrays of the wrong shape or type
            raise reader.fail(str(error).removeprefix("Predictions: ")) from None

    def _numbered_from_zero(
        self, reader: ColumnReader, chunk: Chunk, layout: Layout, names: Sequence[str] | None
    ) -> dict[str, Any]:
        """Return columns of classes that are numbers, as numbers from 0."""
        columns = {name: chunk.columns[name] for name in _label_readings(layout)}
        start = self._first_label(reader, layout, chunk, names)
        if not start:
            return columns
        for name, column in columns.items():
            labels, ignored = as_numpy(column), self._columns.get("ignore_index")
            counts = np.ones(labels.shape, bool) if ignored is None else labels != ignored
            bad = (counts & (~np.isin(labels, (-1, 1)) if start < 0 else labels < 1)).reshape(-1)
            if bad.any():
                place = int(np.argmax(bad))
                expected = "be -1 or 1" if start < 0 else "run from 1, as the classes do"
                error = reader.fail(
                    f"`{name}` must {expected}, got {labels.reshape(-1)[place]} in {{row}}. "
                    "If classes are numbered from 0, pass {first_label}.",
                    arguments={"first_label": "0"},
                )
                raise chunk.locate(error, place * len(labels) // labels.size)
            columns[name] = np.where(
                counts, (labels > 0).astype(np.int64) if start < 0 else labels - 1, labels
            )
        return columns

    def _checked(
        self, reader: ColumnReader, chunk: Chunk, layout: Layout, names: Sequence[str] | None
    ) -> Predictions:
        columns, options, top1 = chunk.columns, self._columns, layout.kind == "top1"
        scores = rescaled(_scores(reader, columns, layout), options) if layout.scores else None
        predictions = Predictions(
            labels=columns[layout.labels] if layout.labels else None,
            logits=scores if layout.kind == "logits" else None,
            probs=scores if layout.kind == "probs" else None,
            predicted=columns[layout.predicted] if layout.predicted else None,
            confidence=as_share(columns[layout.confidence], options) if layout.confidence else None,
            correct=columns[layout.correct] if layout.correct else None,
            weights=_weights(columns, layout),
            groups={name: columns[column] for name, column in layout.groups.items()},
            class_names=names,
            ids=_ids(reader, chunk, layout),
            split=options.get("split") or reader.notes.split,
            ignore_index=options.get("ignore_index") if layout.labels else None,
            n_classes=options.get("n_classes") or (reader.notes.n_classes if top1 else None),
            fitted_on=reader.notes.fitted_on if _is_calibrated(reader, layout) else None,
            precision=None
            if options.get("percent") or options.get("normalize")
            else reader.precision(layout.score_columns[0]),
        ).with_reason(layout.no_labels)
        if layout.weights and predictions.weights is None:
            return predictions.with_weights(np.zeros(len(predictions)))
        return predictions


def _label_readings(layout: Layout) -> dict[str, Reading]:
    return {name: "label" for name in (layout.labels, layout.predicted) if name is not None}


def _n_classes(reader: ColumnReader, layout: Layout, columns: Columns) -> int | None:
    """Return the number of classes that scores are for, None if only reading tells."""
    if not layout.scores:
        return columns.get("n_classes")
    if layout.one_per_class:
        return len(layout.scores)
    shape = reader.row_shapes[layout.scores[0]]
    return None if shape is None else 2 if shape in ((), (1,)) else shape[0]


def _scores(reader: ColumnReader, columns: Any, layout: Layout) -> Any:
    if layout.one_per_class:
        return np.stack([_flat(reader, columns[name], name) for name in layout.scores], axis=1)
    scores = columns[layout.scores[0]]
    if layout.kind == "probs" and as_numpy(scores).dtype.kind in "iu" and scores.ndim == 1:
        name = layout.scores[0]
        raise DataError(
            f"`{name}` must hold probabilities, its numbers are integers. Class numbers? "
            "Pass {predicted} and {confidence}.",
            arguments={"predicted": repr(name), "confidence": ""},
        )
    return scores


def _weights(columns: Any, layout: Layout) -> Any:
    """Return the weights; None if all are zero, which is fine in one chunk of many."""
    if layout.weights is None:
        return None
    weights = as_numpy(columns[layout.weights])
    return None if weights.dtype.kind in "fiub" and not weights.any() else weights


def _flat(reader: ColumnReader, column: Any, name: str) -> Array:
    array = as_numpy(column)
    if array.ndim != 1:
        raise reader.fail(f"`{name}` must hold one number per row, its shape is {array.shape}.")
    return array


def _is_calibrated(reader: ColumnReader, layout: Layout) -> bool:
    """Say whether the notes on a calibrator concern the scores that are read."""
    return reader.notes.calibrated in (None, layout.score_columns)


def _ids(reader: ColumnReader, chunk: Chunk, layout: Layout) -> Any:
    if layout.ids is not None:
        return chunk.columns[layout.ids]
    if layout.hashes is None:
        return _kept_ids(reader, chunk, layout)
    hashes = _flat(reader, chunk.columns[layout.hashes], layout.hashes)
    if hashes.dtype not in (np.uint64, np.int64):
        raise reader.fail(
            f"`{layout.hashes}` must hold 64-bit integers, its type is {hashes.dtype}. Remove it."
        )
    return Rows(hashes.astype(np.uint64), named=layout.hashes == "id_hash")


def _kept_ids(reader: ColumnReader, chunk: Chunk, layout: Layout) -> Rows | None:
    """Return which rows these were before a calibrator, if the notes tell.

    Raises:
        DataError: If the file has gained or lost rows since the notes were written.
    """
    rows = reader.notes.rows
    if rows is None or not _is_calibrated(reader, layout):
        return None
    places = _places(chunk, layout)
    start = chunk.start * places
    stop = start + len(chunk.columns[layout.score_columns[0]]) * places
    if stop > len(rows.hashes):
        raise _other_rows(reader)
    return Rows(rows.hashes[start:stop], rows.named)


def _other_rows(reader: ColumnReader) -> DataError:
    rows = reader.notes.rows
    return reader.fail(
        f"rows were added or removed since a calibrator was applied: the notes are on "
        f"{0 if rows is None else len(rows.hashes)} rows. Apply the calibrator to the table as it is now."
    )


def _places(chunk: Chunk, layout: Layout) -> int:
    """Return the rows of predictions per row of the file: one, or the pixels of an image."""
    if layout.labels is not None:
        labels = as_numpy(chunk.columns[layout.labels])
        return int(labels.size // max(1, len(labels)))
    if layout.scores:
        return int(np.prod(as_numpy(chunk.columns[layout.scores[0]]).shape[2:]))
    return 1


def _located(error: EquipoiseError, reader: ColumnReader, chunk: Chunk, layout: Layout) -> EquipoiseError:
    """Return an error about predictions as one about the file that they are read from."""
    error = error.at(where=reader.where)
    if error.row is None:
        return error
    if chunk.line_of is None and chunk.rows is None:
        return error.at(row=chunk.start * _places(chunk, layout) + error.row)
    return chunk.locate(error, error.row)
