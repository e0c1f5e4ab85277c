"""Fill the sums of a CalibrationState: with a compiled kernel on the CPU, or with array functions on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from equipoise.core.array_functions import AnyArray, double, take_along
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.bins import bin_of, lower_edges
from equipoise.core.predictions import Predictions
from equipoise.core.probabilities import exponentials, positive_logits, two_columns
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
        shares: ``(n, k)`` of the same type: exponentials or probabilities.
        factors: ``(n,)`` float64: times the shares, in float64, these are the probabilities.
        labels: ``(n,)`` class numbers.
        loss: ``(n,)`` negative log-likelihoods.
        weights: ``(n,)``.
        impossible: Number of rows that give the true class a probability of zero.
    """

    scores: Array
    shares: Array
    factors: Array
    labels: Array
    loss: Array
    weights: Array
    impossible: int


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
    edges = lower_edges(sums.n_bins, closed, predictions.precision)
    normal, widest, per_part = (max(1, size // sums.n_classes) for size in (_BLOCK, _WIDE_BLOCK, _PART))
    step = max(normal, min(widest, _BLOCK_ROWS))

    def add_part(start: int) -> tuple[int, Sums]:
        part, stop, scratch = (
            sums.like(),
            min(start + per_part, len(scores)),
            _Scratch(predictions, step, sums, top),
        )
        add = _fallback_adder(part, edges) if kernel is None else _kernel_adder(kernel, part, edges)
        for first in range(start, stop, step):
            block, bad = scratch.block(slice(first, min(first + step, stop)))
            bad = bad if block is None else add(block, tolerance)
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
        sums: Sums of the classes.
        top: Memory for the predicted class of each row and its probability.
    """

    def __init__(
        self,
        predictions: Predictions | PlainBatch,
        n_rows: int,
        sums: Sums,
        top: tuple[Array, Array] | None,
    ) -> None:
        assert predictions.scores is not None
        self.given, self.predictions, self.top = predictions.scores, predictions, top
        self.are_logits, self.n_classes = predictions.kind == "logits", sums.n_classes
        shape = (min(n_rows, len(self.given)), sums.n_classes)
        self.scores, self.starts = np.empty(shape, self.given.dtype), np.arange(shape[0]) * sums.n_classes
        if self.are_logits:
            self.exps, self.wide = np.empty(shape, self.given.dtype), np.empty(shape)

    def block(self, rows: slice) -> tuple[RowBlock | None, int]:
        """Copy some rows and check the copy, which nobody else can change.

        Returns:
            The rows and -1, or None and the first bad row. The next call overwrites the block.
        """
        labels, weights = self.predictions.labels[rows].astype(np.int64), self.predictions.weights
        table, n = self.given[rows], len(labels)
        if table.ndim == 1:
            table = positive_logits(table) if self.are_logits else two_columns(table)
        bad = (labels < 0) | (labels >= self.n_classes)
        if bad.any():
            return None, int(bad.argmax())
        scores, own = self.scores[:n], self.starts[:n] + labels
        scores[:] = table
        mine = scores.take(own).astype(np.float64)
        with np.errstate(all="ignore"):
            if self.are_logits:
                shares, total, column = exponentials(scores, exps=self.exps[:n], wide=self.wide[:n])
                bad = ~(total >= 1)
                if not np.isfinite(scores.min()):
                    bad |= ~np.isfinite(scores).all(axis=1)
                factors, impossible = 1 / total, 0
                if self.top is not None:
                    self.top[0][rows], self.top[1][rows] = column, factors
                loss = np.log(total) + (scores.take(self.starts[:n] + column) - mine)
            else:
                shares, factors, impossible = scores, np.ones(n), int((mine <= 0).sum())
                loss = -np.log(np.maximum(mine, _TINY))
        if bad.any():
            return None, int(bad.argmax())
        weight = np.ones(n) if weights is None else weights[rows].astype(np.float64)
        return RowBlock(scores, shares, factors, labels, loss, weight, impossible), -1


def _kernel_adder(kernel: Callable[..., int], sums: Sums, edges: Array) -> Callable[[RowBlock, float], int]:
    """Return a function that adds blocks to sums with the compiled kernel, and returns what the fallback does."""
    parts = (sums.rows, sums.cells, sums.classwise, sums.ranks, sums.sketch)
    squares, impossible = sums.squares, sums.impossible

    def add(block: RowBlock, tolerance: float) -> int:
        rows = (block.labels, block.factors, block.loss, block.weights)
        squares[0] += block.weights @ block.weights
        impossible[0] += block.impossible
        return kernel(block.scores, block.shares, rows, edges, (tolerance, _ROUNDING), *parts)

    return add


def _fallback_adder(sums: Sums, edges: Array) -> Callable[[RowBlock, float], int]:
    return lambda block, tolerance: add_rows(block, sums, edges, tolerance)


def add_rows(block: RowBlock, sums: Sums, edges: Array, tolerance: float) -> int:
    """Add rows with NumPy alone: the fallback, and the oracle of the compiled kernel.

    Args:
        block: The rows.
        sums: What to add to, on the CPU.
        edges: From :func:`equipoise.core.bins.lower_edges`.
        tolerance: How far the sum of a row's probabilities may be from one.

    Returns:
        The first row that is not a distribution, or -1.
    """
    with np.errstate(under="ignore"):
        probs = block.shares.astype(np.float64) * block.factors[:, None]
    high = probs.max(axis=1)
    fine = (high <= 1 + _ROUNDING) & (np.abs(probs.sum(axis=1) - 1) <= tolerance)
    if not (fine.all() and probs.min() >= 0):
        return int((~fine | ~(probs.min(axis=1) >= 0)).argmax())
    batch = FlatBatch(
        probs=probs,
        order=block.scores,
        labels=block.labels,
        weight=block.weights,
        confidence=np.minimum(high, 1.0),
        loss=block.loss,
        impossible=np.array(block.impossible),
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
    classes = xp.arange(probs.shape[1], device=probs.device)
    own = take_along(order, labels[:, None])
    ties = (order == own) & (classes < labels[:, None])
    rank = (order > own).sum(axis=1) + ties.sum(axis=1)
    mine = take_along(probs, labels[:, None])[:, 0]
    brier = xp.clip((probs**2).sum(axis=1) - 2 * mine + 1, 0.0, None)
    count = xp.ones_like(labels) if kept is None else xp.astype(kept, labels.dtype)
    add_confidence(sums, confidence, rank == 0, weights, edges, loss=loss, brier=brier, count=count)
    sums.impossible[0] += impossible
    add_at(sums.ranks, xp.clip(rank, 0, len(sums.ranks) - 1), weights)
    place = bin_of(probs, edges[1:-1]) + classes * template.n_bins
    entries, all_places = sums.classwise.reshape(-1, 3), place.reshape(-1)
    add_at(entries[:, 0], all_places, (xp.ones_like(probs) * weights[:, None]).reshape(-1))
    add_at(entries[:, 1], all_places, (probs * weights[:, None]).reshape(-1))
    add_at(entries[:, 2], take_along(place, labels[:, None])[:, 0], weights)
    return sums


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
    place = bin_of(confidence, edges[1:-1]) * 2 + hit
    add_at(sums.cells.reshape(-1, len(values)), place, xp.stack(values, axis=-1) * weight[:, None])
    add_at(sums.rows.reshape(-1), place, count)
    fine = xp.clip(xp.astype(confidence * sums.n_fine, xp.int64), 0, sums.n_fine - 1)
    add_at(sums.sketch, fine, xp.stack([weight, weight * confidence, weight * hit], axis=-1))
    sums.squares[0] += (weight**2).sum()
