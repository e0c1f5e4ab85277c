"""The one place where logits become probabilities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equipoise.core.arrays import Array
from equipoise.kernels.threads import map_in_order

__all__ = [
    "exponentials",
    "exponentiate",
    "log_softmax",
    "positive_logits",
    "row_totals",
    "shift_rows",
    "softmax",
    "top_of_logits",
    "top_of_rows",
    "two_columns",
]

# Numbers in a block of rows, which fits the second-level cache of a processor with its exponentials.
_BLOCK = 1 << 15


def exponentials(logits: Array) -> tuple[Array, Array, Array]:
    """Return what a softmax is made of: the one rule by which logits become confidences.

    The confidence is ``1 / total``, so that m equal logits far above the others give exactly 1/m, rounded once. Every
    row gives the same bits, whatever rows it is computed with.

    Args:
        logits: ``(n, k)`` float32 or float64.

    Returns:
        Exponentials ``(n, k)`` in the precision of the logits, their sums ``(n,)`` in float64, and the column of the
        largest logit, the first of equals, ``(n,)``.

    Example:
        >>> exps, total, column = exponentials(np.float32([[5.0, 5.0, -1e4]]))
        >>> exps, total, column
        (array([[1., 1., 0.]], dtype=float32), array([2.]), array([0]))
    """
    exps, column = np.empty(logits.shape, logits.dtype), np.empty(len(logits), np.int64)
    shift_rows(logits, exps, column)
    exponentiate(exps)
    return exps, row_totals(exps), column


def shift_rows(logits: Array, shifted: Array, column: Array) -> int:
    """Subtract the largest logit of each row: the fallback, and the oracle of the compiled kernel.

    Args:
        logits: ``(n, k)`` float32 or float64.
        shifted: Memory for the differences, of the shape and type of the logits.
        column: Memory for the column of the largest logit, the first of equals, ``(n,)`` int64.

    Returns:
        The first row with a logit that is not finite, whose differences mean nothing, or -1.
    """
    logits.argmax(axis=1, out=column)
    with np.errstate(over="ignore", invalid="ignore"):
        highest = logits.take(column + np.arange(0, logits.size, logits.shape[1]))
        np.subtract(logits, highest[:, None], out=shifted)
    if np.isfinite(logits.min()) and np.isfinite(highest).all():
        return -1
    return int((~np.isfinite(logits)).any(axis=1).argmax())


def exponentiate(shifted: Array) -> None:
    """Replace numbers by their exponentials, in their own precision."""
    with np.errstate(under="ignore", invalid="ignore"):
        np.exp(shifted, out=shifted)


def row_totals(exps: Array, *, wide: Array | None = None) -> Array:
    """Return the sums of rows ``(n,)`` in float64.

    Args:
        exps: ``(n, k)`` float32 or float64.
        wide: Memory for as many numbers in float64, which is overwritten; new memory if None.

    Example:
        >>> row_totals(np.ones((2, 3), np.float32))
        array([3., 3.])
    """
    wide = np.empty(exps.shape) if wide is None else wide
    wide[:] = exps
    # Twice as fast as wide.sum(axis=1). A single row would be summed in another order than the same among others.
    result: Array = np.einsum("ij->i", wide if len(wide) > 1 else wide.repeat(2, axis=0))[: len(wide)]
    return result


def _by_blocks(logits: Array, into: Callable[[slice, Array, Array, Array], None]) -> None:
    """Give the results of :func:`exponentials` to a function, for as many rows at a time as fit the cache."""
    step = max(1, _BLOCK // logits.shape[1])

    def work(start: int) -> None:
        rows = slice(start, start + step)
        into(rows, *exponentials(np.ascontiguousarray(logits[rows])))

    map_in_order(work, range(0, len(logits), step))


def softmax(logits: Array) -> Array:
    """Return the softmax over the last axis, in the precision of the input.

    Args:
        logits: Unnormalized scores ``(n, k)``, finite.

    Returns:
        Probabilities ``(n, k)``.

    Example:
        >>> softmax(np.array([[0.0, 0.0]]))
        array([[0.5, 0.5]])
    """
    probs = np.empty(logits.shape, logits.dtype)

    def fill(rows: slice, exps: Array, total: Array, _column: Array) -> None:
        with np.errstate(under="ignore"):
            probs[rows] = exps.astype(np.float64) * (1 / total)[:, None]

    _by_blocks(logits, fill)
    return probs


def top_of_logits(logits: Array) -> tuple[Array, Array]:
    """Return the column of the largest logit of each row, the first of equals, and its probability in float64.

    Args:
        logits: ``(n, k)``, finite.

    Example:
        >>> top_of_logits(np.zeros((1, 3), np.float32))
        (array([0]), array([0.33333333]))
    """
    column, confidence = np.empty(len(logits), np.int64), np.empty(len(logits))

    def fill(rows: slice, _exps: Array, total: Array, largest: Array) -> None:
        column[rows], confidence[rows] = largest, 1 / total

    _by_blocks(logits, fill)
    return column, confidence


def log_softmax(logits: Array) -> Array:
    """Return the logarithm of the softmax over the last axis, finite for any finite logits.

    Example:
        >>> log_softmax(np.array([[1e4, 0.0]]))
        array([[     0., -10000.]])
    """
    result = np.empty(logits.shape, logits.dtype)

    def fill(rows: slice, _exps: Array, total: Array, column: Array) -> None:
        highest = np.take_along_axis(logits[rows], column[:, None], axis=1)
        with np.errstate(over="ignore"):
            result[rows] = (logits[rows] - highest) - np.log(total)[:, None]

    _by_blocks(logits, fill)
    return result


def positive_logits(column: Array) -> Array:
    """Return two-class logits ``(n, 2)`` for one column of log-odds of the positive class.

    Example:
        >>> positive_logits(np.array([2.0]))
        array([[0., 2.]])
    """
    return np.stack([np.zeros_like(column), column], axis=-1)


def two_columns(column: Array) -> Array:
    """Return two-class probabilities ``(n, 2)`` for one column of the positive class.

    Example:
        >>> two_columns(np.array([0.75]))
        array([[0.25, 0.75]])
    """
    return np.stack([1 - column, column], axis=-1)


def top_of_rows(scores: Array) -> tuple[Array, Array]:
    """Return the column of the largest number of each row, the first of equals, and that number.

    Args:
        scores: ``(n, k)``, no NaN.

    Example:
        >>> top_of_rows(np.array([[0.25, 0.75], [0.5, 0.5]]))
        (array([1, 0]), array([0.75, 0.5 ]))
    """
    column = scores.argmax(axis=1)
    return column, np.take_along_axis(scores, column[:, None], axis=1)[:, 0]
