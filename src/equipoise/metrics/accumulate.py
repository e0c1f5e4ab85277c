"""Ways to fill a CalibrationState: compiled on the CPU, plain torch on any device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from equipoise.core.arrays import Array, as_tensor
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.probabilities import positive_logits, two_columns
from equipoise.core.threads import over_ranges
from equipoise.metrics.bins import float_below, lower_edges

__all__ = ["Sums", "sums_by_kernel", "sums_by_torch"]

# What the kernel adds to, in its order.
_ADDED = ("rows", "cells", "columns", "classwise", "ranks", "sketch")
# What one block of copied rows holds: small enough for the cache.
_BLOCK = 1 << 16
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(eq=False)
class Sums:
    """The additive content of a state; all tensors on one device.

    Attributes:
        rows: ``(bins, 2)`` int64: rows by confidence bin and correctness.
        cells: ``(bins, 2, 7)`` float64: weight, confidence, its square, nll, its square, Brier, its square.
        classwise: ``(k, bins, 3)`` float64: weight, probability, positives, by class and bin of its probability.
        ranks: ``(r + 1,)`` float64: weight by rank of the true class, the last for all further ranks.
        sketch: ``(m, 3)`` float64: weight, confidence, correct on a fine grid of confidence.
        squares: ``(1,)`` float64: sum of squared weights.
        impossible: ``(1,)`` int64: rows whose true class had probability zero.
    """

    rows: Tensor
    cells: Tensor
    classwise: Tensor
    ranks: Tensor
    sketch: Tensor
    squares: Tensor
    impossible: Tensor

    @classmethod
    def zeros(
        cls, *, n_classes: int, n_bins: int, n_ranks: int, n_fine: int, device: torch.device | str = "cpu"
    ) -> Sums:
        """Return sums over no rows.

        Example:
            >>> Sums.zeros(n_classes=3, n_bins=15, n_ranks=5, n_fine=8).cells.shape
            torch.Size([15, 2, 7])
        """

        # NumPy makes small arrays several times faster than torch, and a state is made for every batch somebody scores.
        def floats(*shape: int) -> Tensor:
            return torch.from_numpy(np.zeros(shape)).to(device)

        def counts(*shape: int) -> Tensor:
            return torch.from_numpy(np.zeros(shape, np.int64)).to(device)

        return cls(
            rows=counts(n_bins, 2),
            cells=floats(n_bins, 2, 7),
            classwise=floats(n_classes, n_bins, 3),
            ranks=floats(n_ranks + 1),
            sketch=floats(n_fine, 3),
            squares=floats(1),
            impossible=counts(1),
        )

    def parts(self) -> dict[str, Tensor]:
        """Return the tensors by name, in a fixed order."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def like(self) -> Sums:
        """Return zeros of the same shapes."""
        return Sums(**{name: torch.zeros_like(part) for name, part in self.parts().items()})

    def add(self, other: Sums) -> None:
        """Add other sums to these, in place."""
        for mine, more in zip(self.parts().values(), other.parts().values(), strict=True):
            mine.add_(more.to(mine.device))


def sums_by_kernel(predictions: Predictions, template: Sums, closed: str, *, where: str) -> Sums:
    """Sum over rows in memory with the compiled kernel, on as many threads as torch uses.

    Args:
        predictions: Logits or probabilities.
        template: Sums of the shapes wanted.
        closed: Which side of a bin is closed.
        where: The caller, for messages.

    Returns:
        Fresh sums.

    Raises:
        DataError: If a row is no distribution.
    """
    from equipoise.metrics.kernels import fill_lowest  # numba is loaded when first needed, not on import

    n_rows, n_classes = len(predictions), predictions.n_classes or 0

    def work(start: int, stop: int) -> dict[str, Array]:
        return _sums_of_range(predictions, (start, stop), _arrays_like(template), closed, where=where)

    arrays, *others = over_ranges(work, n_rows, n_numbers=n_rows * n_classes)
    for other in others:
        for name, array in arrays.items():
            np.add(array, other[name], out=array)
    fill_lowest(arrays["classwise"], arrays.pop("columns"), float(arrays["cells"][..., 0].sum()))
    return Sums(**{name: torch.from_numpy(array) for name, array in arrays.items()})


def _arrays_like(sums: Sums) -> dict[str, Array]:
    """Return zeros for the parts of some sums, and for the column sums that tell the lowest classwise bin."""
    parts = sums.parts().items()
    arrays = {
        name: np.zeros(tuple(part.shape), np.float64 if part.is_floating_point() else np.int64)
        for name, part in parts
    }
    return {**arrays, "columns": np.zeros((sums.classwise.shape[0], 2))}


def _sums_of_range(
    predictions: Predictions, span: tuple[int, int], sums: dict[str, Array], closed: str, *, where: str
) -> dict[str, Array]:
    from equipoise.metrics.kernels import accumulate

    start, stop = span
    edges = _edges(len(sums["rows"]), closed)
    weights = np.empty(0) if predictions.weights is None else _plain(predictions.weights[start:stop])
    labels = _plain(predictions.labels[start:stop])
    for offset, scores in _blocks(predictions, start, stop):
        rows = slice(offset, offset + len(scores))
        bad, impossible = accumulate(
            scores,
            predictions.kind == "logits",
            float_below(edges[1], scores.dtype),
            labels[rows],
            weights[rows],
            edges,
            1e-2,
            tuple(sums[name] for name in _ADDED),
        )
        sums["impossible"] += impossible
        if bad >= 0:
            raise DataError(
                f"{where}: row {start + offset + bad} is no probability distribution: {scores[bad]}."
            )
    sums["squares"] += weights @ weights if len(weights) else stop - start
    return sums


_edges = cache(lower_edges)


def _plain(array: Array) -> Array:
    # The compiler takes read-only arrays for another type; one alias saves a second compilation.
    return as_tensor(array).numpy()


def _blocks(predictions: Predictions, start: int, stop: int) -> Iterator[tuple[int, Array]]:
    """Yield offsets and rows: all at once where they lie in memory so, else copies that fit the cache."""
    scores = predictions.scores
    assert scores is not None
    whole = scores.ndim == 2 and scores.flags.c_contiguous
    step = max(1, stop - start if whole else _BLOCK // (predictions.n_classes or 1))
    widen: Callable[[Array], Array] = positive_logits if predictions.kind == "logits" else two_columns
    for first in range(start, stop, step):
        block = scores[first : min(first + step, stop)]
        yield first - start, _plain(np.ascontiguousarray(block if block.ndim == 2 else widen(block)))


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
        template: Sums of the shapes wanted, on the device of ``probs``.
        closed: Which side of a bin is closed.
        nll: ``(n,)`` negative log-likelihoods, if known better than ``probs`` can tell.
        logits: ``(n, k)`` where ``probs`` come from; their order is finer, because probabilities can underflow.
        kept: ``(n,)`` bool: the rows that count; the others must have weight zero.

    Returns:
        Fresh sums.
    """
    sums = template.like()
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
        sums.impossible += ((mine <= 0) * count).sum()
    hit = torch.zeros_like(wide).scatter_(1, labels[:, None], 1.0)
    place = torch.bucketize(wide, edges[1:-1]) + torch.arange(wide.shape[1], device=wide.device) * len(
        sums.rows
    )
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
    place = torch.bucketize(confidence, edges[1:-1]) * 2 + hit
    sums.cells.view(-1, len(values)).index_add_(0, place, torch.stack(values, dim=-1) * weight[:, None])
    sums.rows.view(-1).index_add_(0, place, torch.ones_like(place) if count is None else count)
    fine = (confidence * len(sums.sketch)).long().clamp_max(len(sums.sketch) - 1)
    sums.sketch.index_add_(0, fine, torch.stack([weight, weight * confidence, weight * hit], dim=-1))
    sums.squares += weight.square().sum()
