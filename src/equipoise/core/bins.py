"""Bins of equal width on [0, 1]: every number lies in exactly one bin, by exact comparison with k/n."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args, overload

import numpy as np

from equipoise.core.arrays import Array, is_tensor, round_to_bfloat16
from equipoise.core.choices import MOST_BINS
from equipoise.core.names import check_choice

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Precision",
    "bin_edges",
    "bin_of",
    "bin_of_share",
    "check_bins",
    "expected_error",
    "lower_edges",
    "precision_of",
]


#: Types in which probabilities are given; edges of bins are compared in the same precision.
Precision: TypeAlias = Literal["bfloat16", "float16", "float32", "float64"]


def bin_edges(n_bins: int, precision: Precision = "float64") -> Array:
    """Return the ``n_bins + 1`` edges k/n of bins of equal width, each rounded once.

    Args:
        n_bins: Number of bins.
        precision: Type in which the numbers to compare were given. A probability of 7/10 that was stored in float32
            lies on the edge 7/10, as it does in float64.

    Returns:
        Edges, as float64.

    Example:
        >>> bin_edges(10)[3] == 0.3, bin_edges(10, "float32")[3] == np.float32(0.3)
        (np.True_, np.True_)
    """
    edges: Array = np.arange(n_bins + 1) / n_bins
    if precision == "bfloat16":  # NumPy has no such type
        return round_to_bfloat16(edges).astype(np.float64)
    return edges.astype(precision).astype(np.float64)


def lower_edges(n_bins: int, closed: str, precision: Precision = "float64") -> Array:
    """Return ``n_bins + 1`` thresholds such that ``x`` is in bin ``b`` if ``edge[b] < x <= edge[b + 1]``.

    The inner thresholds are those of :func:`bin_edges`. The first is below zero and the last above one, so 0 and 1
    always have a bin. Bins closed on the left use the same comparison with every inner threshold moved to the next
    smaller number.

    Args:
        n_bins: Number of bins of equal width.
        closed: ``"right"`` for (low, high], ``"left"`` for [low, high).
        precision: Type in which the numbers to compare were given.

    Returns:
        Thresholds in float64.

    Example:
        >>> lower_edges(2, "right")
        array([-1. ,  0.5,  2. ])
        >>> lower_edges(2, "left")[1] < 0.5
        np.True_
    """
    edges = bin_edges(n_bins, precision)
    if closed == "left":
        edges[1:-1] = np.nextafter(edges[1:-1], -1.0)
    edges[0], edges[-1] = -1.0, 2.0
    return edges


def precision_of(values: Any) -> Precision:
    """Return the precision in which numbers were given; float64 for whole numbers and lists.

    Example:
        >>> precision_of(np.zeros(1, np.float16)), precision_of([0.5])
        ('float16', 'float64')
    """
    name = str(getattr(values, "dtype", "")).removeprefix("torch.")
    return cast(Precision, name) if name in get_args(Precision) else "float64"


@overload
def bin_of(values: Array, inner: Array, *, closed: str = ...) -> Array: ...
@overload
def bin_of(values: Tensor, inner: Tensor, *, closed: str = ...) -> Tensor: ...
def bin_of(values: Array | Tensor, inner: Array | Tensor, *, closed: str = "right") -> Array | Tensor:
    """Return the bin that each value lies in.

    Args:
        values: Arrays or tensors of any shape.
        inner: The edges between bins, ascending, of the same kind and device; one fewer than there are bins. For
            tensors also one row of edges per row of values.
        closed: Which side of a bin belongs to it: a value on an edge is in the bin below (``"right"``) or above
            (``"left"``). The thresholds of :func:`lower_edges` include the side and always go with
            ``"right"``.

    Returns:
        Bin numbers, in the shape of the values.

    Example:
        >>> bin_of(np.array([0.0, 0.5, 0.6]), np.array([0.5]))
        array([0, 0, 1])
        >>> bin_of(np.array([0.0, 0.5, 0.6]), np.array([0.5]), closed="left")
        array([0, 1, 1])
    """
    if is_tensor(values):
        import torch

        edges = inner if is_tensor(inner) else torch.from_numpy(inner)
        return torch.searchsorted(edges.contiguous(), values.contiguous(), right=closed == "left")
    return np.searchsorted(inner, values, side="right" if closed == "left" else "left")


def bin_of_share(shares: Array, edges: Array) -> Array:
    """Return the bin that each number from 0 to 1 lies in, as :func:`bin_of` does, in a fraction of its time.

    Args:
        shares: An array of any shape.
        edges: The thresholds of :func:`lower_edges`.

    Example:
        >>> bin_of_share(np.array([0.0, 0.5, 0.6]), lower_edges(2, "right"))
        array([0, 0, 1])
    """
    n_bins = len(edges) - 1
    # In half precision, the edges of very many bins are further from k/n than from others.
    if (np.abs(edges[1:-1] * n_bins - np.arange(1, n_bins)) > 0.5).any():
        return bin_of(shares, edges[1:-1])
    # The product is at most one bin off, at an edge, and comparisons decide.
    near = np.minimum((shares * float(n_bins)).astype(np.int64), n_bins - 1)
    place: Array = near + (shares > edges[1:].take(near))
    place -= shares <= edges.take(near)
    return place


def expected_error(gaps: Array, weight: Array | float) -> Array:
    """Return the expected calibration error of one or many sets of bins: the mean gap over bins, each by its weight.

    Args:
        gaps: Sum over the rows of each bin of confidence minus outcome, ``(..., bins)``.
        weight: Weight of all rows together, ``(...)``.

    Returns:
        Errors, ``(...)``.

    Example:
        >>> float(expected_error(np.array([-0.5, 1.0]), 4.0))
        0.375
    """
    error: Array = np.abs(gaps).sum(axis=-1) / weight
    return error


def check_bins(n_bins: int, closed: str, *, where: str) -> None:
    """Raise unless there is at least one bin, and at most :data:`MOST_BINS`, and ``closed`` is a side.

    Example:
        >>> check_bins(0, "right", where="ece")
        Traceback (most recent call last):
        ...
        ValueError: ece: `n_bins` must be a whole number of at least 1, got 0. The field uses 15.
    """
    if not isinstance(n_bins, (int, np.integer)) or isinstance(n_bins, bool) or n_bins < 1:
        raise ValueError(
            f"{where}: `n_bins` must be a whole number of at least 1, got {n_bins!r}. The field uses 15."
        )
    if n_bins > MOST_BINS:
        raise ValueError(f"{where}: `n_bins` must be at most {MOST_BINS}, got {n_bins}. The field uses 15.")
    check_choice(closed, ("right", "left"), where=where, name="closed")
