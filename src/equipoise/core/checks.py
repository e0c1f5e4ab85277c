"""Checks of the values that predictions are made of: each error names the row and a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError

__all__ = [
    "check_confidence",
    "check_integer",
    "check_labels",
    "check_logits",
    "check_probs",
    "check_weights",
]

# Numbers in a block of rows, which fits a processor's cache, so that several passes read memory once.
_BLOCK = 1 << 16

#: Averages of probabilities in single precision exceed one by this much and no more.
_ROUNDING = 1e-6
# Rows off by no more were most likely distributions before someone cut their digits.
_ROUNDED = 0.05

_HEAVIEST = 1e100

_DROP = "Drop or repair that row, or read the file with {drop_missing}."
_DIVIDE = "Percent? Divide by 100, or read the file with {percent}."


def _blocks(array: Array) -> Iterator[tuple[int, Array]]:
    step = max(1, _BLOCK // max(1, int(np.prod(array.shape[1:]))))
    for start in range(0, len(array), step):
        yield start, array[start : start + step]


def check_logits(logits: Array, *, where: str) -> None:
    """Raise unless all logits are finite.

    Args:
        logits: ``(n, k)`` or one column ``(n,)``.
        where: The caller, for the message.

    Raises:
        DataError: With the first bad row.

    Example:
        >>> check_logits(np.array([[0.0, np.inf]]), where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: doc: `logits` must be finite, got inf in row 0, column 1. ...
    """
    # A sum is finite only if every number is. That of huge numbers may not be, so then each number counts.
    axes = list(range(logits.ndim))
    if np.isfinite(np.einsum(logits, axes, [])):
        return
    for start, block in _blocks(logits):
        # Both are NaN if any number is, and comparisons are false.
        if block.size and not -np.inf < block.min() <= block.max() < np.inf:
            place = np.argwhere(~np.isfinite(block))[0]
            raise DataError(
                f"`logits` must be finite, got {block[tuple(place)]} in {_place(place)}. "
                "A diverged network? For a class that is ruled out use a large negative number such as -1e4.",
                where=where,
                row=start + int(place[0]),
            )


def check_probs(probs: Array, *, where: str, tolerance: float = 1e-3) -> None:
    """Raise unless rows are probabilities: finite, in [0, 1], summing to one.

    Args:
        probs: ``(n, k)``, or one column ``(n,)`` of the positive class.
        where: The caller, for the message.
        tolerance: How far a row's sum may be from one.

    Raises:
        DataError: With the first bad row.

    Example:
        >>> check_probs(np.array([[0.25, 0.75], [2.0, -1.0]]), where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: doc: `probs` must lie in [0, 1], got 2.0 in row 1, column 0. ...
    """
    for start, block in _blocks(probs):
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(axis=1, dtype=block.dtype) if block.ndim == 2 else block
        in_range = block.size == 0 or (block.min() >= 0 and block.max() <= 1 + _ROUNDING)
        if not in_range or not np.isfinite(total).all():
            _raise_out_of_range(block, start, where)
        if block.ndim == 2 and (np.abs(total - 1) > tolerance).any():
            row = int(np.argmax(np.abs(total - 1) > tolerance))
            raise DataError(
                f"every row of `probs` must sum to one, {{row}} sums to {total[row]:.6g}. {_sum_remedy(total)}",
                where=where,
                row=start + row,
                arguments={"normalize": "True", "logits": ""},
            )


def _sum_remedy(totals: Array) -> str:
    """Return what to do about rows that sum to almost one, or to something else."""
    if np.abs(totals - 1).max() <= _ROUNDED:
        return "Rounded? Save more digits, divide every row by its sum, or read the file with {normalize}."
    return "Independent sigmoids are not a distribution over classes; logits are passed as {logits}."


def _raise_out_of_range(block: Array, start: int, where: str) -> None:
    bad = ~((block >= 0) & (block <= 1 + _ROUNDING))
    place = np.argwhere(bad)[0]
    value = block[tuple(place)]
    if np.isnan(value):
        remedy = _DROP
    elif _are_percent(block, int(place[0])):
        remedy = _DIVIDE
    elif _are_counts(block):
        remedy = "Counts, such as votes? Divide every row by its sum."
    else:
        remedy = "These look like logits: pass them as {logits} instead."
    raise DataError(
        f"`probs` must lie in [0, 1], got {value} in {_place(place)}. {remedy}",
        where=where,
        row=start + int(place[0]),
        arguments={"drop_missing": "True", "percent": "True", "logits": ""},
    )


def _are_percent(block: Array, row: int) -> bool:
    """Return whether numbers beyond one are percentages: the row sums to 100, or no number of a column exceeds it."""
    if block.ndim == 2:
        return bool(block[row].min() >= 0 and abs(block[row].sum() - 100) < 1)
    return bool(block.min() >= 0 and 20 < block.max() <= 100)


def _are_counts(block: Array) -> bool:
    """Return whether all numbers are whole and none is negative, which logits hardly ever are."""
    return bool(block.ndim == 2 and block.min() >= 0 and np.array_equal(block, np.floor(block)))


def check_confidence(confidence: Array, *, where: str) -> None:
    """Raise unless confidences are finite and in [0, 1].

    Raises:
        DataError: With the first bad row.

    Example:
        >>> check_confidence(np.array([0.5, 85.0]), where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: doc: `confidence` must lie in [0, 1], got 85.0 in row 1. Percent? ...
    """
    bad = ~((confidence >= 0) & (confidence <= 1 + _ROUNDING))
    if bad.any():
        row = int(np.argmax(bad))
        value = confidence[row]
        remedy = _DIVIDE if 1 < value <= 100 else _DROP if np.isnan(value) else "Drop or repair that row."
        raise DataError(
            f"`confidence` must lie in [0, 1], got {value} in {{row}}. {remedy}",
            where=where,
            row=row,
            arguments={"percent": "True", "drop_missing": "True"},
        )


def check_labels(labels: Array, *, n_classes: int | None, where: str, name: str = "labels") -> None:
    """Raise unless labels are class numbers from 0 to ``n_classes - 1``.

    Raises:
        DataError: With the first bad row; labels that run from 1 are recognized.

    Example:
        >>> check_labels(np.array([1, 2, 3]), n_classes=3, where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: doc: `labels` must lie in [0, 3), got 3 in row 2. They run from 1 to 3: ...
    """
    bad = labels < 0 if n_classes is None else (labels < 0) | (labels >= n_classes)
    if not bad.any():
        return
    row = int(np.argmax(bad))
    expected = "be 0 or more" if n_classes is None else f"lie in [0, {n_classes})"
    first = "1"
    if n_classes is not None and labels.min() == 1 and labels.max() == n_classes:
        remedy = f"They run from 1 to {n_classes}: pass labels - 1, or {{first_label}} for a file."
    elif n_classes == 2 and set(np.unique(labels).tolist()) <= {-1, 1}:
        remedy, first = "They are -1 and 1: pass labels > 0, or read the file with {first_label}.", "-1"
    elif labels[row] == n_classes:
        remedy = (
            f"If they run from 1 to {n_classes}, pass labels - 1, or read the file with {{first_label}}; if not, leave "
            "such rows out: {ignore_index}."
        )
    else:
        remedy = "To leave rows out, pass their label as {ignore_index}."
    raise DataError(
        f"`{name}` must {expected}, got {labels[row]} in {{row}}. {remedy}",
        where=where,
        row=row,
        arguments={"first_label": first, "ignore_index": ""},
    )


def check_weights(weights: Array, *, where: str) -> None:
    """Raise unless sample weights are finite, none negative, and not all zero.

    Raises:
        DataError: With the first bad row.

    Example:
        >>> check_weights(np.array([1.0, -1.0]), where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: doc: `weights` must be finite and not negative, got -1.0 in row 1. ...
    """
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"`weights` must be finite and not negative, got {weights[row]} in {{row}}. "
            "To leave a row out, give it weight 0.",
            where=where,
            row=row,
        )
    # Squares of weights are added up, and sums divided by them.
    far = (weights > _HEAVIEST) | ((weights < 1 / _HEAVIEST) & (weights > 0))
    if far.any():
        row = int(np.argmax(far))
        raise DataError(
            f"`weights` must be 0, or between {1 / _HEAVIEST:g} and {_HEAVIEST:g}, got {weights[row]} in {{row}}. "
            "Only their ratios matter: divide all by the largest.",
            where=where,
            row=row,
        )
    if not weights.any():
        raise DataError(
            "`weights` are all zero, so nothing is left to score. Give some row a weight.", where=where
        )


def _place(place: Array) -> str:
    """Return where a number is, but for the row, which is a field of the error."""
    return "{row}" if len(place) == 1 else f"{{row}}, column {int(place[1])}"


def check_integer(value: Any, *, where: str, name: str, least: int | None = None) -> None:
    """Raise unless a setting is an integer or None.

    Raises:
        TypeError: For anything else.
        ValueError: If it is too small.

    Example:
        >>> check_integer(3, where="doc", name="n_classes", least=1)
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{where}: `{name}` must be an integer, got {value!r}.")
    if least is not None and value < least:
        raise ValueError(f"{where}: `{name}` must be {least} or more, got {value}.")
