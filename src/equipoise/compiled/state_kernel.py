"""The compiled pass over logits or probabilities: everything a CalibrationState holds, read from memory once.

Nearly all classwise probabilities lie in the lowest bin, so these are summed column by column, only entries above the
first edge are scattered to their bins, and the weight of the lowest bin is what the others leave over.

Rows are worked on some dozens at a time, one thing after the other: a scan of every entry, what is known of each row,
what was found above the first edge. Threads share out the rows, and add up at the end.

Its oracle is :func:`equipoise.metrics.accumulate.sums_by_torch`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray

from equipoise.compiled.blocks import BLOCK
from equipoise.compiled.elementary import logarithms
from equipoise.compiled.jit import jit
from equipoise.compiled.openmp_team import over_pieces
from equipoise.compiled.pointers import (
    add_number,
    add_pair,
    at,
    behind,
    doubles_at,
    fetch,
    keep,
    number_at,
    numbers_at,
)
from equipoise.compiled.softmax_row import exponentials_below, highest
from equipoise.compiled.state_scan import BATCH, FOLDED, find_bins, fold, pick, scan

__all__ = ["Settings", "add_rows_to_state"]

# The probability that stands in for an exact zero on the true class: the smallest normal float32.
_TINY = 1.1754943508222875e-38

# Rows are worked on at once as far as so many bytes hold them; exponentials, which are written down, as far as they are
# close at hand in the first cache.
_MOST_BYTES = 1 << 20
_BYTES = 1 << 14


class Settings(NamedTuple):
    """What all parts of the pass have to know.

    Attributes:
        n_classes: Numbers in a row.
        are_logits: Whether they are logits, or probabilities.
        weighted: Whether rows have weights.
        tolerance: How far a row's sum may be from one.
        n_ranks: How many ranks of the true class are told apart.
        n_fine: Cells of the sketch of confidence.
        lanes: Numbers in a block.
        width: Numbers in as many blocks as cover a row. The last block ends where the row ends, and has a place of its
            own behind the others, so that it can be written and read at once.
        whole: Entries from this on are in that last block,
        jump: and lie so many places further behind than in the row.
    """

    n_classes: int
    are_logits: bool
    weighted: bool
    tolerance: float
    n_ranks: int
    n_fine: int
    lanes: int
    width: int
    whole: int
    jump: int


class _Ends(NamedTuple):
    """Where the parts of the state's sums end, one behind the other."""

    cells: int
    classwise: int
    ranks: int
    sketch: int
    squares: int


class _Data(NamedTuple):
    """Pointers to what is read; the weights are not looked at if there are none."""

    scores: Any
    labels: Any
    weights: Any


class _Listed(NamedTuple):
    """Entries above the first edge: which, and the rows they are in."""

    places: Any
    owners: Any


class _Scanned(NamedTuple):
    """What is known of the rows worked on at once.

    Attributes:
        gathered: Blocks of them that are still to be folded.
        folds: From :func:`fold`.
        mines: Probabilities of the true classes.
        factors: What makes probabilities of exponentials.
    """

    gathered: Any
    folds: Any
    mines: Any
    factors: Any


class _Parts(NamedTuple):
    """Pointers to what is added to: counts, sums by what they are told apart by, and weight by true class."""

    tally: Any
    cells: Any
    classwise: Any
    ranks: Any
    sketch: Any
    positives: Any


@jit()
def _ties_before(scores, label):  # type: ignore[no-untyped-def]
    # Of equals the first ranks first.
    ties, own = 0, number_at(scores, label)
    for j in range(label):
        ties += int(number_at(scores, j) == own)
    return ties


@jit()
def _find_no_class(first, size, labels, k):  # type: ignore[no-untyped-def]
    # They were checked before, but by a label that was changed since any memory would be written to.
    for r in range(size):
        label = number_at(labels, first + r)
        if label < 0 or label >= k:
            return r
    return -1


@jit()
def _exponentiate(first, size, data, k, width, probs, factors, batch):  # type: ignore[no-untyped-def]
    """Write exponentials of logits below the highest of their rows, and what makes loss and probability of these."""
    # One thing after the other for all rows: within a row each has to wait for the one before.
    for r in range(size):
        factors[r] = highest(behind(data.scores, (first + r) * k), k)
    for r in range(size):
        given, top = behind(data.scores, (first + r) * k), factors[r]
        total = exponentials_below(given, k, top, at(probs, r * width))
        factors[r] = 1.0 / total
        batch[1, r] = total
        batch[2, r] = np.float64(top) - np.float64(number_at(given, number_at(data.labels, first + r)))


@jit()
def _scan_batch(first, size, data, threshold, settings, scale, probs, sums, listed, scanned, batch):  # type: ignore[no-untyped-def]
    """Read rows one by one; return how many entries above the threshold were found in them."""
    k, lanes, width = settings.n_classes, settings.lanes, settings.width
    gathered, mines, factors = scanned.gathered, scanned.mines, scanned.factors
    n_found = 0
    for r in range(size):
        i, turn = first + r, r % lanes
        given, blocks = behind(data.scores, i * k), at(gathered, turn * lanes)
        label, weight = number_at(data.labels, i), number_at(data.weights, i) if settings.weighted else 1.0
        # Relative to the scale, any weight is a number of the type of the scores.
        share = factors.dtype.type(weight / scale)
        entries = (at(listed.places, 0), at(listed.owners, 0), n_found)
        if settings.are_logits:
            row, factor = at(probs, r * width), factors[r]
            place = label + (settings.jump if label >= settings.whole else 0)
            mines[r] = number_at(row, place) * factor
            n_found = scan(row, factor, k, given, label, share, threshold, sums, entries, r, blocks)
        else:
            mines[r] = number_at(given, label)
            n_found = scan(given, None, k, given, label, share, threshold, sums, entries, r, blocks)
        batch[0, r] = weight
        if turn == lanes - 1 or r == size - 1:
            fold(at(gathered, 0), at(scanned.folds, r - turn))
    return n_found


@jit()
def _largest_weight(first, size, weights):  # type: ignore[no-untyped-def]
    largest = 0.0
    for r in range(size):
        largest = max(largest, number_at(weights, first + r))
    return largest if largest > 0 else 1.0


@jit()
def _settle(size, settings, folds, mines, batch, sketch, fine):  # type: ignore[no-untyped-def]
    """Check rows, cut confidences off at one, find their cells of the sketch, and complete what the loss is made of.

    Returns:
        The first row that is no distribution, or -1; how many rows give the true class no probability; and the sum of
        squared weights.
    """
    impossible, squared = 0, 0.0
    for r in range(size):
        if not (abs(np.float64(folds[0, r]) - 1.0) <= settings.tolerance) or folds[3, r] < 0:
            return r, 0, 0.0
        folds[2, r] = min(folds[2, r], 1)
        fine[r] = 3 * min(int(np.float64(folds[2, r]) * settings.n_fine), settings.n_fine - 1)
        fetch(sketch, fine[r])  # larger than the first cache, and used only after all rows are settled
        squared += batch[0, r] * batch[0, r]
        if not settings.are_logits:
            batch[1, r], batch[2, r] = max(np.float64(mines[r]), _TINY), 0.0
            impossible += int(mines[r] <= 0)
    logarithms(at(batch, BATCH), size, at(batch, 3 * BATCH))
    return -1, impossible, squared


@jit()
def _add_batch(first, size, data, settings, n_bins, scanned, batch, bins, fine, parts):  # type: ignore[no-untyped-def]
    """Add rows to where they belong.

    Args:
        first: The first row.
        size: How many there are.
        data: What is read.
        settings: What :func:`add_rows_to_state` made of its arguments.
        n_bins: How many bins there are.
        scanned: What is known of the rows.
        batch: ``(4, BATCH)``: weight; a positive number, and what to add to its logarithm for the loss; the logarithm.
        bins: Bins of confidences, and of probabilities of the true classes.
        fine: Where in the sketch confidences belong.
        parts: What is added to.
    """
    k, n_ranks, folds, mines = settings.n_classes, settings.n_ranks, scanned.folds, scanned.mines
    sign = 1.0 if settings.are_logits else -1.0
    for r in range(size):
        label, weight = number_at(data.labels, first + r), batch[0, r]
        confidence = np.float64(folds[2, r])
        brier = max(np.float64(folds[1, r]) - 2.0 * np.float64(mines[r]) + 1.0, 0.0)
        loss = sign * batch[3, r] + batch[2, r]
        rank = np.int64(folds[4, r])
        if folds[5, r] > folds[4, r] + 1:
            rank += _ties_before(behind(data.scores, (first + r) * k), label)
        correct = int(rank == 0)
        cell = 2 * bins[0, r] + correct
        mine = behind(parts.cells, 7 * cell)
        add_number(parts.tally, cell, 1)
        add_number(mine, 0, weight)
        add_number(mine, 1, weight * confidence)
        add_number(mine, 2, weight * confidence * confidence)
        add_number(mine, 3, weight * loss)
        add_number(mine, 4, weight * loss * loss)
        add_number(mine, 5, weight * brier)
        add_number(mine, 6, weight * brier * brier)
        add_number(parts.ranks, min(rank, n_ranks), weight)
        add_pair(parts.sketch, fine[r], weight, weight * confidence)
        add_number(parts.sketch, fine[r] + 2, weight * correct)
        add_number(parts.positives, label, weight)
        add_number(parts.classwise, 3 * (label * n_bins + bins[1, r]) + 2, weight)


@jit()
def _add_rows(start, stop, data, edges, settings, floats, ends, columns, tally):  # type: ignore[no-untyped-def]
    """Add rows to sums; behind the start of each there must be a block of memory.

    Args:
        start: The first row.
        stop: The one behind the last.
        data: What is read.
        edges: Edges of bins, of the type of the scores.
        settings: What :func:`add_rows_to_state` made of its arguments.
        floats: Pointer to sums, added to; the lowest bin of the classwise ones is left to :func:`_fill_lowest`.
        ends: Where their parts end.
        columns: ``(2, k or more)``: probability in the lowest bin, and weight of the rows labelled so; added to.
        tally: Pointer to counts, added to.

    Returns:
        The first row that is no distribution or whose label is no class, where it stopped, or -1.
    """
    k, are_logits, lanes, width = settings.n_classes, settings.are_logits, settings.lanes, settings.width
    n_bins, inner = edges.shape[0] - 1, at(edges, 0)
    classwise, ranks = behind(floats, ends.cells), behind(floats, ends.classwise)
    sketch, squares = behind(floats, ends.ranks), behind(floats, ends.sketch)
    parts = _Parts(tally, floats, classwise, ranks, sketch, at(columns, columns.shape[1]))
    n_batch = max(1, min(BATCH, (_BYTES if are_logits else _MOST_BYTES) // (edges.itemsize * width)))
    probs, room = np.empty(n_batch * width if are_logits else 1, edges.dtype), n_batch * k + BLOCK
    listed = _Listed(places=np.empty(room, np.int32), owners=np.empty(room, np.int32))
    picked, picked_bins = np.empty(room, edges.dtype), np.empty(room, np.int32)
    mines, factors = np.zeros(BATCH, edges.dtype), np.empty(BATCH, edges.dtype)
    folds = np.zeros((FOLDED, BATCH), edges.dtype)
    scanned = _Scanned(np.zeros(FOLDED * lanes * lanes, edges.dtype), folds, mines, factors)
    # Sums of columns, of the rows worked on at once and of all before them. The former lie so that a register of them
    # is in one line of the cache.
    room_for_sums, totals = np.zeros(width + lanes, edges.dtype), np.zeros(width)
    sums = at(room_for_sums, -(room_for_sums.ctypes.data // edges.itemsize) % lanes)
    batch, bins, fine = np.empty((4, BATCH)), np.empty((2, BATCH), np.int32), np.empty(BATCH, np.int64)
    for first in range(start, stop, n_batch):
        size = min(n_batch, stop - first)
        bad = _find_no_class(first, size, data.labels, k)
        if bad >= 0:
            return first + bad
        if are_logits:
            _exponentiate(first, size, data, k, width, probs, factors, batch)
        scale = _largest_weight(first, size, data.weights) if settings.weighted else 1.0
        n_found = _scan_batch(
            first, size, data, edges[1], settings, scale, probs, sums, listed, scanned, batch
        )
        bad, impossible, squared = _settle(size, settings, folds, mines, batch, sketch, fine)
        if bad >= 0:
            return first + bad
        find_bins(at(folds, 2 * BATCH), size, inner, n_bins, at(bins, 0))
        find_bins(at(mines, 0), size, inner, n_bins, at(bins, BATCH))
        _add_batch(first, size, data, settings, n_bins, scanned, batch, bins, fine, parts)
        add_number(squares, 0, squared)
        add_number(tally, 2 * n_bins, impossible)
        found, owners = listed.places, listed.owners
        if are_logits:
            pick(
                at(probs, 0),
                at(owners, 0),
                width,
                at(found, 0),
                (settings.whole, settings.jump),
                n_found,
                at(picked, 0),
            )
            for f in range(n_found):
                picked[f] *= factors[owners[f]]
        else:
            row = behind(data.scores, first * k)
            pick(row, at(owners, 0), k, at(found, 0), (k, 0), n_found, at(picked, 0))
        find_bins(at(picked, 0), n_found, inner, n_bins, at(picked_bins, 0))
        for f in range(n_found):
            weight, x = batch[0, owners[f]], np.float64(picked[f])
            add_pair(classwise, 3 * (np.int64(found[f]) * n_bins + picked_bins[f]), weight, weight * x)
        recent = carray(sums, width)
        for j in range(width):
            totals[j] += np.float64(recent[j]) * scale
            recent[j] = 0
    for j in range(k):
        columns[0, j] += totals[j + (settings.jump if j >= settings.whole else 0)]
    keep(room_for_sums)
    return -1


@jit()
def _add_piece(piece, n_pieces, n, data, edges, settings, places, ends, columns, tally, bad):  # type: ignore[no-untyped-def]
    start, stop = n * piece // n_pieces, n * (piece + 1) // n_pieces
    sums, counts = doubles_at(places[piece], 0), at(tally, piece * tally.shape[1])
    # Each thread clears its own: what another has written it would fetch from there line by line.
    carray(sums, ends.squares)[:] = 0.0
    bad[piece] = _add_rows(start, stop, data, edges, settings, sums, ends, columns[piece], counts)


@jit()
def _add_up(piece, n_pieces, places, n_floats):  # type: ignore[no-untyped-def]
    start, stop = n_floats * piece // n_pieces, n_floats * (piece + 1) // n_pieces
    whole = carray(doubles_at(places[0], start), stop - start)
    for other in places[1:]:
        whole += carray(doubles_at(other, start), stop - start)


@jit()
def add_rows_to_state(  # type: ignore[no-untyped-def]
    scores, shape, are_logits, labels, weights, edges, tolerance, part_ends, numbers, fresh, threads
):
    """Add rows of logits or probabilities to a state's numbers; all of them, or none.

    Args:
        scores: Address of numbers, float32 or float64.
        shape: How many rows, and how many classes.
        are_logits: Whether scores are logits; these must be finite.
        labels: Address of int64.
        weights: Address of float64, or 0 for ones.
        edges: From :func:`equipoise.core.bins.lower_edges`, each the largest number of the scores' type not above.
        tolerance: How far a row's sum may be from one.
        part_ends: From :class:`equipoise.metrics.sums.Sums`; a call takes a plain tuple quicker than a named one.
        numbers: Addresses of the state's counts and sums.
        fresh: Whether to write over these two instead of adding; if a row is refused they are left in any state.
        threads: From :func:`equipoise.compiled.threads.find_team`.

    Returns:
        The first row that is no distribution or whose label is no class, or -1.
    """
    (n, k), (team, n_pieces), n_bins = shape, threads, edges.shape[0] - 1
    given, (counts, floats) = numbers_at(scores, 0, edges[0]), numbers
    data = _Data(given, numbers_at(labels, 0, np.int64(0)), doubles_at(weights, 0))
    ends = _Ends(*part_ends)
    n_floats, n_counts = ends.squares, 2 * n_bins + 1
    # Of short rows the last ones have less than a block of memory behind their start; a longer copy has more.
    lanes = BLOCK // edges.itemsize
    n_last = min(n, (lanes - 1) // k) if k < lanes else 0
    cut = n - n_last
    copy = np.zeros(n_last * k + lanes, edges.dtype)
    for place in range(n_last * k):
        copy[place] = number_at(given, cut * k + place)
    cut_short = lanes < k and k % lanes > 0
    settings = Settings(
        n_classes=k,
        are_logits=are_logits,
        weighted=weights != 0,
        tolerance=tolerance,
        n_ranks=ends.ranks - ends.classwise - 1,
        n_fine=(ends.sketch - ends.ranks) // 3,
        lanes=lanes,
        width=(k + lanes - 1) // lanes * lanes,
        whole=k // lanes * lanes if cut_short else k,
        jump=lanes - k % lanes if cut_short else 0,
    )
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
    last = _Data(at(copy, -cut * k), data.labels, data.weights)
    refused = _add_rows(cut, n, last, edges, settings, result, ends, columns[0], at(tally, 0))
    keep(copy)
    if refused >= 0:
        return refused
    if n_pieces > 1:
        over_pieces(team, n_pieces, _add_up, (n_pieces, places, n_floats))
        columns[0] = columns.sum(axis=0)
    _fill_lowest(
        carray(result, (2 * n_bins, 7)), carray(behind(result, ends.cells), (k, n_bins, 3)), columns[0]
    )
    if not fresh:
        total = carray(doubles_at(floats, 0), n_floats)
        total += carray(result, n_floats)
    keep(spare)
    into = carray(numbers_at(counts, 0, np.int64(0)), n_counts)
    for place in range(n_counts):
        into[place] = tally[:, place].sum() + (0 if fresh else into[place])
    return -1


@jit()
def _fill_lowest(cells, classwise, columns):  # type: ignore[no-untyped-def]
    """Set weight and labels in the lowest bin of every class to what the others leave over."""
    total = cells[:, 0].sum()
    for j in range(classwise.shape[0]):
        weight, probability, positives = total, columns[0, j], columns[1, j]
        for b in range(1, classwise.shape[1]):
            weight -= classwise[j, b, 0]
            positives -= classwise[j, b, 2]
        # With every entry scattered the difference is rounding noise, and a bin without weight must hold nothing.
        some = weight > total * 1e-12
        classwise[j, 0, 0] = weight if some else 0.0
        classwise[j, 0, 1] = probability if some else 0.0
        classwise[j, 0, 2] = positives if some else 0.0
