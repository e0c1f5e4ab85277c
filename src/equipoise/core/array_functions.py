"""Functions on NumPy arrays and torch tensors alike, where the two libraries differ in name or lack the function.

What both have under one name (``xp.exp``, ``xp.where``, ``xp.argmax`` ...) is called through
:func:`equipoise.core.arrays.array_namespace`.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np

from equipoise.core.arrays import array_namespace, as_numpy, as_tensor, is_tensor
from equipoise.core.probabilities import log_softmax as log_softmax_of_array
from equipoise.core.probabilities import softmax as softmax_of_array

__all__ = [
    "AnyArray",
    "asarray_like",
    "double",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "put_along",
    "search_rows",
    "softmax",
    "sum_by_index",
    "take_along",
]

#: A NumPy array or a torch tensor; results are of the same kind, and on the same device.
AnyArray: TypeAlias = Any


def asarray_like(values: Any, like: AnyArray) -> AnyArray:
    """Return numbers as an array of the kind of another, on its device.

    Example:
        >>> asarray_like(0.5, np.zeros(1))
        array(0.5)
    """
    if isinstance(like, np.ndarray):
        return as_numpy(values)
    tensor = values if is_tensor(values) else as_tensor(np.asarray(values))
    return tensor.to(like.device)


def double(values: AnyArray) -> AnyArray:
    """Return values in float64.

    Example:
        >>> double(np.float32([0.5])).dtype
        dtype('float64')
    """
    return values.astype(np.float64, copy=False) if isinstance(values, np.ndarray) else values.double()


def softmax(scores: AnyArray) -> AnyArray:
    """Return the softmax over the last axis of ``(m, k)``.

    Example:
        >>> softmax(np.array([[0.0, 0.0]]))
        array([[0.5, 0.5]])
    """
    return softmax_of_array(scores) if isinstance(scores, np.ndarray) else scores.softmax(-1)


def log_softmax(scores: AnyArray) -> AnyArray:
    """Return the logarithm of the softmax over the last axis of ``(m, k)``.

    Example:
        >>> log_softmax(np.array([[1e4, 0.0]]))
        array([[     0., -10000.]])
    """
    return log_softmax_of_array(scores) if isinstance(scores, np.ndarray) else scores.log_softmax(-1)


def logsumexp(values: AnyArray, *, axis: int = -1) -> AnyArray:
    """Return the logarithm of the sum of exponentials along an axis, which is kept with length one.

    Example:
        >>> logsumexp(np.array([[0.0, 0.0], [-np.inf, 1e4]])).round(4).tolist()
        [[0.6931], [10000.0]]
    """
    xp = array_namespace(values)
    highest = xp.max(values, axis=axis, keepdims=True)
    # Where nothing is finite, as in a mixture without members, minus infinity is the answer and not a gap.
    highest = xp.where(xp.isfinite(highest), highest, 0.0)
    return highest + xp.log(xp.sum(xp.exp(values - highest), axis=axis, keepdims=True))


def log_sigmoid(values: AnyArray) -> AnyArray:
    """Return the logarithm of the logistic function, exact at both ends.

    Example:
        >>> log_sigmoid(np.array([-1e4, 0.0, 1e4])).round(4).tolist()
        [-10000.0, -0.6931, 0.0]
    """
    xp = array_namespace(values)
    return xp.where(values < 0, values, 0.0) - xp.log1p(xp.exp(-xp.abs(values)))


def take_along(values: AnyArray, index: AnyArray) -> AnyArray:
    """Return the values at an index along the last axis.

    Example:
        >>> take_along(np.array([[5.0, 7.0]]), np.array([[1]]))
        array([[7.]])
    """
    if isinstance(values, np.ndarray):
        return np.take_along_axis(values, index, axis=-1)
    return values.gather(-1, index)


def put_along(values: AnyArray, index: AnyArray, new: AnyArray) -> AnyArray:
    """Return a copy with other values at an index along the last axis.

    Example:
        >>> put_along(np.array([[5.0, 7.0]]), np.array([[1]]), 0.0)
        array([[5., 0.]])
    """
    if isinstance(values, np.ndarray):
        result = values.copy()
        np.put_along_axis(result, index, new, axis=-1)
        return result
    return values.scatter(-1, index, new)


def sum_by_index(values: AnyArray, index: AnyArray) -> AnyArray:
    """Return, in the shape of the values, the sum of those that share an index along the last axis.

    Example:
        >>> sum_by_index(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 0, 1]]))
        array([[3., 4., 0.]])
    """
    if not isinstance(values, np.ndarray):
        return array_namespace(values).zeros_like(values).scatter_add(-1, index, values)
    width = values.shape[-1]
    first = width * np.arange(prod(values.shape[:-1])).reshape(*values.shape[:-1], 1)
    return np.bincount((first + index).ravel(), values.ravel(), values.size).reshape(values.shape)


def search_rows(edges: AnyArray, values: AnyArray, *, right: bool = False) -> AnyArray:
    """Return where each value belongs among the ascending edges of its row.

    Args:
        edges: ``(c, b)``, ascending in each row.
        values: ``(c, m)``.
        right: Whether an edge that equals the value lies before it.

    Returns:
        ``(c, m)``: how many edges of the row are below the value (``right``: or equal to it).

    Example:
        >>> search_rows(np.array([[0.5], [0.9]]), np.array([[0.5, 0.7], [0.5, 0.95]]))
        array([[0, 1],
               [0, 1]])
    """
    if not isinstance(values, np.ndarray):
        return array_namespace(values).searchsorted(edges.contiguous(), values.contiguous(), right=right)
    # A bisection of all values at once, in a table whose width is a power of two, so that no step leaves it.
    step = 1 << edges.shape[1].bit_length()
    table = np.full((len(edges), step), np.inf, edges.dtype)
    table[:, : edges.shape[1]] = edges
    first = np.broadcast_to(step * np.arange(len(edges))[:, None], values.shape)
    position = first.copy()
    while step > 1:
        step >>= 1
        edge = table.take(position + (step - 1))
        np.add(position, step, out=position, where=edge <= values if right else edge < values)
    return position - first
