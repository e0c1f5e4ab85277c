"""The compiled pass that adds rows to the sums of their slices; its oracle is the plain way in `evaluate.slices`."""

from __future__ import annotations

from equipoise.compiled.bin_place import bin_place
from equipoise.compiled.jit import jit

__all__ = ["add_rows_to_slices"]


@jit()
def add_rows_to_slices(confidence, correct, weights, places, edges, rows, bins, squares):  # type: ignore[no-untyped-def]
    """Add rows to sums of fixed size.

    Args:
        confidence: ``(m,)`` float32 or float64 in [0, 1].
        correct: ``(m,)`` bool.
        weights: ``(m,)`` float64, or empty for ones.
        places: ``(m,)`` int64: the slice of each row.
        edges: From :func:`equipoise.core.bins.lower_edges`.
        rows: ``(s,)`` int64: rows of each slice.
        bins: ``(s, bins, 3)``: weight, confidence, correct.
        squares: ``(s, 3)``: squared weight; with it the gap between confidence and outcome, and the squared gap.
    """
    for i in range(confidence.shape[0]):
        x, weight, place = float(confidence[i]), 1.0, places[i]
        if weights.shape[0]:
            weight = weights[i]
        hit = 1.0 if correct[i] else 0.0
        gap, square = x - hit, weight * weight
        rows[place] += 1
        cell, sums = bins[place, bin_place(x, edges)], squares[place]
        cell[0] += weight
        cell[1] += weight * x
        cell[2] += weight * hit
        sums[0] += square
        sums[1] += square * gap
        sums[2] += square * gap * gap
