"""Curves and steps on scores, one per class, and the way from changed scores back to probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.core.array_functions import AnyArray, put_along, search_rows, take_along
from equipoise.core.arrays import Array, array_namespace

__all__ = ["interpolate", "normalized", "padded", "step_at", "with_top"]


def interpolate(x: AnyArray, knots: AnyArray, values: AnyArray) -> AnyArray:
    """Follow a piecewise linear curve per class, level beyond its ends.

    Args:
        x: ``(m, c)``.
        knots: ``(c, p)``, ascending; repeats of the last knot are padding.
        values: ``(c, p)``.

    Returns:
        ``(m, c)``.

    Example:
        >>> interpolate(np.array([[0.25], [7.0]]), np.array([[0.0, 1.0]]), np.array([[2.0, 4.0]]))
        array([[2.5],
               [4. ]])
    """
    xp, columns = array_namespace(x), x.T
    left = xp.clip(search_rows(knots, columns, right=True) - 1, 0, knots.shape[1] - 2)
    width = knots[:, 1:] - knots[:, :-1]
    rate = xp.where(width > 0, 1 / xp.where(width > 0, width, 1.0), xp.inf)
    share = (columns - take_along(knots, left)) * take_along(rate, left)
    share = xp.clip(xp.where(xp.isnan(share), 1.0, share), 0.0, 1.0)
    rise = values[:, 1:] - values[:, :-1]
    return (take_along(values, left) + share * take_along(rise, left)).T


def step_at(x: AnyArray, edges: AnyArray, values: AnyArray) -> AnyArray:
    """Read a step function per class; bins are right-closed.

    Args:
        x: ``(m, c)``.
        edges: Inner edges ``(c, b - 1)``, ascending; infinities are padding.
        values: ``(c, b)``.

    Returns:
        ``(m, c)``.

    Example:
        >>> step_at(np.array([[0.5], [0.6]]), np.array([[0.5]]), np.array([[0.1, 0.9]]))
        array([[0.1],
               [0.9]])
    """
    return take_along(values, search_rows(edges, x.T)).T


def normalized(scores: AnyArray, fallback: AnyArray) -> AnyArray:
    """Divide rows by their sums; rows of zeros are taken from ``fallback``.

    Example:
        >>> normalized(np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([[0.5, 0.5], [0.9, 0.1]]))
        array([[0.25, 0.75],
               [0.9 , 0.1 ]])
    """
    xp = array_namespace(scores)
    total = xp.sum(scores, axis=-1, keepdims=True)
    return xp.where(total > 0, scores / xp.where(total > 0, total, 1.0), fallback)


def with_top(probs: AnyArray, confidence: AnyArray) -> AnyArray:
    """Give the predicted class a new probability; the others share the rest as before.

    Args:
        probs: ``(m, k)``.
        confidence: ``(m,)``.

    Returns:
        Probabilities ``(m, k)``.

    Example:
        >>> with_top(np.array([[0.8, 0.15, 0.05]]), np.array([0.6]))
        array([[0.6, 0.3, 0.1]])
    """
    xp = array_namespace(probs)
    top = xp.argmax(probs, axis=-1, keepdims=True)
    even = put_along(xp.full_like(probs, 1.0 / max(1, probs.shape[-1] - 1)), top, 0.0)
    rest = normalized(put_along(probs, top, 0.0), even) * (1 - confidence)[:, None]
    return put_along(rest, top, confidence[:, None])


def padded(columns: Sequence[Array], *, fill: float | None = None, width: int = 1) -> Array:
    """Stack arrays of unequal length, repeating the last value or a given one.

    Example:
        >>> padded([np.array([1.0]), np.array([2.0, 3.0])])
        array([[1., 1.],
               [2., 3.]])
    """
    width = max(width, *(len(column) for column in columns))
    table = np.empty((len(columns), width))
    for row, column in zip(table, columns, strict=True):
        row[: len(column)] = column
        row[len(column) :] = column[-1] if fill is None else fill
    return table
