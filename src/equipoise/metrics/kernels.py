"""The compiled pass over logits or probabilities: everything a CalibrationState holds, read from memory once.

Nearly all classwise probabilities lie in the lowest bin, so columns are summed whole, only entries above the first edge
are scattered, and the lowest bin is what these leave over.

Rows are worked on some dozens at a time, one thing after the other: a scan of every entry, what is known of each row,
what was found above the first edge. Threads share out the rows, and add up at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from equipoise.core.elementary import logarithms
from equipoise.core.lanes import (
    BLOCK,
    Block,
    Row,
    Running,
    Vector,
    add_number,
    add_pair,
    at,
    behind,
    doubles_at,
    folded,
    keep,
    number_at,
    numbers_at,
    over_blocks,
)
from equipoise.core.softmax_kernel import exponentials_below, highest
from equipoise.core.team_kernel import over_pieces

__all__ = ["TINY", "accumulate", "count_up_to"]

#: The probability that stands in for an exact zero on the true class: the smallest normal float32.
TINY = 1.1754943508222875e-38

# What needs no whole row is done for so many rows at once, or for as many as so many bytes hold; of exponentials, which
# are written down, for as many as are close at hand in the first cache.
_BATCH = 64
_MOST_BYTES = 1 << 20
_BYTES = 1 << 14
# How many numbers of each row are folded from blocks.
_FOLDED = 6


@intrinsic
def _scan(_typing, row, factor, size, scores, label, weight, threshold, columns, found, owner, gathered):  # type: ignore[no-untyped-def]
    """Read a row once, for all that needs every entry.

    Args:
        row: Pointer to probabilities, at least one block of memory; or to blocks of exponentials, with
        factor: what to multiply them by. None for probabilities.
        size: How many of them are the row.
        scores: Pointer to logits or probabilities of the row, by which classes are ranked.
        label: The true class.
        weight: Of the row.
        threshold: Entries above it are to be found.
        columns: Pointer to float64, a block for each of the row; the weighted row is added.
        found: Pointers to int32, and how many entries were found before: places of these are written behind the first
            pointer, and ``owner`` as often behind the second.
        owner: The number of this row.
        gathered: Pointer to the blocks that :func:`_fold` folds, written.

    Returns:
        How many entries are found by now.
    """
    signature = types.int64(
        row, factor, size, scores, label, weight, threshold, columns, found, types.int64, gathered
    )

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        places, owners, count = cgutils.unpack_tuple(builder, arguments[8])
        probs, order, sums, kept = (
            Row(context, builder, signature.args[place], arguments[place]) for place in (0, 3, 7, 10)
        )
        listed, owned = (
            Row(context, builder, signature.args[8][n], pointer) for n, pointer in enumerate((places, owners))
        )
        lanes, zeros = probs.lanes, probs.zeros()

        def everywhere(scalar: Any) -> Vector:
            return Vector.filled(builder, scalar, lanes)

        own = everywhere(builder.load(builder.gep(order.data, [arguments[4]])))
        each, lowest = everywhere(arguments[5]), everywhere(arguments[6])
        scale = None if factor is types.none else everywhere(arguments[1])
        running = [Running(zeros) for _ in range(_FOLDED)]
        total, squares, high, low, above, not_below = running
        end = cgutils.alloca_once_value(builder, count)

        def body(block: Block) -> None:
            order.fetch(block.start)
            # Each block has a place of its own: what was stored across two of them could be read only much later.
            slot = builder.mul(block.number, ir.Constant(ir.IntType(64), lanes))
            score = order.load(block.start, lanes)
            x = probs.load(block.start, lanes) if scale is None else probs.load(slot, lanes) * scale
            larger, as_large = score > own, score >= own
            if block.fresh is not None:
                x, larger, as_large = x.where(block.fresh, 0.0), larger & block.fresh, as_large & block.fresh
            above.become((above.now() + 1.0).where(larger, above.now()))
            not_below.become((not_below.now() + 1.0).where(as_large, not_below.now()))
            total.become(total.now() + x)
            squares.become(squares.now() + x * x)
            high.become(x.highest(high.now()))
            low.become(x.lowest(low.now()))
            builder.store(listed.append_places(builder.load(end), block, x > lowest), end)
            sums.store(slot, sums.load(slot, lanes) + x.to_doubles() * each)

        over_blocks(builder, arguments[2], lanes, body)
        for place, vector in enumerate(running):
            kept.store(ir.Constant(ir.IntType(64), place * lanes * lanes), vector.now())
        last, step = builder.load(end), ir.Constant(ir.IntType(64), lanes)
        mine = everywhere(builder.trunc(arguments[9], ir.IntType(32)))
        with cgutils.for_range_slice(builder, count, last, step) as (start, _):
            owned.store(start, mine)
        return last

    return signature, generate


@intrinsic
def _fold(_typing, gathered, results):  # type: ignore[no-untyped-def]
    """Fold blocks that :func:`_scan` gathered of as many rows as a block has lanes.

    Args:
        gathered: Pointer to the blocks: those of all rows, for each of the results.
        results: Pointer, written, a block each, ``_BATCH`` apart: sums, sums of squares, the largest, the smallest, how
            many scores are above that of the true class, and how many are not below it.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, written = (Row(context, builder, signature.args[n], arguments[n]) for n in (0, 1))
        lanes = read.lanes
        for number in range(_FOLDED):
            first = number * lanes * lanes
            blocks = [
                read.load(ir.Constant(ir.IntType(64), first + place * lanes), lanes) for place in range(lanes)
            ]
            combine = {2: Vector.highest, 3: Vector.lowest}.get(number, Vector.__add__)
            written.store(ir.Constant(ir.IntType(64), number * _BATCH), folded(blocks, combine))
        return context.get_dummy_value()

    return types.void(gathered, results), generate


@intrinsic
def _bins(_typing, numbers, size, edges, n_bins, bins):  # type: ignore[no-untyped-def]
    """Write the bins of numbers from 0 to 1.

    Args:
        numbers: Pointer to at least one block of memory.
        size: How many of them there are.
        edges: Pointer to ``n_bins + 1`` thresholds of the same type.
        n_bins: How many bins.
        bins: Pointer to int32, written; as much memory.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, table, written = (Row(context, builder, signature.args[n], arguments[n]) for n in (0, 2, 4))
        lanes, kind = read.lanes, ir.IntType(32)
        last = Vector.filled(
            builder, builder.trunc(builder.sub(arguments[3], ir.Constant(ir.IntType(64), 1)), kind), lanes
        )
        factor = Vector.filled(builder, builder.sitofp(arguments[3], read.element), lanes)

        def body(block: Block) -> None:
            x = read.load(block.start, lanes)
            if block.within is not None:
                x = x.where(block.within, 0.0)
            # The product is at most one bin off, at an edge; the comparisons put it right.
            near = (x * factor).to_places().lowest(last)
            up, down = x > table.gather(near + 1), x <= table.gather(near)
            written.store(block.start, near + up.ones(32) - down.ones(32))

        over_blocks(builder, arguments[1], lanes, body)
        return context.get_dummy_value()

    return types.void(numbers, types.int64, edges, types.int64, bins), generate


@intrinsic
def _pick(_typing, row, owners, stride, places, jump, size, numbers):  # type: ignore[no-untyped-def]
    """Write some entries of some rows.

    Args:
        row: Pointer to the first row.
        owners: Pointer to int32: which rows.
        stride: How far rows are apart.
        places: Pointer to int32: which entries.
        jump: From which entry on, and by how much, they lie further behind.
        size: How many to pick.
        numbers: Pointer, written; at least one block of memory.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, which, where, written = (
            Row(context, builder, signature.args[n], arguments[n]) for n in (0, 1, 3, 6)
        )
        lanes = read.lanes

        def everywhere(scalar: Any) -> Vector:
            return Vector.filled(builder, builder.trunc(scalar, ir.IntType(32)), lanes)

        step, (behind_which, by) = everywhere(arguments[2]), cgutils.unpack_tuple(builder, arguments[4])
        first, further = everywhere(behind_which), everywhere(by)

        def body(block: Block) -> None:
            entry = where.load(block.start, lanes)
            place = which.load(block.start, lanes) * step + entry + further.where(entry >= first, 0)
            if block.within is not None:
                place = place.where(block.within, 0)
            written.store(block.start, read.gather(place))

        over_blocks(builder, arguments[5], lanes, body)
        return context.get_dummy_value()

    return types.void(
        row, owners, types.int64, places, types.UniTuple(types.int64, 2), types.int64, numbers
    ), generate


@njit(cache=True, nogil=True)
def _ties_before(scores, label):  # type: ignore[no-untyped-def]
    # Of equals the first ranks first.
    ties, own = 0, number_at(scores, label)
    for j in range(label):
        ties += int(number_at(scores, j) == own)
    return ties


@njit(cache=True, nogil=True)
def _exponentiate(first, size, numbers, labels, k, width, probs, factors, batch):  # type: ignore[no-untyped-def]
    """Write exponentials of logits below the highest of their rows, and what makes loss and probability of these."""
    # One thing after the other for all rows: within a row each has to wait for the one before.
    for r in range(size):
        factors[r] = highest(behind(numbers, (first + r) * k), k)
    for r in range(size):
        given, top = behind(numbers, (first + r) * k), factors[r]
        total = exponentials_below(given, k, top, at(probs, r * width))
        factors[r] = 1.0 / total
        batch[1, r] = total
        batch[2, r] = np.float64(top) - np.float64(number_at(given, number_at(labels, first + r)))


@njit(cache=True, nogil=True)
def _scan_batch(first, size, data, threshold, settings, probs, sums, listed, scanned, batch):  # type: ignore[no-untyped-def]
    """Read rows one by one; return how many entries above the threshold were found in them."""
    k, are_logits, weighted, _, _, lanes, width, jump = settings
    numbers, labels, weights = data
    (found, owners), (gathered, folds, mines, factors) = listed, scanned
    n_found = 0
    for r in range(size):
        i, turn = first + r, r % lanes
        given, blocks = behind(numbers, i * k), at(gathered, turn * lanes)
        label, weight = number_at(labels, i), number_at(weights, i) if weighted else 1.0
        entries = (at(found, 0), at(owners, 0), n_found)
        if are_logits:
            row, factor = at(probs, r * width), factors[r]
            place = label + (jump[1] if label >= jump[0] else 0)
            mines[r] = number_at(row, place) * factor
            n_found = _scan(row, factor, k, given, label, weight, threshold, sums, entries, r, blocks)
        else:
            mines[r] = number_at(given, label)
            n_found = _scan(given, None, k, given, label, weight, threshold, sums, entries, r, blocks)
        batch[0, r] = weight
        if turn == lanes - 1 or r == size - 1:
            _fold(at(gathered, 0), at(folds, r - turn))
    return n_found


@njit(cache=True, nogil=True)
def _settle(size, are_logits, tolerance, folds, mines, batch):  # type: ignore[no-untyped-def]
    """Check rows, cut confidences off at one, and complete what the loss is made of.

    Returns:
        The first row that is no distribution, or -1; how many rows give the true class no probability; and the sum of
        squared weights.
    """
    impossible, squared = 0, 0.0
    for r in range(size):
        if not (abs(np.float64(folds[0, r]) - 1.0) <= tolerance) or folds[3, r] < 0:
            return r, 0, 0.0
        folds[2, r] = min(folds[2, r], 1)
        squared += batch[0, r] * batch[0, r]
        if not are_logits:
            batch[1, r], batch[2, r] = max(np.float64(mines[r]), TINY), 0.0
            impossible += int(mines[r] <= 0)
    logarithms(at(batch, _BATCH), size, at(batch, 3 * _BATCH))
    return -1, impossible, squared


@njit(cache=True, nogil=True)
def _add_batch(first, size, data, settings, n_bins, folds, mines, batch, bins, parts):  # type: ignore[no-untyped-def]
    """Add rows to where they belong.

    Args:
        first: The first row.
        size: How many there are.
        data: Pointers to scores, labels and weights.
        settings: What :func:`accumulate` made of its arguments.
        n_bins: How many bins there are.
        folds: From :func:`_fold`.
        mines: Probabilities of the true classes.
        batch: ``(4, _BATCH)``: weight; a positive number, and what to add to its logarithm for the loss; the logarithm.
        bins: Bins of confidences, and of probabilities of the true classes.
        parts: Pointers to what is added to: counts; cells, classwise, ranks and sketch; weight by true class.
    """
    k, are_logits, _, _, (n_ranks, n_fine), _, _, _ = settings
    tally, cells, classwise, ranks, sketch, positives = parts
    numbers, labels, _ = data
    sign = 1.0 if are_logits else -1.0
    for r in range(size):
        label, weight = number_at(labels, first + r), batch[0, r]
        confidence = np.float64(folds[2, r])
        brier = max(np.float64(folds[1, r]) - 2.0 * np.float64(mines[r]) + 1.0, 0.0)
        loss = sign * batch[3, r] + batch[2, r]
        rank = np.int64(folds[4, r])
        if folds[5, r] > folds[4, r] + 1:
            rank += _ties_before(behind(numbers, (first + r) * k), label)
        correct = int(rank == 0)
        cell = 2 * bins[0, r] + correct
        mine = behind(cells, 7 * cell)
        add_number(tally, cell, 1)
        add_number(mine, 0, weight)
        add_number(mine, 1, weight * confidence)
        add_number(mine, 2, weight * confidence * confidence)
        add_number(mine, 3, weight * loss)
        add_number(mine, 4, weight * loss * loss)
        add_number(mine, 5, weight * brier)
        add_number(mine, 6, weight * brier * brier)
        add_number(ranks, min(rank, n_ranks), weight)
        fine = 3 * min(int(confidence * n_fine), n_fine - 1)
        add_pair(sketch, fine, weight, weight * confidence)
        add_number(sketch, fine + 2, weight * correct)
        add_number(positives, label, weight)
        add_number(classwise, 3 * (label * n_bins + bins[1, r]) + 2, weight)


@njit(cache=True, nogil=True)
def _add_rows(start, stop, data, edges, settings, floats, ends, columns, tally):  # type: ignore[no-untyped-def]
    """Add rows to sums; behind the start of each there must be a block of memory.

    Args:
        start: The first row.
        stop: The one behind the last.
        data: Pointers to scores, labels and weights; the last is not looked at if there are none.
        edges: Edges of bins, of the type of the scores.
        settings: What :func:`accumulate` made of its arguments.
        floats: Pointer to sums, added to; the lowest bin of the classwise ones is left to :func:`_fill_lowest`.
        ends: Where their parts end.
        columns: ``(2, k or more)``: column sums of probability, and weight of the rows labelled so; added to.
        tally: Pointer to counts, added to.

    Returns:
        The first row that is no distribution, where it stopped, or -1.
    """
    k, are_logits, _, tolerance, _, lanes, width, jump = settings
    numbers, labels, _ = data
    n_bins, inner = edges.shape[0] - 1, at(edges, 0)
    classwise, ranks, sketch = behind(floats, ends[0]), behind(floats, ends[1]), behind(floats, ends[2])
    parts = (tally, floats, classwise, ranks, sketch, at(columns, columns.shape[1]))
    n_batch = max(1, min(_BATCH, (_BYTES if are_logits else _MOST_BYTES) // (edges.itemsize * width)))
    probs, room = np.empty(n_batch * width if are_logits else 1, edges.dtype), n_batch * k + BLOCK
    listed = (np.empty(room, np.int32), np.empty(room, np.int32))
    picked, picked_bins = np.empty(room, edges.dtype), np.empty(room, np.int32)
    mines, factors = np.zeros(_BATCH, edges.dtype), np.empty(_BATCH, edges.dtype)
    folds = np.zeros((_FOLDED, _BATCH), edges.dtype)
    scanned = (np.zeros(_FOLDED * lanes * lanes, edges.dtype), folds, mines, factors)
    # Where a register of sums lies in one line of the cache.
    room_for_sums = np.zeros(width + BLOCK // 8)
    sums = at(room_for_sums, -(room_for_sums.ctypes.data // 8) % (BLOCK // 8))
    batch, bins = np.empty((4, _BATCH)), np.empty((2, _BATCH), np.int32)
    for first in range(start, stop, n_batch):
        size = min(n_batch, stop - first)
        if are_logits:
            _exponentiate(first, size, numbers, labels, k, width, probs, factors, batch)
        n_found = _scan_batch(first, size, data, edges[1], settings, probs, sums, listed, scanned, batch)
        bad, impossible, squared = _settle(size, are_logits, tolerance, folds, mines, batch)
        if bad >= 0:
            return first + bad
        _bins(at(folds, 2 * _BATCH), size, inner, n_bins, at(bins, 0))
        _bins(at(mines, 0), size, inner, n_bins, at(bins, _BATCH))
        _add_batch(first, size, data, settings, n_bins, folds, mines, batch, bins, parts)
        add_number(floats, ends[3], squared)
        add_number(tally, 2 * n_bins, impossible)
        found, owners = listed
        if are_logits:
            _pick(at(probs, 0), at(owners, 0), width, at(found, 0), jump, n_found, at(picked, 0))
            for f in range(n_found):
                picked[f] *= factors[owners[f]]
        else:
            row = behind(numbers, first * k)
            _pick(row, at(owners, 0), k, at(found, 0), (k, 0), n_found, at(picked, 0))
        _bins(at(picked, 0), n_found, inner, n_bins, at(picked_bins, 0))
        for f in range(n_found):
            weight, x = batch[0, owners[f]], np.float64(picked[f])
            add_pair(classwise, 3 * (np.int64(found[f]) * n_bins + picked_bins[f]), weight, weight * x)
    for j in range(k):
        columns[0, j] += number_at(sums, j + (jump[1] if j >= jump[0] else 0))
    keep(room_for_sums)
    return -1


@njit(cache=True, nogil=True)
def _add_piece(piece, n_pieces, n, data, edges, settings, places, ends, columns, tally, bad):  # type: ignore[no-untyped-def]
    start, stop = n * piece // n_pieces, n * (piece + 1) // n_pieces
    sums, counts = doubles_at(places[piece], 0), at(tally, piece * tally.shape[1])
    # Each thread clears its own: what another has written it would fetch from there line by line.
    carray(sums, ends[-1])[:] = 0.0
    bad[piece] = _add_rows(start, stop, data, edges, settings, sums, ends, columns[piece], counts)


@njit(cache=True, nogil=True)
def _add_up(piece, n_pieces, places, n_floats):  # type: ignore[no-untyped-def]
    start, stop = n_floats * piece // n_pieces, n_floats * (piece + 1) // n_pieces
    whole = carray(doubles_at(places[0], start), stop - start)
    for other in places[1:]:
        whole += carray(doubles_at(other, start), stop - start)


@njit(cache=True, nogil=True)
def accumulate(scores, shape, are_logits, labels, weights, edges, tolerance, ends, numbers, fresh, threads):  # type: ignore[no-untyped-def]
    """Add rows of logits or probabilities to a state's numbers; all of them, or none.

    Args:
        scores: Address of numbers, float32 or float64.
        shape: How many rows, and how many classes.
        are_logits: Whether scores are logits; these must be finite.
        labels: Address of int64, in range.
        weights: Address of float64, or 0 for ones.
        edges: From :func:`equipoise.core.bins.lower_edges`, each the largest number of the scores' type not above.
        tolerance: How far a row's sum may be from one.
        ends: Where the parts of the state's sums end, from :class:`equipoise.metrics.sums.Sums`.
        numbers: Addresses of the state's counts and sums.
        fresh: Whether to write over these two instead of adding; if a row is refused they are left in any state.
        threads: From :func:`equipoise.core.team.find_team`.

    Returns:
        The first row that is no distribution, or -1.
    """
    (n, k), (team, n_pieces), n_bins = shape, threads, edges.shape[0] - 1
    given, (counts, floats) = numbers_at(scores, 0, edges[0]), numbers
    data = (given, numbers_at(labels, 0, np.int64(0)), doubles_at(weights, 0))
    n_floats, n_counts = ends[-1], 2 * n_bins + 1
    sizes = (ends[2] - ends[1] - 1, (ends[3] - ends[2]) // 3)  # ranks told apart, and cells of the sketch
    # Of short rows the last ones have less than a block of memory behind their start; a longer copy has more.
    lanes = BLOCK // edges.itemsize
    n_last = min(n, (lanes - 1) // k) if k < lanes else 0
    cut = n - n_last
    copy = np.zeros(n_last * k + lanes, edges.dtype)
    for place in range(n_last * k):
        copy[place] = number_at(given, cut * k + place)
    # The last block of a row has a place of its own behind the whole ones.
    width, whole = (k + lanes - 1) // lanes * lanes, k // lanes * lanes
    jump = (whole, whole - (k - lanes)) if 0 < whole < k else (k, 0)
    settings = (k, are_logits, weights != 0, tolerance, sizes, lanes, width, jump)
    n_spare = n_pieces - int(fresh)
    spare, places = np.empty(max(1, n_spare) * n_floats), np.empty(n_pieces, np.int64)
    for piece in range(n_pieces):
        places[piece] = spare.ctypes.data + 8 * n_floats * (piece - int(fresh))
    if fresh:
        places[0] = floats
    columns = np.zeros((n_pieces, 2, k + BLOCK // 8))
    tally, bad = np.zeros((n_pieces, n_counts + BLOCK // 8), np.int64), np.empty(n_pieces, np.int64)
    over_pieces(
        team,
        n_pieces,
        _add_piece,
        (n_pieces, cut, data, edges, settings, places, ends, columns, tally, bad),
    )
    for row in bad:
        if row >= 0:
            return row
    result = doubles_at(places[0], 0)
    last = (at(copy, -cut * k), data[1], data[2])
    refused = _add_rows(cut, n, last, edges, settings, result, ends, columns[0], at(tally, 0))
    keep(copy)
    if refused >= 0:
        return refused
    if n_pieces > 1:
        over_pieces(team, n_pieces, _add_up, (n_pieces, places, n_floats))
        columns[0] = columns.sum(axis=0)
    _fill_lowest(carray(result, (2 * n_bins, 7)), carray(behind(result, ends[0]), (k, n_bins, 3)), columns[0])
    if not fresh:
        total = carray(doubles_at(floats, 0), n_floats)
        total += carray(result, n_floats)
    keep(spare)
    into = carray(numbers_at(counts, 0, np.int64(0)), n_counts)
    for place in range(n_counts):
        into[place] = tally[:, place].sum() + (0 if fresh else into[place])
    return -1


@njit(cache=True, nogil=True)
def _fill_lowest(cells, classwise, columns):  # type: ignore[no-untyped-def]
    """Set the lowest bin of every class to what the others leave over."""
    total = cells[:, 0].sum()
    for j in range(classwise.shape[0]):
        weight, probability, positives = total, columns[0, j], columns[1, j]
        for b in range(1, classwise.shape[1]):
            weight -= classwise[j, b, 0]
            probability -= classwise[j, b, 1]
            positives -= classwise[j, b, 2]
        # With every entry scattered the difference is rounding noise, and a bin without weight must hold nothing.
        some = weight > total * 1e-12
        classwise[j, 0, 0] = weight if some else 0.0
        classwise[j, 0, 1] = probability if some else 0.0
        classwise[j, 0, 2] = positives if some else 0.0


@njit(cache=True, nogil=True)
def count_up_to(columns, edges):  # type: ignore[no-untyped-def]
    """Return for each row of sorted numbers how many are at most each edge."""
    counts = np.empty(edges.shape, np.int64)
    for k in range(edges.shape[0]):
        counts[k] = np.searchsorted(columns[k], edges[k], side="right")
    return counts
