"""Fill the sums of a CalibrationState: with a compiled kernel on the CPU, or with array functions on any device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from equipoise.core.array_functions import AnyArray, double, take_along
from equipoise.core.arrays import Array, array_namespace, is_tensor
from equipoise.core.bins import bin_of, bin_of_share, lower_edges
from equipoise.core.predictions import Predictions
from equipoise.core.probabilities import (
    exponentiate,
    positive_logits,
    row_totals,
    shift_rows,
    two_columns,
)
from equipoise.kernels.dispatch import find_kernel
from equipoise.kernels.threads import map_in_order
from equipoise.metrics.sums import Sums, add_at
from equipoise.metrics.tensors import FlatBatch, PlainBatch

__all__ = ["RowBlock", "add_confidence", "add_predictions", "add_rows", "losses_of_being_right", "sum_rows"]

# Numbers in a block of rows: few enough for a processor's cache, and enough to outweigh the cost of a call. With many
# classes the sums of the classes are the larger cost of a call, so a block has more numbers until it has these rows.
_BLOCK, _WIDE_BLOCK, _BLOCK_ROWS = 1 << 16, 1 << 18, 256
# Numbers in a part of the rows that has sums of its own. Parts do not depend on threads, so neither do results.
_PART = 1 << 22
# How far beyond one the rounding of a probability may go.
_ROUNDING = 1e-6
# The probability that stands in for an exact zero of the true class: the smallest normal float32.
_TINY = float(np.finfo(np.float32).tiny)


class RowBlock(NamedTuple):
    """Rows to add, in memory of their own, and what both backends know of them.

    Attributes:
        scores: ``(n, k)``: what orders the classes; logits, because probabilities can underflow.
        shares: ``(n, k)`` of the same type: probabilities, or exponentials of logits.
        totals: ``(n,)`` float64: what shares of logits are divided by, their sums; of probabilities one.
        are_logits: Whether they are.
        labels: ``(n,)`` class numbers.
        column: ``(n,)``: of logits, the class of the highest score, the first of equals.
        weights: ``(n,)``.
        confidence: ``(n,)`` float64: memory for the probability of that class.
    """

    scores: Array
    shares: Array
    totals: Array
    are_logits: bool
    labels: Array
    column: Array
    weights: Array
    confidence: Array


def add_predictions(
    predictions: Predictions | PlainBatch,
    sums: Sums,
    closed: str,
    *,
    tolerance: float,
    top: tuple[Array, Array] | None = None,
) -> int:
    """Add rows in memory: all of them, or none.

    Args:
        predictions: Logits or probabilities.
        sums: What to add to, on the CPU.
        closed: Which side of a bin is closed.
        tolerance: How far the sum of a row's probabilities may be from one.
        top: Of logits, memory for the predicted class of each row and its probability, which this pass knows.

    Returns:
        The first row that is not a distribution or whose label is not a class, or -1.
    """
    scores = predictions.scores
    assert scores is not None
    kernel = find_kernel("state", scores.dtype.char, scores.size)
    shift = find_kernel("shift", scores.dtype.char, scores.size) if predictions.kind == "logits" else None
    edges = lower_edges(sums.n_bins, closed, predictions.precision)
    normal, widest, per_part = (max(1, size // sums.n_classes) for size in (_BLOCK, _WIDE_BLOCK, _PART))
    step = max(normal, min(widest, _BLOCK_ROWS))

    def add_part(start: int) -> tuple[int, Sums]:
        part, stop = sums.like(), min(start + per_part, len(scores))
        scratch = _Scratch(predictions, step, sums.n_classes, top, shift or shift_rows)
        n_rows = len(scratch.scores)
        add = partial(add_rows, part) if kernel is None else _compiled_adder(kernel, part, n_rows)
        for first in range(start, stop, step):
            block, bad = scratch.block(slice(first, min(first + step, stop)))
            bad = bad if block is None else add(block, edges, tolerance)
            if bad >= 0:
                return first + bad, part
        return -1, part

    parts = map_in_order(add_part, range(0, len(scores), per_part))
    for bad, _ in parts:
        if bad >= 0:
            return bad
    for _, part in parts:
        sums.add(part)
    return -1


class _Scratch:
    """Memory for one block of rows at a time: fresh memory for every block would cost as much as the work on it.

    Args:
        predictions: Where rows come from.
        n_rows: The most rows of a block.
        n_classes: Number of classes.
        top: Memory for the predicted class of each row and its probability.
        shift: Subtracts the largest logit of each row.
    """

    def __init__(
        self,
        predictions: Predictions | PlainBatch,
        n_rows: int,
        n_classes: int,
        top: tuple[Array, Array] | None,
        shift: Callable[[Array, Array, Array], int],
    ) -> None:
        assert predictions.scores is not None
        self.given, self.predictions, self.top, self.shift = predictions.scores, predictions, top, shift
        self.are_logits = predictions.kind == "logits"
        shape = (min(n_rows, len(self.given)), n_classes)
        self.scores, self.ones = np.empty(shape, self.given.dtype), np.ones(shape[0])
        self.confidence = np.empty(shape[0])
        if self.are_logits:
            self.exps, self.wide = np.empty(shape, self.given.dtype), np.empty(shape)
            self.column = np.empty(shape[0], np.int64)

    def block(self, rows: slice) -> tuple[RowBlock | None, int]:
        """Copy some rows and check that the copied logits, which nobody else can change, are finite.

        Returns:
            The rows and -1, or None and the first bad row. The next call overwrites the block.
        """
        labels, weights = self.predictions.labels[rows].astype(np.int64), self.predictions.weights
        table, n = self.given[rows], len(labels)
        if table.ndim == 1:
            table = positive_logits(table) if self.are_logits else two_columns(table)
        scores, confidence = self.scores[:n], self.confidence[:n]
        scores[:] = table
        if not self.are_logits:
            shares, totals, column = scores, self.ones[:n], labels
        else:
            shares, column = self.exps[:n], self.column[:n]
            bad = self.shift(scores, shares, column)
            if bad >= 0:
                return None, bad
            exponentiate(shares)
            totals = row_totals(shares, wide=self.wide[:n])
            if self.top is not None:
                self.top[0][rows], confidence = column, self.top[1][rows]
        weight = self.ones[:n] if weights is None else weights[rows].astype(np.float64)
        return RowBlock(scores, shares, totals, self.are_logits, labels, column, weight, confidence), -1


def _compiled_adder(
    kernel: Callable[..., int], sums: Sums, n_rows: int
) -> Callable[[RowBlock, Array, float], int]:
    """Return a function that adds blocks of at most so many rows with the compiled kernel, as :func:`add_rows` does."""
    parts = (sums.rows, sums.impossible, sums.cells, sums.classwise, sums.ranks, sums.sketch)
    squares = sums.squares
    eights = np.zeros(n_rows * -(-sums.n_classes // 8), np.uint64)
    memory = (
        np.empty(sums.n_classes),
        np.empty(sums.n_classes),
        np.empty((n_rows, 2)),
        np.empty((n_rows, 2), np.int64),
        eights.view(np.uint8),
        eights,
        np.empty(eights.size + 1, np.int64),
        np.empty(8 * eights.size + 1, np.uint32),
    )

    def add(block: RowBlock, edges: Array, tolerance: float) -> int:
        squares[0] += block.weights @ block.weights
        return kernel(*block, edges, (tolerance, _ROUNDING, _TINY), *parts, *memory)

    return add


def add_rows(sums: Sums, block: RowBlock, edges: Array, tolerance: float) -> int:
    """Add rows with NumPy alone: the fallback, and the oracle of the compiled kernel.

    Args:
        sums: What to add to, on the CPU.
        block: The rows, whose confidences are written.
        edges: From :func:`equipoise.core.bins.lower_edges`.
        tolerance: How far the sum of a row's probabilities may be from one.

    Returns:
        The first row that is not a distribution or whose label is not a class, or -1.
    """
    scores, shares, totals, are_logits, labels, column, weights, confidence = block
    bad = (labels < 0) | (labels >= scores.shape[1])
    if bad.any():
        return int(bad.argmax())
    row = np.arange(len(labels))
    mine = scores[row, labels].astype(np.float64)
    with np.errstate(all="ignore"):
        if are_logits:
            # The largest exponential is one.
            confidence[:] = 1 / totals
            fine, probs = totals >= 1, shares * confidence[:, None]
            loss = np.log(totals) + (scores[row, column] - mine)
        else:
            probs = shares.astype(np.float64)
            fine = (np.abs(probs.sum(axis=1) - 1) <= tolerance) & (probs.min(axis=1) >= 0)
            loss = -np.log(np.maximum(mine, _TINY))
            confidence[:] = probs.max(axis=1)
        fine &= confidence <= 1 + _ROUNDING
    if not fine.all():
        return int((~fine).argmax())
    np.minimum(confidence, 1.0, out=confidence)
    batch = FlatBatch(
        probs=probs,
        order=scores,
        labels=labels,
        weight=weights,
        confidence=confidence,
        loss=loss,
        impossible=np.count_nonzero(mine <= 0) if not are_logits else 0,
        kept=None,
    )
    sums.add(sum_rows(batch, sums, edges))
    return -1


@np.errstate(under="ignore")
def sum_rows(batch: FlatBatch, template: Sums, edges: AnyArray) -> Sums:
    """Sum over rows of arrays or tensors, on any device.

    Args:
        batch: The rows.
        template: Sums of the shapes to return.
        edges: From :func:`equipoise.core.bins.lower_edges`, of the kind and on the device of the rows.

    Returns:
        New sums, on the device of the rows.
    """
    probs, order, labels, weights, confidence, loss, impossible, kept = batch
    xp = array_namespace(probs)
    sums = template.like(probs.device)
    rank = _ranks(order, labels)
    mine = take_along(probs, labels[:, None])[:, 0]
    brier = xp.clip(_row_sums(probs**2) - 2 * mine + 1, 0.0, None)
    count = xp.ones_like(labels) if kept is None else xp.astype(kept, labels.dtype)
    add_confidence(sums, confidence, rank == 0, weights, edges, loss=loss, brier=brier, count=count)
    sums.impossible[0] += impossible
    add_at(sums.ranks, xp.clip(rank, 0, len(sums.ranks) - 1), weights)
    entries = sums.classwise.reshape(-1, 3)
    if is_tensor(probs):
        place = bin_of(probs, edges[1:-1]) + _classes(probs) * template.n_bins
        every = place.reshape(-1)
        add_at(entries[:, 0], every, (xp.ones_like(probs) * weights[:, None]).reshape(-1))
        add_at(entries[:, 1], every, (probs * weights[:, None]).reshape(-1))
    else:
        _add_probabilities(sums.classwise, probs, weights, edges)
    own = _bins(mine, edges) + labels * template.n_bins
    add_at(entries[:, 2], own, weights)
    return sums


def _bins(shares: AnyArray, edges: AnyArray) -> AnyArray:
    return bin_of(shares, edges[1:-1]) if is_tensor(shares) else bin_of_share(shares, edges)


def _classes(table: AnyArray) -> AnyArray:
    return array_namespace(table).arange(table.shape[1], device=table.device)


def _row_sums(table: AnyArray) -> AnyArray:
    """Return the sums of rows; NumPy's own sum takes several times as long where there are few columns."""
    return table.sum(1) if is_tensor(table) else np.einsum("ij->i", table)


def _ranks(order: AnyArray, labels: AnyArray) -> AnyArray:
    """Return how many classes come before the true one; of equal scores, the first comes first."""
    own = take_along(order, labels[:, None])
    equal = order == own
    if is_tensor(order):
        return (order > own).sum(axis=1) + (equal & (_classes(order) < labels[:, None])).sum(axis=1)
    larger: Array = _row_sums((order > own).astype(np.float64))
    if np.count_nonzero(equal) > len(labels):
        larger += _row_sums((equal & (_classes(order) < labels[:, None])).astype(np.float64))
    return larger.astype(np.int64)


def _add_probabilities(classwise: Array, probs: Array, weights: Array, edges: Array) -> None:
    """Add weights and probabilities of all classes to their bins.

    Most probabilities of many classes lie in the lowest bin. These are summed class by class; only the others are
    looked up.
    """
    n_classes, n_bins, _ = classwise.shape
    lowest = (probs <= edges[1]).astype(np.float64)
    classwise[:, 0, 0] += np.einsum("i,ij->j", weights, lowest)
    found = np.flatnonzero(lowest == 0)
    lowest *= probs
    classwise[:, 0, 1] += np.einsum("i,ij->j", weights, lowest)
    row = found // n_classes
    share, weight = probs.reshape(-1)[found], weights[row]
    place = (found - row * n_classes) * n_bins + bin_of_share(share, edges)
    entries = classwise.reshape(-1, 3)
    add_at(entries[:, 0], place, weight)
    add_at(entries[:, 1], place, weight * share)


def losses_of_being_right(confidence: Array, correct: Array) -> tuple[Array, Array]:
    """Return the log-loss and the squared error of confidences as probabilities of being right.

    As for classes, a probability of zero for what happened counts as the smallest normal float32.

    Example:
        >>> losses_of_being_right(np.array([0.5, 1.0]), np.array([True, False]))
        (array([ 0.69314718, 87.33654475]), array([0.25, 1.  ]))
    """
    claimed = np.minimum(confidence.astype(np.float64), 1.0)
    happened = np.where(correct, claimed, 1 - claimed)
    return -np.log(np.maximum(happened, _TINY)), (1 - happened) ** 2


def add_confidence(
    sums: Sums,
    confidence: AnyArray,
    correct: AnyArray,
    weight: AnyArray,
    edges: AnyArray,
    *,
    loss: AnyArray,
    brier: AnyArray,
    count: AnyArray,
) -> None:
    """Add what follows from confidence and correctness, and the losses of each row."""
    xp = array_namespace(confidence)
    confidence = double(confidence)
    values = [xp.ones_like(confidence), confidence, confidence**2, loss, loss**2, brier, brier**2]
    hit = xp.astype(correct, xp.int64)
    place = _bins(confidence, edges) * 2 + hit
    add_at(sums.cells.reshape(-1, len(values)), place, (xp.stack(values) * weight).T)
    add_at(sums.rows.reshape(-1), place, count)
    fine = xp.clip(xp.astype(confidence * sums.n_fine, xp.int64), 0, sums.n_fine - 1)
    add_at(sums.sketch, fine, xp.stack([weight, weight * confidence, weight * hit]).T)
    sums.squares[0] += (weight**2).sum()
