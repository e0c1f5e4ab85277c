"""Shapes of scores and labels: binary columns, multiclass rows and dense outputs become rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from equipoise.core.arrays import Array, as_numpy, label_remedy
from equipoise.core.rows import Rows

__all__ = ["Keep", "check_same_length", "kept_rows", "per_row", "row_ids", "row_numbers", "score_rows"]

#: Drops the ignored rows of a column.
Keep: TypeAlias = Callable[[Array], Array]

_WHERE = "Predictions"

_DENSE = "dense outputs are (n, k, d1, ...) with labels (n, d1, ...)."


def score_rows(scores: Array, labels: Array, *, name: str) -> Array:
    """Return scores as ``(rows, k)``, or ``(rows,)`` for one column of the positive class.

    Args:
        scores: ``(n,)``, ``(n, 1)``, ``(n, k)``, ``(n, 1, d1, ...)`` or ``(n, k, d1, ...)``.
        labels: ``(n,)`` or ``(n, d1, ...)``.
        name: ``"logits"`` or ``"probs"``, for the message.

    Returns:
        One row per label, in the order of ``labels.reshape(-1)``.

    Raises:
        ValueError: If the shapes do not belong together.

    Example:
        >>> score_rows(np.zeros((2, 3, 4, 4)), np.zeros((2, 4, 4), int), name="logits").shape
        (32, 3)
    """
    if scores.ndim == 1 and scores.shape == labels.shape:
        return scores
    dense = scores.shape[2:]
    if scores.ndim < 2 or labels.shape != (scores.shape[0], *dense):
        raise ValueError(_mismatch(scores, labels, name))
    rows = scores if not dense else np.moveaxis(scores, 1, -1).reshape(-1, scores.shape[1])
    return rows[:, 0] if scores.shape[1] == 1 else rows


def _mismatch(scores: Array, labels: Array, name: str) -> str:
    n = scores.shape[0] if scores.ndim else 0
    expected = (n, *scores.shape[2:])
    if labels.ndim == 2 and labels.shape in ((n, 1), scores.shape):
        remedy = label_remedy(labels)
    elif labels.ndim == 1 and scores.ndim > 2 and len(labels) == n:
        remedy = f"One label per row goes with `{name}` of shape (n, k); {_DENSE}"
    elif labels.ndim == 1:
        remedy = f"There are {len(labels)} labels for {n} rows of {name}: are they from the same split?"
    else:
        remedy = _DENSE.capitalize()
    return (
        f"{_WHERE}: `labels` must have shape {expected} to match `{name}` {scores.shape}, got {labels.shape}. "
        f"{remedy}"
    )


def check_same_length(labels: Array, **named: Array) -> None:
    """Raise unless every column has the shape of the labels, ``(n,)``.

    Raises:
        ValueError: With the column's name and shape.

    Example:
        >>> check_same_length(np.zeros(2, int), confidence=np.zeros(3))
        Traceback (most recent call last):
        ...
        ValueError: Predictions: `confidence` must have shape (2,) like `labels`, got (3,). ...
    """
    for name, column in named.items():
        if labels.ndim != 1 or column.shape != labels.shape:
            raise ValueError(
                f"{_WHERE}: `{name}` must have shape {labels.shape[:1]} like `labels`, got {column.shape}. "
                "Give one value per row."
            )


def per_row(column: Array, labels: Array, *, name: str) -> Array:
    """Return one value per label; a value per sample of a dense output is repeated for its places.

    Example:
        >>> per_row(np.array([1.0, 2.0]), np.zeros((2, 2), int), name="weights")
        array([1., 1., 2., 2.])
    """
    if column.shape == labels.shape:
        return column.reshape(-1)
    if column.shape == labels.shape[:1]:
        return np.repeat(column, int(np.prod(labels.shape[1:])))
    raise ValueError(
        f"{_WHERE}: `{name}` must have shape {labels.shape[:1]}, one value per row, got {column.shape}."
    )


def kept_rows(labels: Array, ignore_index: int | None) -> Keep:
    """Return a function that drops the rows whose label is to be ignored.

    Example:
        >>> kept_rows(np.array([0, 255]), 255)(np.array([7, 8]))
        array([7])
    """
    if ignore_index is None:
        return lambda column: column
    mask = labels.reshape(-1) != ignore_index
    return (lambda column: column) if mask.all() else (lambda column: column[mask])


def row_ids(ids: Any, labels: Array, keep: Keep) -> Rows:
    """Return the identity of every row; places of a dense output get their own.

    Example:
        >>> len(row_ids([7, 8], np.zeros((2, 3), int), lambda column: column).hashes)
        6
    """
    rows = ids if isinstance(ids, Rows) else Rows.from_ids(ids)
    if isinstance(ids, Rows) and len(rows.hashes) == labels.size:
        return Rows(keep(rows.hashes), rows.named)
    hashes = per_row(rows.hashes, labels, name="ids")
    if labels.ndim > 1:
        place = np.arange(hashes.size, dtype=np.uint64) % np.uint64(max(1, int(np.prod(labels.shape[1:]))))
        hashes = hashes + place * np.uint64(0x9E3779B97F4A7C15)
    return Rows(keep(hashes), rows.named)


def row_numbers(index: Any) -> Array:
    """Return an index of rows, a mask or row numbers, as an array.

    Raises:
        ValueError: Unless it has one dimension.

    Example:
        >>> row_numbers([0, 2])
        array([0, 2])
    """
    picked = as_numpy(index)
    if picked.ndim != 1:
        raise ValueError(
            f"{_WHERE}.take: `index` must be a slice, a mask or a list of row numbers, got shape {picked.shape}."
        )
    return picked.astype(np.int64) if picked.size == 0 else picked
