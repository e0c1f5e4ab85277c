"""Equal-width bins in which every number from 0 to 1 has exactly one place."""

from __future__ import annotations

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.names import check_choice

__all__ = ["check_bins", "float_below", "lower_edges"]


def lower_edges(n_bins: int, closed: str) -> Array:
    """Return ``n_bins + 1`` thresholds such that ``x`` is in bin ``b`` if ``edge[b] < x <= edge[b + 1]``.

    The first threshold is below zero and the last above one, so 0 and 1 always have a bin. Bins closed on the left
    use the same comparison with every inner threshold moved to the next smaller number.

    Args:
        n_bins: How many bins of equal width.
        closed: ``"right"`` for (low, high], ``"left"`` for [low, high).

    Returns:
        Thresholds in float64.

    Example:
        >>> lower_edges(2, "right")
        array([-1. ,  0.5,  2. ])
        >>> lower_edges(2, "left")[1] < 0.5
        np.True_
    """
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    if closed == "left":
        edges = np.nextafter(edges, -1.0)
    edges[0], edges[-1] = -1.0, 2.0
    return edges


def float_below(value: float, dtype: np.dtype[np.floating]) -> np.floating:
    """Return the largest number of a type that is not above ``value``, so that comparisons agree with float64.

    Example:
        >>> float(float_below(0.1, np.dtype(np.float32))) <= 0.1
        True
    """
    rounded = dtype.type(value)
    return np.nextafter(rounded, dtype.type(-np.inf)) if float(rounded) > value else rounded


def check_bins(n_bins: int, closed: str, *, where: str) -> None:
    """Raise unless there is at least one bin and ``closed`` is a side.

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
    check_choice(closed, ("right", "left"), where=where, name="closed")
