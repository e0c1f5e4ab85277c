"""Ways to fill a CalibrationState: compiled on the CPU, plain torch on any device and where nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from equipoise.compiled.dispatch import find_kernel
from equipoise.compiled.threads import find_team
from equipoise.core.arrays import Array, as_tensor
from equipoise.core.bins import bin_of, float_below, lower_edges
from equipoise.core.checks import check_labels
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.probabilities import positive_logits, two_columns
from equipoise.metrics.device import flat_batch
from equipoise.metrics.plain_batch import PlainBatch
from equipoise.metrics.sums import Sums

__all__ = ["add_confidence", "add_predictions", "sums_by_torch"]

# A row costs as much as so many numbers; for fewer in all than the second figure another thread is not worth it.
_PER_ROW = 64
_ALONE = 1 << 18
# What one block of copied rows holds.
_BLOCK = 1 << 16
# How far a row's sum may be from one; rows were checked before, and this only catches what was changed since.
_TOLERANCE = 1e-2
_TINY = float(np.finfo(np.float32).tiny)


#: Scores, labels, and weights or None.
_Rows: TypeAlias = tuple[Array, Array, Array | None]


def add_predictions(predictions: Predictions | PlainBatch, sums: Sums, closed: str, *, where: str) -> None:
    """Add rows in memory: compiled, on as many threads as torch uses, or plainly. All of them, or none.

    Args:
        predictions: Logits or probabilities.
        sums: What to add to, on the CPU.
        closed: Which side of a bin is closed.
        where: The caller, for messages.

    Raises:
        DataError: If a row is no distribution, or its label no class.
    """
    scores, labels, weights = predictions.scores, predictions.labels, predictions.weights
    assert scores is not None
    are_logits = predictions.kind == "logits"
    kernel = find_kernel("state", scores.dtype.char, scores.size)
    if kernel is not None and scores.ndim == 2 and scores.flags.c_contiguous:
        bad = _add_by_kernel(kernel, (scores, labels, weights), sums, closed, are_logits)
    else:
        # Other layouts are copied, and tables of torch made, a part that fits the cache at a time.
        add = _add_by_torch if kernel is None else partial(_add_by_kernel, kernel)
        bad, total, step = -1, sums.like(), max(1, _BLOCK // sums.n_classes)
        widen: Callable[[Array], Array] = positive_logits if are_logits else two_columns
        for start in range(0, len(scores), step):
            rows = slice(start, start + step)
            block = np.ascontiguousarray(scores[rows] if scores.ndim == 2 else widen(scores[rows]))
            weight = None if weights is None else weights[rows]
            bad = add((block, labels[rows], weight), total, closed, are_logits)
            if bad >= 0:
                bad += start
                break
        if bad < 0:
            sums.add(total)
    if bad >= 0:
        check_labels(labels, n_classes=sums.n_classes, where=where)
        raise DataError(f"{where}: row {bad} is no probability distribution: {scores[bad]}.")


def _add_by_torch(rows: _Rows, sums: Sums, closed: str, are_logits: bool) -> int:
    """Add rows with torch alone; return the first that is no distribution or whose label is no class, or -1."""
    scores, labels, weights = rows
    no_class = (labels < 0) | (labels >= sums.n_classes)
    if no_class.any():
        return int(no_class.argmax())
    weight = None if weights is None else as_tensor(weights)
    batch = flat_batch(as_tensor(scores), as_tensor(labels), weight, None, is_logits=are_logits)
    odd = ~(((batch.probs.sum(1) - 1).abs() <= _TOLERANCE) & (batch.probs.amin(1) >= 0))
    if odd.any():
        return int(odd.nonzero()[0])
    sums.add(
        sums_by_torch(
            batch.probs, batch.labels, batch.weight, sums, closed, nll=batch.nll, logits=batch.logits
        )
    )
    return -1


def _add_by_kernel(kernel: Callable[..., int], rows: _Rows, sums: Sums, closed: str, are_logits: bool) -> int:
    """Add contiguous rows with the compiled kernel; return what :func:`_add_by_torch` does."""
    scores, labels, weights = rows
    labels = labels if labels.flags.c_contiguous else labels.copy()
    weights = weights if weights is None or weights.flags.c_contiguous else weights.copy()
    team, n_threads = find_team()
    fresh = sums.are_untouched
    counts, floats = sums.room() if fresh else (sums.counts, sums.floats)
    bad = kernel(
        _address(scores),
        scores.shape,
        are_logits,
        _address(labels),
        0 if weights is None else _address(weights),
        _edges(sums.n_bins, closed, scores.dtype.char),
        _TOLERANCE,
        sums.ends,
        (counts.data_ptr(), floats.data_ptr()),
        fresh,
        (team, n_threads if scores.size + _PER_ROW * len(scores) >= _ALONE else 1),
    )
    if fresh and bad < 0:
        sums.take_over((counts, floats))
    return bad


@cache
def _edges(n_bins: int, closed: str, dtype: str) -> Array:
    return np.array([float_below(edge, np.dtype(dtype)) for edge in lower_edges(n_bins, closed)])


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def sums_by_torch(
    probs: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    template: Sums,
    closed: str,
    *,
    nll: Tensor | None = None,
    logits: Tensor | None = None,
    kept: Tensor | None = None,
) -> Sums:
    """Sum over rows with torch operations alone: for GPUs, and as the oracle of the compiled kernel.

    Args:
        probs: ``(n, k)`` on any device.
        labels: ``(n,)`` class numbers.
        weights: ``(n,)`` or None.
        template: Sums of the shapes wanted.
        closed: Which side of a bin is closed.
        nll: ``(n,)`` negative log-likelihoods, if known better than ``probs`` can tell.
        logits: ``(n, k)`` where ``probs`` come from; their order is finer, because probabilities can underflow.
        kept: ``(n,)`` bool: the rows that count; the others must have weight zero.

    Returns:
        Fresh sums.
    """
    sums = template.like(probs.device)
    edges = torch.from_numpy(lower_edges(len(sums.rows), closed)).to(probs.device)
    weight = torch.ones(len(labels), dtype=torch.float64, device=probs.device) if weights is None else weights
    wide = probs.double()
    mine = wide.gather(1, labels[:, None])[:, 0]
    order = wide if logits is None else logits
    own = order.gather(1, labels[:, None])
    ties = (order == own) & (torch.arange(wide.shape[1], device=wide.device) < labels[:, None])
    rank = (order > own).sum(1) + ties.sum(1)
    loss = -mine.clamp_min(_TINY).log() if nll is None else nll.double()
    brier = (wide.square().sum(1) - 2 * mine + 1).clamp_min(0.0)
    count = torch.ones_like(labels) if kept is None else kept.to(labels.dtype)
    confidence = wide.amax(1).clamp_max(1.0)
    add_confidence(sums, confidence, rank == 0, weight, edges, loss=loss, brier=brier, count=count)
    sums.ranks.index_add_(0, rank.clamp_max(len(sums.ranks) - 1), weight)
    if nll is None:
        sums.impossible.add_(((mine <= 0) * count).sum())
    hit = torch.zeros_like(wide).scatter_(1, labels[:, None], 1.0)
    place = bin_of(wide, edges[1:-1]) + torch.arange(wide.shape[1], device=wide.device) * len(sums.rows)
    entries = torch.stack([torch.ones_like(wide), wide, hit], dim=-1) * weight[:, None, None]
    sums.classwise.view(-1, 3).index_add_(0, place.reshape(-1), entries.reshape(-1, 3))
    return sums


def add_confidence(
    sums: Sums,
    confidence: Tensor,
    correct: Tensor,
    weight: Tensor,
    edges: Tensor,
    *,
    loss: Tensor | None = None,
    brier: Tensor | None = None,
    count: Tensor | None = None,
) -> None:
    """Add what confidence and correctness alone tell; all that a top-1 file has."""
    confidence = confidence.double()
    nothing = torch.zeros_like(confidence)
    loss = nothing if loss is None else loss
    brier = nothing if brier is None else brier
    values = [
        torch.ones_like(confidence),
        confidence,
        confidence.square(),
        loss,
        loss.square(),
        brier,
        brier.square(),
    ]
    hit = correct.to(torch.int64)
    place = bin_of(confidence, edges[1:-1]) * 2 + hit
    sums.cells.view(-1, len(values)).index_add_(0, place, torch.stack(values, dim=-1) * weight[:, None])
    sums.rows.view(-1).index_add_(0, place, torch.ones_like(place) if count is None else count)
    fine = (confidence * len(sums.sketch)).long().clamp_max(len(sums.sketch) - 1)
    sums.sketch.index_add_(0, fine, torch.stack([weight, weight * confidence, weight * hit], dim=-1))
    sums.squares.add_(weight.square().sum())
