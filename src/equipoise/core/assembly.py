"""Rows of a table become Predictions; errors name the file and the row or line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.checks import renumbered
from equipoise.core.classes import class_numbers, labels_are_text, seen_classes
from equipoise.core.columns import Layout, Wanted
from equipoise.core.errors import DataError, SplitError
from equipoise.core.formats.table import Batch, Table
from equipoise.core.predictions import Predictions
from equipoise.core.recognise import find_layout
from equipoise.core.rows import Rows
from equipoise.core.sources import Source, open_source

__all__ = ["Assembly", "Options"]


@dataclass(frozen=True)
class Options:
    """What a caller says about the rows, beside the names of columns.

    Attributes:
        class_names: One name per class.
        n_classes: The number of classes, in the top-1 form.
        split: The split they are from.
        ignore_index: The label of rows to leave out.
    """

    class_names: Sequence[str] | None = None
    n_classes: int | None = None
    split: str | None = None
    ignore_index: int | None = None


class Assembly:
    """Reads tables of one stream: the columns asked for, the classes known from all of them."""

    def __init__(self, sources: Sequence[Source], wanted: Wanted, options: Options) -> None:
        self._sources, self._wanted, self._options = sources, wanted, options
        self.where = ""

    def chunks(self, source: Source, n_rows: int | None) -> Iterator[tuple[str, Predictions]]:
        """Yield the chunks of one table with its name; 0 rows stands for a moderate size, None for all."""
        with open_source(source) as table:
            self.where = table.where
            layout = find_layout(table, self._wanted)
            text = labels_are_text(table, layout)
            names = self._class_names(table, layout, text)
            readings = layout.readings()
            if text:
                readings |= {name: "name" for name in (layout.labels, layout.predicted) if name is not None}
            step = table.chunk_rows(readings) if n_rows == 0 else n_rows
            for batch in table.batches(readings, n_rows=step):
                if n_rows is None or not self._all_ignored(batch, layout):
                    yield table.where, self._predictions(table, batch, layout, names, text)

    def _class_names(self, table: Table, layout: Layout, text: bool) -> Sequence[str] | None:
        known = self._options.class_names or table.notes.class_names or layout.class_names
        return self._seen if known is None and text and layout.kind == "top1" else known

    @cached_property
    def _seen(self) -> tuple[str, ...]:
        """The classes that occur anywhere in the stream."""
        return seen_classes(self._tables())

    def _tables(self) -> Iterator[tuple[Table, Layout]]:
        for source in self._sources:
            with open_source(source) as table:
                yield table, find_layout(table, self._wanted)

    def _all_ignored(self, batch: Batch, layout: Layout) -> bool:
        labels = as_numpy(batch.columns[layout.labels])
        ignored = self._options.ignore_index
        return ignored is not None and labels.dtype.kind in "iu" and bool((labels == ignored).all())

    def _predictions(
        self, table: Table, batch: Batch, layout: Layout, names: Sequence[str] | None, text: bool
    ) -> Predictions:
        columns = dict(batch.columns)
        if text:
            for name in (layout.labels, layout.predicted):
                if name is not None:
                    columns[name] = class_numbers(table, batch, name, names)
        try:
            return self._checked(table, replace(batch, columns=columns), layout, names)
        except SplitError as error:
            raise SplitError(f"{table.where}: {_told(error)}") from None
        except DataError as error:
            raise DataError(f"{table.where}: {_told(_placed(error, batch, layout))}") from None
        except (ValueError, TypeError) as error:
            raise DataError(f"{table.where}: {_told(error)}") from None

    def _checked(
        self, table: Table, batch: Batch, layout: Layout, names: Sequence[str] | None
    ) -> Predictions:
        columns, options, top1 = batch.columns, self._options, layout.kind == "top1"
        scores = None if top1 else _scores(table, columns, layout)
        predictions = Predictions(
            labels=columns[layout.labels],
            logits=scores if layout.kind == "logits" else None,
            probs=scores if layout.kind == "probs" else None,
            predicted=columns[layout.predicted] if layout.predicted else None,
            confidence=columns[layout.confidence] if layout.confidence else None,
            weights=_weights(columns, layout),
            groups={name: columns[column] for name, column in layout.groups.items()},
            class_names=names,
            ids=_ids(table, columns, layout),
            split=options.split or table.notes.split,
            ignore_index=options.ignore_index,
            n_classes=options.n_classes or (table.notes.n_classes if top1 else None),
            fitted_on=table.notes.fitted_on,
        )
        if layout.weights and predictions.weights is None:
            return predictions.with_weights(np.zeros(len(predictions)))
        return predictions


def _scores(table: Table, columns: Any, layout: Layout) -> Any:
    if layout.one_per_class:
        return np.stack([_flat(table, columns[name], name) for name in layout.scores], axis=1)
    scores = columns[layout.scores[0]]
    if layout.kind == "probs" and as_numpy(scores).dtype.kind in "iu" and scores.ndim == 1:
        name = layout.scores[0]
        raise DataError(
            f"`{name}` must hold probabilities, its numbers are integers. Class numbers? Pass predicted={name!r} "
            "and confidence=."
        )
    return scores


def _weights(columns: Any, layout: Layout) -> Any:
    """Return the weights; None if all are zero, which is fine in one chunk of many."""
    if layout.weights is None:
        return None
    weights = as_numpy(columns[layout.weights])
    return None if weights.dtype.kind in "fiub" and not weights.any() else weights


def _flat(table: Table, column: Any, name: str) -> Array:
    array = as_numpy(column)
    if array.ndim != 1:
        raise table.fail(f"`{name}` must hold one number per row, its shape is {array.shape}.")
    return array


def _ids(table: Table, columns: Any, layout: Layout) -> Any:
    if layout.hashes is None:
        return None if layout.ids is None else columns[layout.ids]
    hashes = _flat(table, columns[layout.hashes], layout.hashes)
    if hashes.dtype not in (np.uint64, np.int64):
        raise table.fail(
            f"`{layout.hashes}` must hold 64-bit integers, its type is {hashes.dtype}. Remove it."
        )
    return Rows(hashes.astype(np.uint64), named=layout.hashes == "id_hash")


def _placed(error: DataError, batch: Batch, layout: Layout) -> DataError:
    labels = as_numpy(batch.columns[layout.labels])
    lines = batch.lines
    if lines is not None:
        return renumbered(error, lambda row: f"line {lines[row]}")
    before = batch.start * (labels.size // max(1, len(labels)))
    return renumbered(error, lambda row: f"row {before + row}")


def _told(error: Exception) -> str:
    return str(error).removeprefix("Predictions: ")
