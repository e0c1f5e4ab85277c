"""The compiled loop that adds rows to the sums of a CalibrationState.

Its oracle is :func:`equipoise.metrics.accumulate.add_rows`.
"""

from __future__ import annotations

import numpy as np

from equipoise.kernels.cache import jit

__all__ = ["add_rows"]


@jit()
def _bin(x, edges, n_bins):  # type: ignore[no-untyped-def]
    """Return the bin of a number; the product is at most one bin off, at an edge, and comparisons decide."""
    b = min(max(int(x * n_bins), 0), n_bins - 1)
    return b + int(x > edges[b + 1]) - int(x <= edges[b])


# Sums may be reordered, but NaN must propagate: the sum of a row is what reveals it.
@jit(fastmath={"reassoc", "contract", "nsz", "arcp"})
def add_rows(  # type: ignore[no-untyped-def]  # noqa: PLR0915 - one loop, which a call per step would slow down
    scores, shares, rows, edges, limits, counts, cells, classwise, ranks, sketch
):
    """Add rows to sums. Every array is contiguous, and nothing else writes to it.

    Most probabilities of many classes lie in the lowest bin. These are summed class by class, in a loop that the
    compiler turns into vector instructions; only the others are added to their bins one by one.

    Args:
        scores: ``(n, k)`` float32 or float64: what orders the classes.
        shares: ``(n, k)`` of the same type: probabilities up to a factor.
        rows: Columns ``(n,)``: label from 0 to k - 1, factor of the shares, loss, weight.
        edges: From :func:`equipoise.core.bins.lower_edges`.
        limits: How far the sum of a row's probabilities, and the largest of them, may be from one.
        counts: ``(bins, 2)`` int64, added to.
        cells: ``(bins, 2, 7)``, added to.
        classwise: ``(k, bins, 3)``, added to.
        ranks: ``(r + 1,)``, added to.
        sketch: ``(m, 3)``, added to.

    Returns:
        The first row that is not a distribution, after which the sums are invalid, or -1.
    """
    labels, factors, losses, weights = rows
    n, k = shares.shape
    n_bins, n_fine, n_ranks, first = edges.shape[0] - 1, sketch.shape[0], ranks.shape[0], edges[1]
    lowest, lowest_weight = np.zeros(k), np.zeros(k)
    squares, rank, ties, highest = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n)
    width = (k + 7) // 8 * 8
    above = np.zeros(n * width, np.uint8)
    for i in range(n):
        factor, weight, own, start = factors[i], weights[i], scores[i, labels[i]], i * width
        total, square, negative, larger, equal = 0.0, 0.0, 0, 0, 0
        for j in range(k):
            p = np.float64(shares[i, j]) * factor
            total += p
            square += p * p
            negative += int(p < 0.0)
            larger += int(scores[i, j] > own)
            equal += int(scores[i, j] == own)
            above[start + j] = p > first
            lowest[j] += 0.0 if p > first else weight * p
            lowest_weight[j] += 0.0 if p > first else weight
        if negative or not abs(total - 1.0) <= limits[0]:
            return i
        squares[i], rank[i], ties[i] = square, larger, equal
    # Probabilities above the first edge are listed without branches, which the processor could not predict: by eights
    # of them, then one by one.
    eights = above.view(np.uint64)
    some, n_some = np.empty(eights.shape[0] + 1, np.int64), 0
    for e in range(eights.shape[0]):
        some[n_some] = e
        n_some += int(eights[e] != 0)
    found, n_found = np.empty(8 * n_some + 1, np.int64), 0
    for s in range(n_some):
        for place in range(8 * some[s], 8 * some[s] + 8):
            found[n_found] = place
            n_found += above[place]
    for f in range(n_found):
        i = found[f] // width
        j = found[f] - i * width
        p, weight = np.float64(shares[i, j]) * factors[i], weights[i]
        b = _bin(p, edges, n_bins)
        classwise[j, b, 0] += weight
        classwise[j, b, 1] += weight * p
        highest[i] = max(highest[i], p)
    for j in range(k):
        classwise[j, 0, 0] += lowest_weight[j]
        classwise[j, 0, 1] += lowest[j]
    for i in range(n):
        label, weight, loss, confidence = labels[i], weights[i], losses[i], highest[i]
        if confidence == 0.0:  # all lie in the lowest bin
            for j in range(k):
                confidence = max(confidence, np.float64(shares[i, j]) * factors[i])
        if confidence > 1.0 + limits[1]:
            return i
        confidence = min(confidence, 1.0)
        if ties[i] > 1:  # of equal scores the first ranks first
            for j in range(label):
                rank[i] += int(scores[i, j] == scores[i, label])
        mine, hit = np.float64(shares[i, label]) * factors[i], int(rank[i] == 0)
        brier = max(squares[i] - 2.0 * mine + 1.0, 0.0)
        classwise[label, _bin(mine, edges, n_bins), 2] += weight
        b = _bin(confidence, edges, n_bins)
        counts[b, hit] += 1
        cells[b, hit, 0] += weight
        cells[b, hit, 1] += weight * confidence
        cells[b, hit, 2] += weight * confidence * confidence
        cells[b, hit, 3] += weight * loss
        cells[b, hit, 4] += weight * loss * loss
        cells[b, hit, 5] += weight * brier
        cells[b, hit, 6] += weight * brier * brier
        ranks[min(rank[i], n_ranks - 1)] += weight
        s = min(int(confidence * n_fine), n_fine - 1)
        sketch[s, 0] += weight
        sketch[s, 1] += weight * confidence
        sketch[s, 2] += weight * hit
    return -1
