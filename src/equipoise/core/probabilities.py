"""The one place where logits become probabilities."""

from __future__ import annotations

import numpy as np
import torch

from equipoise.compiled.dispatch import find_kernel
from equipoise.core.arrays import Array, as_tensor

__all__ = ["log_softmax", "positive_logits", "softmax", "top_of_rows", "two_columns"]

# Below this many numbers loading the compiled code costs more than it saves.
_LARGE = 1 << 20


def softmax(logits: Array) -> Array:
    """Return the softmax over the last axis, in the precision of the input.

    Args:
        logits: Unnormalised scores ``(n, k)``, finite.

    Returns:
        Probabilities ``(n, k)``.

    Example:
        >>> softmax(np.array([[0.0, 0.0]]))
        array([[0.5, 0.5]])
    """
    result: Array = torch.softmax(as_tensor(logits), dim=-1).numpy()
    return result


def log_softmax(logits: Array) -> Array:
    """Return the logarithm of the softmax over the last axis, finite for any finite logits.

    Example:
        >>> log_softmax(np.array([[1e4, 0.0]]))
        array([[     0., -10000.]])
    """
    result: Array = torch.log_softmax(as_tensor(logits), dim=-1).numpy()
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
    top_rows = None if scores.size < _LARGE else find_kernel("top_class", scores.dtype.char, scores.size)
    if top_rows is None:
        place = scores.argmax(axis=1)
        return place, np.take_along_axis(scores, place[:, None], axis=1)[:, 0]
    predicted, highest = np.empty(len(scores), np.int64), np.empty(len(scores), scores.dtype)
    # Other layouts, and read-only arrays, are other types for the compiler, which it would compile anew.
    top_rows(as_tensor(np.ascontiguousarray(scores)).numpy(), predicted, highest)
    return predicted, highest
