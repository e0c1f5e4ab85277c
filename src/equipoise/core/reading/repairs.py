"""What a caller may ask for where files are not as they should be: percentages, rounded rows, missing values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.core.argument_names import argument
from equipoise.core.arrays import Array, as_floats, as_numpy
from equipoise.core.errors import DataError
from equipoise.core.reading.columns import Columns
from equipoise.core.reading.formats.base import Chunk, ColumnReader
from equipoise.core.reading.layout import Layout

__all__ = ["as_share", "check_scale", "rescaled", "without_missing"]

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
    """Raise if a repair was asked for that scores of this form cannot need.

    Raises:
        DataError: With the argument to leave out.
    """
    one_number = len(layout.scores) == 1 and reader.row_shapes[layout.scores[0]] in ((), (1,))
    if columns.get("normalize") and (layout.kind != "probs" or one_number):
        raise reader.fail(
            f"{argument('normalize', 'True')} is for probabilities of every class, which sum to one. Leave it out."
        )
    if columns.get("percent") and layout.kind == "logits":
        raise reader.fail(
            f"{argument('percent', 'True')} is for probabilities, not for logits. Leave it out."
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
            f"`confidence` must hold percentages, and none of {len(array):,} is above 1. Leave out "
            f"{argument('percent', 'True')}."
        )
    return array / 100


def rescaled(scores: Any, columns: Columns) -> Any:
    """Return scores as they are, percentages as shares, and rounded rows divided by their sums, as asked.

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
            f"every row of `probs` must sum to one but for rounding, row {row} sums to {total[row].flat[0]:.6g}. "
            f"Rounding of these numbers explains {allowed:.2g} at most: repair that row."
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
