"""Compiled passes over logits: likelihood and its derivatives in 1/T, and confidences at many temperatures.

Their oracles are the plain ways in :mod:`equipoise.calibrators.temperature_search`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.compiled.bin_place import bin_place
from equipoise.compiled.blocks import BLOCK
from equipoise.compiled.elementary import exponentials
from equipoise.compiled.jit import jit
from equipoise.compiled.pointers import at

__all__ = ["gaps_by_bin", "likelihood_at"]

# So many numbers stay in the first-level cache beside their exponentials.
_BUFFER = 2048


@jit(fastmath=True)
def _largest(row: Any) -> Any:
    """Return the largest entry; four running maxima keep the loop free of a serial dependency."""
    size = row.shape[0]
    a = b = c = d = row[0]
    for j in range(0, size - 3, 4):
        a, b, c, d = max(a, row[j]), max(b, row[j + 1]), max(c, row[j + 2]), max(d, row[j + 3])
    for j in range(size - size % 4, size):
        a = max(a, row[j])
    return max(a, b, c, d)


@jit(fastmath=True)
def _gaps(logits: Any, first: int, last: int, gaps: Any) -> None:
    """Write each row's distances below its largest logit, row after row, in the precision of what is written."""
    k, kind = logits.shape[1], gaps.dtype.type
    for i in range(first, last):
        row = logits[i]
        top = kind(_largest(row))
        out = gaps[(i - first) * k : (i - first + 1) * k]
        for j in range(k):
            out[j] = kind(row[j]) - top


@jit(fastmath=True)
def likelihood_at(logits: Any, labels: Any, weights: Any, beta: float, start: int, stop: int) -> Any:
    """Return the sums over rows of NLL(beta * logits), its first and second derivative, and the weight.

    Args:
        logits: ``(n, k)``, float32 or float64; read once, in blocks that stay in the first-level cache.
        labels: ``(n,)`` int64.
        weights: ``(n,)``, or empty for ones.
        beta: Inverse temperature.
        start: First row.
        stop: Row after the last.

    Returns:
        Four sums, accumulated in float64.
    """
    k = logits.shape[1]
    per_block = max(1, _BUFFER // k)
    room = max(per_block * k, BLOCK)  # a whole block, however few numbers there are
    gaps, x = np.empty(room), np.empty(room)
    value = slope = curvature = total = 0.0
    for first in range(start, stop, per_block):
        last = min(first + per_block, stop)
        size = (last - first) * k
        _gaps(logits, first, last, gaps)
        exponentials(at(gaps, 0), size, beta, at(x, 0))
        for i in range(first, last):
            d = gaps[(i - first) * k : (i - first + 1) * k]
            e = x[(i - first) * k : (i - first + 1) * k]
            zeroth = once = twice = 0.0
            for j in range(k):
                weighted = e[j] * d[j]
                zeroth += e[j]
                once += weighted
                twice += weighted * d[j]
            mean = once / zeroth
            own = d[labels[i]]
            weight = weights[i] if weights.shape[0] > 0 else 1.0
            value += weight * (np.log(zeroth) - beta * own)
            slope += weight * (mean - own)
            curvature += weight * (twice / zeroth - mean * mean)
            total += weight
    return value, slope, curvature, total


@jit(fastmath=True)
def _total(numbers: Any) -> float:
    total = 0.0
    for j in range(numbers.shape[0]):
        total += numbers[j]
    return total


@jit(fastmath=True)
def gaps_by_bin(logits: Any, labels: Any, weights: Any, betas: Any, edges: Any, start: int, stop: int) -> Any:
    """Bin top-label confidences at many temperatures, some rows after the other while they are in the cache.

    Exponentials are taken in the precision of the logits and summed in float64.

    Args:
        logits: ``(n, k)``, float32 or float64.
        labels: ``(n,)`` int64.
        weights: ``(n,)``, or empty for ones.
        betas: Inverse temperatures, of the type of the logits.
        edges: From :func:`equipoise.core.bins.lower_edges`.
        start: First row.
        stop: Row after the last.

    Returns:
        ``(t, n_bins)``: sums of weight x (confidence - correct).
    """
    k, n_bins = logits.shape[1], edges.shape[0] - 1
    per_block = max(1, _BUFFER // k)
    room = max(per_block * k, BLOCK)
    gaps, x = np.empty(room, logits.dtype), np.empty(room, logits.dtype)
    hit, table = np.empty(per_block), np.zeros((betas.shape[0], n_bins))
    for first in range(start, stop, per_block):
        last = min(first + per_block, stop)
        _gaps(logits, first, last, gaps)
        for i in range(first, last):
            predicted = 0
            while gaps[(i - first) * k + predicted] < 0:  # of equals the first
                predicted += 1
            hit[i - first] = 1.0 if predicted == labels[i] else 0.0
        for t in range(betas.shape[0]):
            exponentials(at(gaps, 0), (last - first) * k, betas[t], at(x, 0))
            for i in range(first, last):
                confidence = min(1.0 / _total(x[(i - first) * k : (i - first + 1) * k]), 1.0)
                weight = weights[i] if weights.shape[0] > 0 else 1.0
                table[t, bin_place(confidence, edges)] += weight * (confidence - hit[i - first])
    return table
