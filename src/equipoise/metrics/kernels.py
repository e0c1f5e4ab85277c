"""The compiled pass over probabilities: everything a CalibrationState holds, read from memory once.

Probabilities are not negative, so their bit patterns order like integers; maxima, ranks and thresholds are taken
on the bits, which compilers vectorise without assumptions about NaN. Nearly all classwise probabilities lie in the
lowest bin, so columns are summed whole, only entries above the first edge are scattered, and the caller gets the
lowest bin by subtraction.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["TINY", "accumulate", "count_up_to"]

#: The probability that stands in for an exact zero on the true class: the smallest normal float32.
TINY = 1.1754943508222875e-38

# Sums may be reordered; NaN must still propagate, because the row's sum is what reveals it.
_SUMS = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True)
def _range(bits):  # type: ignore[no-untyped-def]
    low = bits[0]
    high = bits[0]
    for j in range(bits.shape[0]):
        low = min(low, bits[j])
        high = max(high, bits[j])
    return low, high


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _sums(row):  # type: ignore[no-untyped-def]
    total = row[0] * 0
    squares = total
    for j in range(row.shape[0]):
        total += row[j]
        squares += row[j] * row[j]
    return total, squares


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _add_columns(row, weight, columns):  # type: ignore[no-untyped-def]
    for j in range(row.shape[0]):
        columns[j] += weight * row[j]


@njit(cache=True, nogil=True)
def _rank(bits, label):  # type: ignore[no-untyped-def]
    mine = bits[label]
    ahead = np.int32(0)
    for j in range(bits.shape[0]):
        ahead += np.int32(bits[j] > mine)
    for j in range(label):
        ahead += np.int32(bits[j] == mine)
    return ahead


@njit(cache=True, nogil=True)
def _above(bits, threshold, found):  # type: ignore[no-untyped-def]
    """Write the positions of entries above a threshold; return how many there are."""
    n_found = 0
    start = 0
    while start + 32 <= bits.shape[0]:
        high = bits[start]
        for j in range(start, start + 32):
            high = max(high, bits[j])
        if high > threshold:
            for j in range(start, start + 32):
                found[n_found] = j
                n_found += int(bits[j] > threshold)
        start += 32
    for j in range(start, bits.shape[0]):
        found[n_found] = j
        n_found += int(bits[j] > threshold)
    return n_found


@njit(cache=True, nogil=True)
def _bin(x, edges):  # type: ignore[no-untyped-def]
    # The product is at most one bin off, at an edge; the comparisons put it right.
    n_bins = edges.shape[0] - 1
    b = min(int(x * n_bins), n_bins - 1)
    b -= int(x <= edges[b])
    b += int(x > edges[b + 1])
    return b


@njit(cache=True, nogil=True)
def _add_cell(cell, weight, confidence, loss, brier):  # type: ignore[no-untyped-def]
    cell[0] += weight
    cell[1] += weight * confidence
    cell[2] += weight * confidence * confidence
    cell[3] += weight * loss
    cell[4] += weight * loss * loss
    cell[5] += weight * brier
    cell[6] += weight * brier * brier


@njit(cache=True, nogil=True)
def _scatter(row, found, label, weight, edges, classwise):  # type: ignore[no-untyped-def]
    for h in range(found.shape[0]):
        j = found[h]
        x = float(row[j])
        place = classwise[j, _bin(x, edges)]
        place[0] += weight
        place[1] += weight * x
        place[2] += weight * int(j == label)


@njit(cache=True, nogil=True)
def accumulate(  # type: ignore[no-untyped-def]
    probs,
    bits,
    threshold,
    labels,
    weights,
    nll,
    edges,
    tolerance,
    rows,
    cells,
    columns,
    classwise,
    ranks,
    sketch,
):
    """Add rows of probabilities to sums.

    Args:
        probs: ``(m, k)``, contiguous, float32 or float64.
        bits: The same memory as signed integers.
        threshold: Bits of the largest number of that type not above the first edge.
        labels: ``(m,)`` int64, in range.
        weights: ``(m,)`` float64, or empty for ones.
        nll: ``(m,)`` float64 negative log-likelihoods, or empty to take them from ``probs``.
        edges: From :func:`equipoise.metrics.bins.lower_edges`.
        tolerance: How far a row's sum may be from one.
        rows: ``(bins, 2)`` int64: rows by bin and correctness.
        cells: ``(bins, 2, 7)``: sums of weight, confidence, its square, nll, its square, Brier, its square.
        columns: ``(k, 2)``: column sums of probability, and weight of the rows labelled so.
        classwise: ``(k, bins, 3)``: weight, probability, positives; entries of the lowest bin are left out.
        ranks: ``(r + 1,)``: weight of rows whose true class has rank 0 ... r - 1, and the rest.
        sketch: ``(f, 3)``: weight, confidence, correct over a fine grid of confidence.

    Returns:
        The first row that is no distribution, or holds a negative zero, where it stopped, or -1; and the rows that
        gave the true class no probability.
    """
    found = np.empty(probs.shape[1] + 1, np.int64)
    column_sums = np.zeros(probs.shape[1])
    value = np.empty(1, probs.dtype)
    value_bits = value.view(bits.dtype)
    one = probs.dtype.type(1)
    impossible, bad = 0, -1
    for i in range(probs.shape[0]):
        row, row_bits, label = probs[i], bits[i], labels[i]
        weight = weights[i] if weights.shape[0] else 1.0
        low, high = _range(row_bits)
        total, squares = _sums(row)
        if not (abs(total - one) <= tolerance) or low < 0:
            bad = i
            break
        value_bits[0] = high
        confidence = min(float(value[0]), 1.0)
        mine = float(row[label])
        if nll.shape[0]:
            loss = nll[i]
        else:
            loss = -math.log(max(mine, TINY))
            impossible += int(mine <= 0.0)
        rank = _rank(row_bits, label)
        correct = int(rank == 0)
        b = _bin(confidence, edges)
        rows[b, correct] += 1
        brier = max(float(squares) - 2.0 * mine + 1.0, 0.0)
        _add_cell(cells[b, correct], weight, confidence, loss, brier)
        ranks[min(rank, ranks.shape[0] - 1)] += weight
        fine = sketch[min(int(confidence * sketch.shape[0]), sketch.shape[0] - 1)]
        fine[0] += weight
        fine[1] += weight * confidence
        fine[2] += weight * correct
        columns[label, 1] += weight
        _add_columns(row, weight, column_sums)
        _scatter(row, found[: _above(row_bits, threshold, found)], label, weight, edges, classwise)
    columns[:, 0] += column_sums
    return bad, impossible


@njit(cache=True, nogil=True)
def count_up_to(columns, edges):  # type: ignore[no-untyped-def]
    """Return for each row of sorted numbers how many are at most each edge."""
    counts = np.empty(edges.shape, np.int64)
    for k in range(edges.shape[0]):
        counts[k] = np.searchsorted(columns[k], edges[k], side="right")
    return counts
