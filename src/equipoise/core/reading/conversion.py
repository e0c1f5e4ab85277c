"""Columns of a file as predictions need them: percentages, rounded rows, missing values, class names, unique ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.core.arrays import Array, as_floats, as_numpy
from equipoise.core.errors import DataError, EquipoiseError
from equipoise.core.names import nearest
from equipoise.core.reading.columns import Columns
from equipoise.core.reading.files import SourceLike, find_sources, open_source
from equipoise.core.reading.formats.base import Chunk, ColumnReader, Reading
from equipoise.core.reading.layout import Layout
from equipoise.core.rows import Rows

__all__ = [
    "UniqueIds",
    "as_share",
    "check_scale",
    "class_numbers",
    "find_ids",
    "labels_are_text",
    "rescaled",
    "seen_classes",
    "without_missing",
]


#: Rows whose sum is further from one than this are not distributions, whatever their rounding.
_FARTHEST = 0.5
#: How far the sum of a row may be from one without being divided by it.
_NEAR = 1e-3
#: How far half precision may take the sum of a row from one.
_HALF_PRECISION = 1e-2
_MOST_DECIMALS = 6
#: Fewer confidences may all be at most 1% by chance.
_A_FEW = 20


def check_scale(reader: ColumnReader, layout: Layout, columns: Columns) -> None:
    """Raise if a repair was requested that scores of this form cannot need.

    Raises:
        DataError: With the argument to leave out.
    """
    one_number = len(layout.scores) == 1 and reader.row_shapes[layout.scores[0]] in ((), (1,))
    if columns.get("normalize") and (layout.kind != "probs" or one_number):
        raise reader.fail(
            "{normalize} is for probabilities of every class, which sum to one. Leave it out.",
            arguments={"normalize": "True"},
        )
    if columns.get("percent") and layout.kind == "logits":
        raise reader.fail(
            "{percent} is for probabilities, not for logits. Leave it out.", arguments={"percent": "True"}
        )


def as_share(values: Any, columns: Columns) -> Any:
    """Return confidences as they are, or percentages as shares.

    Raises:
        DataError: If many are all at most 1, which percentages are not.

    Example:
        >>> as_share(np.array([85.0, 40.0]), Columns(percent=True))
        array([0.85, 0.4 ])
    """
    if not columns.get("percent"):
        return values
    array = as_floats(values, where="read_predictions", name="confidence")
    if len(array) >= _A_FEW and array.max() <= 1:
        raise DataError(
            f"`confidence` must hold percentages, and none of {len(array):,} is above 1. Leave out {{percent}}.",
            arguments={"percent": "True"},
        )
    return array / 100


def rescaled(scores: Any, columns: Columns) -> Any:
    """Return scores as they are, percentages as shares, and rounded rows divided by their sums, as requested.

    Example:
        >>> rescaled(np.array([[33.3, 33.3, 33.3]]), Columns(percent=True, normalize=True)).round(4)
        array([[0.3333, 0.3333, 0.3333]])
    """
    if columns.get("percent"):
        scores = as_floats(scores, where="read_predictions", name="probs") / 100
    return normalized(scores) if columns.get("normalize") else scores


def normalized(probs: Any) -> Array:
    """Return rows divided by their sums, which may be off by the rounding of their numbers.

    With all numbers of d decimals, rounding moves the sum of k of them by at most ``k / 2 * 10**-d``. Numbers of more
    than six decimals may be off as half precision is.

    Raises:
        DataError: For a row that is further off, with the row.

    Example:
        >>> normalized(np.array([[0.34, 0.33, 0.34]])).sum()
        np.float64(1.0)
        >>> normalized(np.array([[0.34, 0.33, 0.24]]))
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: every row of `probs` must sum to one but for rounding, row 0 sums to 0.91. ...
    """
    table = as_floats(probs, where="read_predictions", name="probs").astype(np.float64)
    if table.ndim < 2:
        return table
    total = table.sum(axis=1, keepdims=True)
    allowed = _farthest_by_rounding(table)
    off = np.abs(total - 1) > allowed * (1 + 1e-9) + 1e-12
    if off.any():
        row = int(np.argmax(off.reshape(len(table), -1).any(axis=1)))
        raise DataError(
            f"every row of `probs` must sum to one but for rounding, {{row}} sums to {total[row].flat[0]:.6g}. "
            f"Rounding of these numbers explains {allowed:.2g} at most: repair that row.",
            row=row,
        )
    return np.asarray(table / total)


def _farthest_by_rounding(table: Array) -> float:
    for decimals in range(_MOST_DECIMALS + 1):
        steps = table * 10.0**decimals
        # Single precision keeps seven digits.
        if np.abs(steps - np.round(steps)).max(initial=0) < 1e-7 * 10.0**decimals + 1e-9:
            return min(_FARTHEST, max(_NEAR, float(table.shape[1] / 2 * 10.0**-decimals)))
    return _HALF_PRECISION


def without_missing(chunk: Chunk) -> Chunk:
    """Return a chunk without the rows that have NaN in a column.

    Example:
        >>> kept = without_missing(Chunk({"confidence": np.array([0.5, np.nan, 0.7])}, start=10))
        >>> kept.columns["confidence"], kept.rows, kept.n_dropped
        (array([0.5, 0.7]), array([10, 12]), 1)
    """
    missing = None
    for column in chunk.columns.values():
        array = as_numpy(column)
        if array.dtype.kind == "f":
            bad = np.isnan(array).reshape(len(array), -1).any(axis=1)
            missing = bad if missing is None else missing | bad
    if missing is None or not missing.any():
        return chunk
    kept = np.flatnonzero(~missing)
    n_dropped = chunk.n_dropped + int(missing.sum())
    rows = chunk.start + kept if chunk.rows is None else chunk.rows[kept]
    columns = {name: as_numpy(column)[kept] for name, column in chunk.columns.items()} if len(kept) else {}
    return replace(chunk, columns=columns, rows=rows, n_dropped=n_dropped)


#: More distinct labels than this are no classes; most likely the column holds ids.
_MOST_CLASSES = 1 << 16


def labels_are_text(reader: ColumnReader, layout: Layout) -> bool:
    """Say whether a file's labels, or the classes it names as predicted, are text."""
    return any(reader.is_text(name) for name in (layout.labels, layout.predicted) if name is not None)


def seen_classes(readers: Iterable[tuple[ColumnReader, Layout]]) -> tuple[str, ...]:
    """Return every class that occurs as a label or a prediction, sorted; one pass over those columns only.

    Raises:
        DataError: If there are too many for classes.
    """
    seen: set[str] = set()
    for reader, layout in readers:
        names = [name for name in (layout.labels, layout.predicted) if name is not None]
        readings: dict[str, Reading] = dict.fromkeys(names, "name")
        for chunk in reader.chunks(readings, n_rows=reader.chunk_rows(readings)):
            for name in names if chunk.columns else ():
                seen.update(str(value) for value in np.unique(as_numpy(chunk.columns[name])))
            if len(seen) > _MOST_CLASSES:
                raise reader.fail(
                    f"`{layout.labels}` holds more than {_MOST_CLASSES} different texts. Are these ids?"
                )
    return tuple(sorted(seen))


def class_numbers(reader: ColumnReader, chunk: Chunk, column: str, names: Sequence[str] | None) -> Array:
    """Return the class numbers of a column of class names.

    Raises:
        DataError: If the names of the classes are not known, or a label is none of them.
    """
    texts = as_numpy(chunk.columns[column])
    if texts.dtype.kind != "U":
        raise reader.fail(
            f"`{column}` must hold class names like the other labels, its type is {texts.dtype}."
        )
    if names is None:
        raise reader.fail(
            f"`{column}` holds class names, but their order is not known. Pass {{class_names}}.",
            arguments={"class_names": "[...]"},
        )
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        raise reader.fail("two classes have the same name, so labels are ambiguous. Use class numbers.")
    found, inverse = np.unique(texts, return_inverse=True)
    codes = np.array([numbers.get(str(text), -1) for text in found], dtype=np.int64)[inverse]
    if (codes < 0).any():
        raise _unknown(reader, chunk, column, int(np.argmax(codes < 0)), names)
    return codes.reshape(texts.shape)


def _unknown(
    reader: ColumnReader, chunk: Chunk, column: str, row: int, names: Sequence[str]
) -> EquipoiseError:
    text = str(as_numpy(chunk.columns[column]).reshape(-1)[row])
    guess = nearest(text[:100], names[:1000])
    remedy = f"Did you mean {guess!r}?" if guess else f"Known: {', '.join(map(repr, names[:8]))}."
    error = reader.fail(f"`{column}` must name a class, got {text[:60]!r} in {{row}}. {remedy}")
    return chunk.locate(error, row)


def find_ids(path: SourceLike, columns: Columns, hashes: Collection[int]) -> list[str]:
    """Return the ids of a file that have these hashes, as text; none if no column of ids is named.

    Args:
        path: What was read.
        columns: How it was read.
        hashes: Some of the numbers that rows are known by.
    """
    name, found = columns.get("ids"), list[str]()
    for source in find_sources(path) if name is not None else ():
        with open_source(source, columns.get("max_bytes")) as reader:
            known = next(
                (one for one in reader.row_shapes if one.strip().lower() == str(name).strip().lower()), None
            )
            if known is None:
                continue
            readings: dict[str, Reading] = {known: "text"}
            for chunk in reader.chunks(readings, n_rows=reader.chunk_rows(readings)):
                ids = as_numpy(chunk.columns[known])
                selected = np.isin(Rows.from_ids(ids).hashes, np.array(list(hashes), np.uint64))
                found += [str(one) for one in ids[selected]]
    return found


class UniqueIds:
    """The ids of a stream so far, by one 64-bit hash each, in a few sorted blocks.

    Blocks of similar length are merged, so that adding n ids takes time of the order of n log n.
    """

    def __init__(self) -> None:
        self._blocks: list[Array] = []

    def add(self, reader: ColumnReader, chunk: Chunk, column: str) -> None:
        """Add the ids of a chunk.

        Raises:
            DataError: If an id occurs twice, with the first such id, its row, and how many ids do.
        """
        ids = as_numpy(chunk.columns[column])
        if ids.ndim != 1 or ids.dtype.kind not in "iuU":
            return  # Predictions reports this
        hashes = Rows.from_ids(ids).hashes
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        repeated = np.zeros(len(ids), bool)
        repeated[order[1:]] = ordered[1:] == ordered[:-1]
        for block in self._blocks:
            places = np.searchsorted(block, hashes).clip(max=len(block) - 1)
            repeated |= block[places] == hashes
        if repeated.any():
            raise self._failure(reader, chunk, column, ids, repeated)
        while self._blocks and len(self._blocks[-1]) <= 2 * len(ordered):
            ordered = np.sort(np.concatenate([self._blocks.pop(), ordered]), kind="stable")
        self._blocks.append(ordered)

    def _failure(
        self, reader: ColumnReader, chunk: Chunk, column: str, ids: Array, repeated: Array
    ) -> EquipoiseError:
        row = int(np.argmax(repeated))
        count = int(repeated.sum())
        rows = "1 row repeats an id" if count == 1 else f"{count} rows repeat an id"
        error = reader.fail(
            f"`{column}` must identify every row, and {rows}, first {str(ids[row])[:60]!r} in {{row}}. "
            "Such rows would count twice: remove them, or leave ids out."
        )
        return chunk.locate(error, row)
