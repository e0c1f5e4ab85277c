"""Compiled passes over logits: likelihood and its derivatives in 1/T, confidences at many temperatures.

Imported only when a temperature is fitted, because numba takes a second to import.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from equipoise.core.elementary import exponentials
from equipoise.core.lanes import BLOCK, at

__all__ = ["confidence_bins", "temperature_pass"]

_BUFFER = 2048
_LANES = BLOCK // 8


@njit(cache=True, nogil=True, fastmath=True)
def _largest(row: Any) -> Any:
    """Return the largest entry; four running maxima keep the loop free of a serial dependency."""
    size = row.shape[0]
    a = b = c = d = row[0]
    for j in range(0, size - 3, 4):
        a, b, c, d = max(a, row[j]), max(b, row[j + 1]), max(c, row[j + 2]), max(d, row[j + 3])
    for j in range(size - size % 4, size):
        a = max(a, row[j])
    return max(a, b, c, d)


@njit(cache=True, nogil=True, fastmath=True)
def _gaps(logits: Any, first: int, last: int, gaps: Any) -> None:
    """Write each row's distances below its largest logit, row after row."""
    k = logits.shape[1]
    for i in range(first, last):
        row = logits[i]
        top = np.float64(_largest(row))
        out = gaps[(i - first) * k : (i - first + 1) * k]
        for j in range(k):
            out[j] = np.float64(row[j]) - top


@njit(cache=True, nogil=True, fastmath=True)
def temperature_pass(logits: Any, labels: Any, weights: Any, beta: float, start: int, stop: int) -> Any:
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
    room = max(per_block * k, _LANES)
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


@njit(cache=True, nogil=True, fastmath=True)
def _square_and_sum(e: Any) -> float:
    """Square in place and sum; what cannot matter any more becomes 0, before it turns denormal and slow."""
    total = 0.0
    for j in range(e.shape[0]):
        value = e[j] * e[j] if e[j] > 1e-60 else 0.0
        e[j] = value
        total += value
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _dot(short: Any, long: Any) -> float:
    total = 0.0
    for j in range(short.shape[0]):
        total += short[j] * long[j]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _sum(e: Any) -> float:
    total = 0.0
    for j in range(e.shape[0]):
        total += e[j]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _ladder(gaps: Any, n_rows: int, k: int, betas: Any, octaves: int, x: Any, sums: Any) -> None:
    """Fill ``sums[row, octave * len(betas) + r]`` with the partition function at ``betas[r] * 2**octave``.

    Doubling an inverse temperature squares every exponential, so one exponential serves a whole column.
    """
    rungs = betas.shape[0]
    size = n_rows * k
    for r in range(rungs):
        exponentials(at(gaps, 0), size, betas[r], at(x, 0))
        for i in range(n_rows):
            sums[i, r] = _sum(x[i * k : (i + 1) * k])
        for octave in range(1, octaves):
            for i in range(n_rows):
                sums[i, octave * rungs + r] = _square_and_sum(x[i * k : (i + 1) * k])


@njit(cache=True, nogil=True, fastmath=True)
def confidence_bins(
    logits: Any,
    labels: Any,
    weights: Any,
    betas: Any,
    octaves: int,
    offsets: Any,
    stencils: Any,
    edges: Any,
    start: int,
    stop: int,
) -> Any:
    """Bin top-label confidences at many temperatures in one pass over the logits.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)`` int64.
        weights: ``(n,)``, or empty for ones.
        betas: Inverse temperatures of the lowest octave.
        octaves: How often they are doubled.
        offsets: For each wanted temperature, the first rung it is interpolated from.
        stencils: For each wanted temperature, the interpolation weights ``(t, width)``.
        edges: Bin edges; bins are right-closed.
        start: First row.
        stop: Row after the last.

    Returns:
        ``(t, n_bins)``: sums of weight x (confidence - correct).
    """
    k, n_bins, wanted = logits.shape[1], edges.shape[0] - 1, offsets.shape[0]
    per_block = max(1, _BUFFER // k)
    room = max(per_block * k, _LANES)
    gaps, x = np.empty(room), np.empty(room)
    sums = np.empty((per_block, octaves * betas.shape[0]))
    table = np.zeros((wanted, n_bins))
    for first in range(start, stop, per_block):
        last = min(first + per_block, stop)
        _gaps(logits, first, last, gaps)
        _ladder(gaps, last - first, k, betas, octaves, x, sums)
        for i in range(first, last):
            predicted = 0
            while gaps[(i - first) * k + predicted] < 0.0:
                predicted += 1
            correct = 1.0 if predicted == labels[i] else 0.0
            weight = weights[i] if weights.shape[0] > 0 else 1.0
            for t in range(wanted):
                partition = _dot(stencils[t], sums[i - first, offsets[t] :])
                confidence = min(1.0 / partition, 1.0)
                b = min(int(confidence * n_bins), n_bins - 1)
                while b > 0 and confidence <= edges[b]:
                    b -= 1
                while b < n_bins - 1 and confidence > edges[b + 1]:
                    b += 1
                table[t, b] += weight * (confidence - correct)
    return table
