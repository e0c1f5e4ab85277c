"""The compiled pass over logits or probabilities: everything a CalibrationState holds, read from memory once.

Nearly all classwise probabilities lie in the lowest bin, so columns are summed whole, only entries above the first edge
are scattered, and the caller gets the lowest bin by subtraction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from equipoise.core.elementary import logarithms
from equipoise.core.lanes import (
    BLOCK,
    Block,
    Row,
    Running,
    Vector,
    add_pair,
    at,
    first_bit,
    number_at,
    over_blocks,
)
from equipoise.core.softmax_kernel import softmax_row

__all__ = ["TINY", "accumulate", "count_up_to", "fill_lowest"]

#: The probability that stands in for an exact zero on the true class: the smallest normal float32.
TINY = 1.1754943508222875e-38

# Logarithms are taken of so many rows at once.
_BATCH = 64


@intrinsic
def _scan(_typing, row, size, scores, label, weight, threshold, columns, masks):  # type: ignore[no-untyped-def]
    """Read a row once, for all that needs every entry.

    Args:
        row: Pointer to probabilities; at least one block of memory.
        size: How many of them are the row.
        scores: Pointer to logits or probabilities of the row, by which classes are ranked.
        label: The true class.
        weight: Of the row.
        threshold: Entries above it are to be found.
        columns: Pointer to as many float64; the weighted row is added.
        masks: Pointer to uint64, written: one bit per entry, set above the threshold.

    Returns:
        The sum, the sum of squares, the largest, the smallest, and how many entries rank before the true class.
    """
    signature = types.Tuple((row.dtype, row.dtype, row.dtype, row.dtype, types.int64))(
        row, size, scores, label, weight, threshold, columns, masks
    )

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        probs, order, sums, found = (
            Row(context, builder, signature.args[place], arguments[place]) for place in (0, 2, 6, 7)
        )
        lanes, zeros = probs.lanes, probs.zeros()

        def everywhere(scalar: Any) -> Vector:
            return Vector.filled(builder, scalar, lanes)

        def place(scalar: Any) -> Vector:
            return everywhere(scalar if zeros.width == 64 else builder.trunc(scalar, ir.IntType(zeros.width)))

        own = everywhere(builder.load(builder.gep(order.data, [arguments[3]])))
        truth, each, lowest = place(arguments[3]), everywhere(arguments[4]), everywhere(arguments[5])
        numbers = Vector(builder, ir.Constant(zeros.as_bits().value.type, list(range(lanes))))
        total, squares, high, low = Running(zeros), Running(zeros), Running(zeros), Running(zeros)
        ahead = Running(zeros.as_bits())

        def body(block: Block) -> None:
            order.fetch(block.start)
            x, score = probs.load(block.start, lanes), order.load(block.start, lanes)
            # Of equals the first ranks first.
            before = (numbers + place(block.start)) < truth
            larger = (score > own) | ((score >= own) & before)
            if block.fresh is not None:
                x, larger = x.where(block.fresh, 0.0), larger & block.fresh
            ahead.become(ahead.now() + larger.ones(zeros.width))
            total.become(total.now() + x)
            squares.become(squares.now() + x * x)
            high.become(x.highest(high.now()))
            low.become(x.lowest(low.now()))
            found.store_packed(block, x > lowest)
            sums.store(block.start, sums.load(block.start, lanes) + x.to_doubles() * each)

        over_blocks(builder, arguments[1], lanes, body)
        rank = ahead.now().total()
        results = (
            total.now().total(),
            squares.now().total(),
            high.now().largest(),
            low.now().smallest(),
            rank if zeros.width == 64 else builder.zext(rank, ir.IntType(64)),
        )
        return context.make_tuple(builder, signature.return_type, results)

    return signature, generate


@njit(cache=True, nogil=True)
def _bin(x, edges, n_bins):  # type: ignore[no-untyped-def]
    # The product is at most one bin off, at an edge; the comparisons put it right.
    b = min(int(x * n_bins), n_bins - 1)
    b -= int(x <= number_at(edges, b))
    b += int(x > number_at(edges, b + 1))
    return b


@njit(cache=True, nogil=True)
def _add_cells(batch, size, sign, cells):  # type: ignore[no-untyped-def]
    """Add rows to the cells they belong to.

    Args:
        batch: ``(7, _BATCH)``: cell, weight, confidence, squares of the gaps, a positive number and what to add to its
            logarithm for the loss, and room for logarithms.
        size: How many rows there are.
        sign: Of the logarithm in the loss.
        cells: ``(bins * 2, 7)``.
    """
    logarithms(at(batch, 4 * _BATCH), size, at(batch, 6 * _BATCH))
    for r in range(size):
        cell, weight, confidence, brier = int(batch[0, r]), batch[1, r], batch[2, r], batch[3, r]
        loss = sign * batch[6, r] + batch[5, r]
        cells[cell, 0] += weight
        cells[cell, 1] += weight * confidence
        cells[cell, 2] += weight * confidence * confidence
        cells[cell, 3] += weight * loss
        cells[cell, 4] += weight * loss * loss
        cells[cell, 5] += weight * brier
        cells[cell, 6] += weight * brier * brier


@njit(cache=True, nogil=True)
def _scatter(row, masks, n_words, weight, edges, n_bins, classwise):  # type: ignore[no-untyped-def]
    for m in range(n_words):
        word = number_at(masks, m)
        while word != 0:
            j = 64 * m + first_bit(word)
            word &= word - np.uint64(1)
            x = np.float64(number_at(row, j))
            add_pair(classwise, 3 * (j * n_bins + _bin(x, edges, n_bins)), weight, weight * x)


@njit(cache=True, nogil=True)
def _add_rows(numbers, k, are_logits, threshold, labels, weights, edges, tolerance, sums):  # type: ignore[no-untyped-def]
    """Do what :func:`accumulate` says, with rows in one line and a block of memory behind the start of each."""
    rows, cells, columns, classwise, ranks, sketch = sums
    width = max(k, BLOCK // numbers.itemsize)
    probs, column_sums, masks = (
        np.empty(width, numbers.dtype),
        np.zeros(width),
        np.zeros((width + 63) // 64, np.uint64),
    )
    n_bins, inner, places = edges.shape[0] - 1, at(edges, 0), at(classwise, 0)
    batch, sign, cell_rows = np.empty((7, _BATCH)), 1.0 if are_logits else -1.0, cells.reshape(-1, 7)
    impossible = 0
    for i in range(labels.shape[0]):
        given, label = at(numbers, i * k), labels[i]
        weight = weights[i] if weights.shape[0] else 1.0
        row = at(probs, 0) if are_logits else given
        if are_logits:
            inside, outside = softmax_row(given, k, label, row)
            mine = np.float64(number_at(row, label))
        else:
            mine = np.float64(number_at(row, label))
            inside, outside = max(mine, TINY), 0.0
            impossible += int(mine <= 0.0)
        total, squares, high, low, rank = _scan(
            row, k, given, label, weight, threshold, at(column_sums, 0), at(masks, 0)
        )
        if not (abs(np.float64(total) - 1.0) <= tolerance) or low < 0:
            return i, impossible
        confidence = min(np.float64(high), 1.0)
        correct = int(rank == 0)
        b = _bin(confidence, inner, n_bins)
        rows[b, correct] += 1
        ranks[min(rank, ranks.shape[0] - 1)] += weight
        fine = min(int(confidence * sketch.shape[0]), sketch.shape[0] - 1)
        sketch[fine, 0] += weight
        sketch[fine, 1] += weight * confidence
        sketch[fine, 2] += weight * correct
        columns[label, 1] += weight
        classwise[label, _bin(mine, inner, n_bins), 2] += weight
        _scatter(row, at(masks, 0), masks.shape[0], weight, inner, n_bins, places)
        r = i % _BATCH
        batch[0, r], batch[1, r], batch[2, r] = 2 * b + correct, weight, confidence
        batch[3, r] = max(np.float64(squares) - 2.0 * mine + 1.0, 0.0)
        batch[4, r], batch[5, r] = inside, outside
        if r == _BATCH - 1:
            _add_cells(batch, _BATCH, sign, cell_rows)
    _add_cells(batch, labels.shape[0] % _BATCH, sign, cell_rows)
    columns[:, 0] += column_sums[:k]
    return -1, impossible


@njit(cache=True, nogil=True)
def accumulate(scores, are_logits, threshold, labels, weights, edges, tolerance, sums):  # type: ignore[no-untyped-def]
    """Add rows of logits or probabilities to sums.

    Args:
        scores: ``(m, k)``, contiguous, float32 or float64.
        are_logits: Whether they are logits; these must be finite.
        threshold: The largest number of that type not above the first edge.
        labels: ``(m,)`` int64, in range.
        weights: ``(m,)`` float64, or empty for ones.
        edges: From :func:`equipoise.metrics.bins.lower_edges`.
        tolerance: How far a row's sum may be from one.
        sums: Six arrays, added to, each of the type float64 unless said otherwise:

            * ``(bins, 2)`` int64: rows by bin and correctness;
            * ``(bins, 2, 7)``: sums of weight, confidence, its square, nll, its square, Brier, its square;
            * ``(k, 2)``: column sums of probability, and weight of the rows labelled so;
            * ``(k, bins, 3)``: weight, probability, positives by class; the lowest bin is left to the caller;
            * ``(r + 1,)``: weight of rows whose true class has rank 0 ... r - 1, and the rest;
            * ``(f, 3)``: weight, confidence, correct over a fine grid of confidence.

    Returns:
        The first row that is no distribution, where it stopped, or -1; and the rows that gave the true class no
        probability.
    """
    n, k, lanes = scores.shape[0], scores.shape[1], BLOCK // scores.itemsize
    numbers = scores.reshape(-1)
    # Of short rows the last ones have less than a block of memory behind their start; a longer copy has more.
    n_last = min(n, (lanes - 1) // k) if k < lanes else 0
    copy = np.zeros(n_last * k + lanes, scores.dtype)
    copy[: n_last * k] = numbers[(n - n_last) * k :]
    cut = n - n_last
    bad, impossible = _add_rows(
        numbers, k, are_logits, threshold, labels[:cut], weights[:cut], edges, tolerance, sums
    )
    if bad < 0:
        bad, also = _add_rows(
            copy, k, are_logits, threshold, labels[cut:], weights[cut:], edges, tolerance, sums
        )
        impossible += also
        if bad >= 0:
            bad += cut
    return bad, impossible


@njit(cache=True, nogil=True)
def fill_lowest(classwise, columns, total):  # type: ignore[no-untyped-def]
    """Set the lowest bin of every class to what the others leave over.

    Args:
        classwise: ``(k, bins, 3)`` from :func:`accumulate`.
        columns: ``(k, 2)`` from it.
        total: Weight of all rows.
    """
    for k in range(classwise.shape[0]):
        weight, probability, positives = total, columns[k, 0], columns[k, 1]
        for b in range(1, classwise.shape[1]):
            weight -= classwise[k, b, 0]
            probability -= classwise[k, b, 1]
            positives -= classwise[k, b, 2]
        # With every entry scattered the difference is rounding noise, and a bin without weight must hold nothing.
        some = weight > total * 1e-12
        classwise[k, 0, 0] = weight if some else 0.0
        classwise[k, 0, 1] = probability if some else 0.0
        classwise[k, 0, 2] = positives if some else 0.0


@njit(cache=True, nogil=True)
def count_up_to(columns, edges):  # type: ignore[no-untyped-def]
    """Return for each row of sorted numbers how many are at most each edge."""
    counts = np.empty(edges.shape, np.int64)
    for k in range(edges.shape[0]):
        counts[k] = np.searchsorted(columns[k], edges[k], side="right")
    return counts
