"""Batches of tensors: on the CPU without the cost of Predictions, on a GPU without waiting for the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from equipoise.core.array_functions import AnyArray
from equipoise.core.arrays import Array, is_tensor, label_remedy
from equipoise.core.bins import Precision, precision_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FlatBatch", "PlainBatch", "as_plain_batch", "flat_batch"]

# The probability that stands in for an exact zero of the true class: the smallest normal float32.
_TINY = float(np.finfo(np.float32).tiny)


class PlainBatch(NamedTuple):
    """Rows whose shapes and types are checked, and whose values are not.

    Attributes:
        scores: ``(n, k)`` float32 or float64.
        labels: ``(n,)`` int64.
        kind: What the scores are.
        precision: As in Predictions.
        weights: Always None.
    """

    scores: Array
    labels: Array
    kind: Literal["logits", "probs"]
    precision: Precision
    weights: None = None


def as_plain_batch(
    scores: Any, labels: Any, kind: Literal["logits", "probs"], n_classes: int
) -> PlainBatch | None:
    """Return tensors as a batch if nothing about their form is unusual, else None.

    Example:
        >>> import torch
        >>> as_plain_batch(torch.zeros(2, 3), torch.tensor([0, 2]), "logits", 3).labels
        array([0, 2])
        >>> as_plain_batch(torch.zeros(2, 3), torch.tensor([0, 2]), "logits", 4) is None
        True
    """
    if not (is_tensor(scores) and is_tensor(labels)) or labels.ndim != 1 or n_classes < 2:
        return None
    import torch

    if type(scores) is not torch.Tensor or type(labels) is not torch.Tensor:
        return None
    if scores.shape != (len(labels), n_classes) or not len(labels) or labels.dtype != torch.int64:
        return None
    if scores.dtype not in (torch.float32, torch.float64) or not (scores.is_cpu and labels.is_cpu):
        return None
    table = scores.detach().resolve_neg().numpy()
    precision = "float64" if kind == "logits" else precision_of(table)
    return PlainBatch(table, labels.detach().numpy(), kind, precision)


class FlatBatch(NamedTuple):
    """A batch as rows, all of them, whether they count or not: tensors, or arrays.

    Attributes:
        probs: ``(n, k)`` float64.
        order: ``(n, k)``: what orders the classes; logits where they were given, else the probabilities.
        labels: ``(n,)`` int64; 0 where the row does not count.
        weight: ``(n,)`` float64; 0 where the row does not count.
        confidence: ``(n,)`` float64: the largest probability, at most 1.
        loss: ``(n,)`` float64 negative log-likelihoods.
        impossible: ``()`` int64: rows that give the true class a probability of zero.
        kept: ``(n,)`` bool: which rows count; None if all do.
    """

    probs: AnyArray
    order: AnyArray
    labels: AnyArray
    weight: AnyArray
    confidence: AnyArray
    loss: AnyArray
    impossible: AnyArray
    kept: AnyArray | None


def flat_batch(
    scores: Tensor, labels: Any, weights: Any, ignore_index: int | None, *, is_logits: bool
) -> FlatBatch:
    """Return a batch as rows of probabilities; shapes are checked, values are not.

    Args:
        scores: ``(n, k)``, ``(n, k, d1, ...)``, or one column ``(n,)``, ``(n, 1)`` or ``(n, 1, d1, ...)``.
        labels: ``(n,)`` or ``(n, d1, ...)``.
        weights: ``(n,)``, or like the labels, or None.
        ignore_index: Rows with this label do not count, whatever their scores.
        is_logits: Whether the scores are logits.

    Returns:
        The batch on the device of the scores.

    Raises:
        ValueError: If the shapes do not belong together.

    Example:
        >>> import torch
        >>> flat_batch(torch.zeros(2, 3, 4), torch.zeros(2, 4).long(), None, None, is_logits=True).probs.shape
        torch.Size([8, 3])
    """
    import torch

    scores = scores.detach()
    truth = torch.as_tensor(labels, device=scores.device)
    columns = scores[:, None] if scores.ndim == 1 else scores
    if truth.shape != (columns.shape[0], *columns.shape[2:]) or truth.is_floating_point():
        raise ValueError(
            f"CalibrationState: `labels` must be integers of shape {(columns.shape[0], *columns.shape[2:])} to match "
            f"scores {tuple(scores.shape)}, got {truth.dtype} of shape {tuple(truth.shape)}. "
            f"{label_remedy(truth)}"
        )
    rows = columns.movedim(1, -1).reshape(-1, columns.shape[1])
    # Half precision is widened, as Predictions do.
    rows = rows.double() if rows.dtype == torch.float64 or not is_logits else rows.float()
    flat = truth.reshape(-1).long()
    weight = _per_row(weights, truth)
    kept = None
    if ignore_index is not None:
        # Zeros in place of what an ignored row holds, which may be anything, NaN included.
        kept = flat != ignore_index
        rows = torch.where(kept[:, None], rows, 0.0)
        flat, weight = torch.where(kept, flat, 0), torch.where(kept, weight, 0.0)
    if rows.shape[1] == 1:
        rows = torch.cat([torch.zeros_like(rows) if is_logits else 1 - rows, rows], dim=1)
    own = rows.gather(1, flat[:, None])[:, 0].double()
    if not is_logits:
        count = torch.ones_like(flat) if kept is None else kept.long()
        confidence, loss = rows.amax(1).clamp_max(1.0), -own.clamp_min(_TINY).log()
        impossible = ((own <= 0) * count).sum()
        return FlatBatch(rows, rows, flat, weight, confidence, loss, impossible, kept)
    # The rule of core.probabilities.exponentials, for any device.
    top = rows.amax(1, keepdim=True)
    exps = (rows - top).exp().double()
    total = exps.sum(1)
    confidence = 1 / total
    loss = total.log() + (top[:, 0].double() - own)
    none = torch.zeros_like(flat[:0].sum())
    return FlatBatch(exps * confidence[:, None], rows, flat, weight, confidence, loss, none, kept)


def _per_row(weights: Any, labels: Tensor) -> Tensor:
    import torch

    if weights is None:
        return torch.ones(labels.numel(), dtype=torch.float64, device=labels.device)
    given = torch.as_tensor(weights, device=labels.device).double()
    if given.shape == labels.shape:
        return given.reshape(-1)
    if given.shape == labels.shape[:1]:
        return given.repeat_interleave(labels[0].numel())
    raise ValueError(
        f"CalibrationState: `weights` must have shape {tuple(labels.shape[:1])}, one value per row, got "
        f"{tuple(given.shape)}."
    )
