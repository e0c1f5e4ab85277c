"""The form of most batches, added to a state without the cost of Predictions."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from equipoise.core.arrays import Array
from equipoise.core.bins import Precision, precision_of

__all__ = ["PlainBatch", "as_plain_batch"]


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
        >>> as_plain_batch(torch.zeros(2, 3), torch.tensor([0, 2]), "logits", 3).labels
        array([0, 2])
        >>> as_plain_batch(torch.zeros(2, 3), torch.tensor([0, 2]), "logits", 4) is None
        True
    """
    if type(scores) is not Tensor or type(labels) is not Tensor or labels.ndim != 1 or n_classes < 2:
        return None
    if scores.shape != (len(labels), n_classes) or not len(labels) or labels.dtype != torch.int64:
        return None
    if scores.dtype not in (torch.float32, torch.float64) or not (scores.is_cpu and labels.is_cpu):
        return None
    table = scores.detach().resolve_neg().numpy()
    precision = "float64" if kind == "logits" else precision_of(table)
    return PlainBatch(table, labels.detach().numpy(), kind, precision)
