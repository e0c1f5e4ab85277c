"""Bins for one column of scores: edges of equal width or mass, and what lies in each bin."""

from __future__ import annotations

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.bins import Precision, bin_edges, bin_of

__all__ = ["bin_sums", "centers", "equal_mass_edges", "equal_width_edges"]


def equal_width_edges(n_bins: int, precision: Precision = "float64") -> Array:
    """Return the inner edges of equal bins on [0, 1]; see :func:`equipoise.core.bins.bin_edges`.

    Example:
        >>> equal_width_edges(4)
        array([0.25, 0.5 , 0.75])
    """
    return bin_edges(n_bins, precision)[1:-1]


def equal_mass_edges(values: Array, weights: Array, n_bins: int) -> Array:
    """Return inner edges so that bins hold about the same weight; midway between neighboring values.

    Equal values are never parted, so there may be fewer bins.

    Example:
        >>> equal_mass_edges(np.array([0.1, 0.2, 0.6, 0.8]), np.ones(4), 2)
        array([0.4])
        >>> equal_mass_edges(np.array([0.5, 0.5, 0.5]), np.ones(3), 3)
        array([], dtype=float64)
    """
    distinct, place = np.unique(values, return_inverse=True)
    mass = np.cumsum(np.bincount(place, weights))
    # A share of one part in 1e12 guards against sums that miss a whole number by rounding.
    wanted = mass[-1] * np.arange(1, n_bins) / n_bins * (1 - 1e-12)
    last = np.unique(np.searchsorted(mass, wanted))
    last = last[last < len(distinct) - 1]
    edges: Array = (distinct[last] + distinct[last + 1]) / 2
    return edges


def bin_sums(values: Array, targets: Array, weights: Array, edges: Array) -> tuple[Array, Array]:
    """Return the weight, and the weighted sum of targets, in every right-closed bin.

    Example:
        >>> bin_sums(np.array([0.2, 0.5, 0.9]), np.array([0.0, 1.0, 1.0]), np.ones(3), np.array([0.5]))
        (array([2., 1.]), array([1., 1.]))
    """
    place = bin_of(values, edges)
    size = len(edges) + 1
    return np.bincount(place, weights, size), np.bincount(place, weights * targets, size)


def centers(edges: Array) -> Array:
    """Return the middle of every bin on [0, 1] with these inner edges.

    Example:
        >>> centers(np.array([0.5]))
        array([0.25, 0.75])
    """
    bounds = np.concatenate([[0.0], edges, [1.0]])
    middle: Array = (bounds[1:] + bounds[:-1]) / 2
    return middle
