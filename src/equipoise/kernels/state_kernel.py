"""The compiled loops that add rows to the sums of a CalibrationState.

Their oracles are :func:`equipoise.core.probabilities.shift_rows` and :func:`equipoise.metrics.accumulate.add_rows`.
"""

from __future__ import annotations

import numpy as np

from equipoise.kernels.cache import jit

__all__ = ["add_rows", "shift_rows"]

# So many columns are compared at once: a maximum of all columns one by one would not become vector instructions.
_LANES = 8


@jit()
def shift_rows(logits, shifted, column):  # type: ignore[no-untyped-def]
    """Subtract the largest logit of each row, without branches, which the processor could not predict.

    Args:
        logits: ``(n, k)`` float32 or float64.
        shifted: ``(n, k)`` of the same type, written.
        column: ``(n,)`` int64, written: the column of the largest logit, the first of equals.

    Returns:
        The first row with a logit that is not finite, or -1.
    """
    n, k = logits.shape
    lanes, whole = np.empty(_LANES, logits.dtype), k // _LANES * _LANES
    for i in range(n):
        highest = logits[i, 0]
        if whole:
            for lane in range(_LANES):
                lanes[lane] = logits[i, lane]
            for start in range(_LANES, whole, _LANES):
                for lane in range(_LANES):
                    lanes[lane] = max(lanes[lane], logits[i, start + lane])
            for lane in range(_LANES):
                highest = max(highest, lanes[lane])
        for j in range(whole, k):
            highest = max(highest, logits[i, j])
        first, infinite = np.int32(k), np.int32(0)
        for j in range(k):
            x = logits[i, j]
            shifted[i, j] = x - highest
            first = min(first, np.int32(j) if x == highest else np.int32(k))
            infinite += np.int32(not abs(x) < np.inf)
        if infinite:
            return i
        column[i] = first
    return -1


# Indices are unsigned where they are computed: signed ones would be compared with zero at every access.
@jit(inline="always", error_model="numpy")
def _bin(x, edges, n_bins):  # type: ignore[no-untyped-def]
    """Return the bin of a number from 0; the product is at most one bin off, at an edge, and comparisons decide."""
    b = min(np.uint32(x * n_bins), np.uint32(n_bins - 1))
    return np.uint64(b + np.uint32(x > edges[b + np.uint32(1)]) - np.uint32(x <= edges[b]))


# Sums may be reordered, but NaN must propagate: the sum of a row is what reveals it.
@jit(error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def add_rows(  # type: ignore[no-untyped-def]  # noqa: PLR0915 - one loop, which a call per step would slow down
    scores, shares, totals, are_logits, labels, column, weights, confidences,
    edges, limits, counts, impossible, cells, classwise, ranks, sketch,
    lowest, lowest_weight, per_row, places, above, eights, some, found,
):  # fmt: skip
    """Add rows to sums. Every array is contiguous, and nothing else writes to it.

    Most probabilities of many classes lie in the lowest bin. These are summed class by class, in a loop that the
    compiler turns into vector instructions; only the others are added to their bins one by one.

    Args:
        scores: ``(n, k)`` float32 or float64: what orders the classes.
        shares: ``(n, k)`` of the same type: probabilities, or exponentials of logits.
        totals: ``(n,)`` float64: what shares of logits are divided by, their sums; of probabilities one.
        are_logits: Whether they are.
        labels: ``(n,)`` int64.
        column: ``(n,)`` int64: of logits, the class of the highest score, the first of equals.
        weights: ``(n,)`` float64.
        confidences: ``(n,)`` float64: memory for the probability of that class.
        edges: From :func:`equipoise.core.bins.lower_edges`.
        limits: How far the sum of a row's probabilities, and the largest of them, may be from one; and the least
            probability of the true class in the loss.
        counts: ``(bins, 2)`` int64, added to.
        impossible: ``(1,)`` int64, added to.
        cells: ``(bins, 2, 7)``, added to.
        classwise: ``(k, bins, 3)``, added to.
        ranks: ``(r + 1,)``, added to.
        sketch: ``(m, 3)``, added to.
        lowest: ``(k,)``: memory, as all that follow. Arrays made here would take longer to compile.
        lowest_weight: ``(k,)``: memory.
        per_row: ``(n, 2)`` or longer: memory.
        places: ``(n, 2)`` int64 or longer: memory.
        above: ``(n * width,)`` uint8 or longer, of which every row has k rounded up to eights; zero beyond k.
        eights: The same memory as uint64.
        some: ``(n * width / 8 + 1,)`` int64 or longer: memory.
        found: ``(n * width + 1,)`` uint32 or longer: memory.

    Returns:
        The first row that is not a distribution or whose label is not a class, after which the sums are invalid, or -1.
    """
    n, k = shares.shape
    n_bins, n_fine, n_ranks, first = edges.shape[0] - 1, sketch.shape[0], ranks.shape[0], edges[1]
    width = (k + 7) // 8 * 8
    for j in range(k):
        lowest[j], lowest_weight[j] = 0.0, 0.0
    for i in range(n):
        label, weight, start = labels[i], weights[i], i * width
        if label < 0 or label >= k:
            return i
        factor, own = 1.0 / totals[i], scores[i, label]
        total, square, negative, larger, equal = 0.0, 0.0, 0, 0, 0
        for j in range(k):
            p = np.float64(shares[i, j]) * factor
            total += p
            square += p * p
            negative += int(p < 0.0)
            larger += int(scores[i, j] > own)
            equal += int(scores[i, j] == own)
            above[start + j] = p > first
            lowest_weight[j] += 0.0 if p > first else weight
            lowest[j] += 0.0 if p > first else weight * p
        if negative or not abs(total - 1.0) <= limits[0]:
            return i
        per_row[i, 0], per_row[i, 1], places[i, 0], places[i, 1] = factor, square, larger, 0
        confidences[i] = factor if are_logits else 0.0  # the largest exponential is one
        if equal > 1:  # of equal scores the first ranks first
            for j in range(label):
                places[i, 0] += int(scores[i, j] == own)
    # Probabilities above the first edge are listed without branches, which the processor could not predict: by eights
    # of them, then one by one.
    n_some = 0
    for e in range(n * width // 8):
        some[np.uint64(n_some)] = e
        n_some += int(eights[e] != 0)
    n_found = 0
    for s in range(n_some):
        for place in range(8 * some[s], 8 * some[s] + 8):
            found[np.uint64(n_found)] = place
            n_found += above[place]
    for f in range(n_found):
        i = found[f] // np.uint32(width)
        j = found[f] - i * np.uint32(width)
        p, weight = np.float64(shares[i, j]) * per_row[i, 0], weights[i]
        b = _bin(p, edges, n_bins)
        classwise[j, b, 0] += weight
        classwise[j, b, 1] += weight * p
        confidences[i], places[i, 1] = max(confidences[i], p), max(places[i, 1], np.int64(b))
    for j in range(k):
        classwise[j, 0, 0] += lowest_weight[j]
        classwise[j, 0, 1] += lowest[j]
    for i in range(n):
        label, weight, confidence = labels[i], weights[i], confidences[i]
        mine = np.float64(shares[i, label]) * per_row[i, 0]
        if confidence == 0.0:  # all lie in the lowest bin
            for j in range(k):
                confidence = max(confidence, np.float64(shares[i, j]))
        if confidence > 1.0 + limits[1]:
            return i
        confidence = min(confidence, 1.0)
        confidences[i] = confidence
        if are_logits:
            loss = np.log(totals[i]) + (np.float64(scores[i, column[i]]) - np.float64(scores[i, label]))
        else:
            loss = -np.log(max(mine, limits[2]))
            impossible[0] += int(mine <= 0.0)
        brier = max(per_row[i, 1] - 2.0 * mine + 1.0, 0.0)
        classwise[label, _bin(mine, edges, n_bins), 2] += weight
        rank, b = places[i, 0], places[i, 1]
        hit = int(rank == 0)
        counts[b, hit] += 1
        cell = cells[b, hit]
        cell[0] += weight
        cell[1] += weight * confidence
        cell[2] += weight * confidence * confidence
        cell[3] += weight * loss
        cell[4] += weight * loss * loss
        cell[5] += weight * brier
        cell[6] += weight * brier * brier
        ranks[min(rank, n_ranks - 1)] += weight
        s = min(int(confidence * n_fine), n_fine - 1)
        sketch[s, 0] += weight
        sketch[s, 1] += weight * confidence
        sketch[s, 2] += weight * hit
    return -1
