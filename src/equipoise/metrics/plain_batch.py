"""The form most batches come in, checked and taken as they are: a batch of a hundred rows is summed in microseconds."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from equipoise.core.arrays import Array

__all__ = ["PlainBatch", "as_plain_batch"]

# The tolerances of Predictions: how far a row's sum may be from one, and how far rounding goes beyond it.
_TOLERANCE = 1e-3
_ROUNDING = 1e-6


class PlainBatch(NamedTuple):
    """Rows that need no further look.

    Attributes:
        scores: ``(n, k)`` contiguous float32 or float64.
        labels: ``(n,)`` contiguous int64, in range.
        kind: What the scores are.
        weights: There are none.
    """

    scores: Array
    labels: Array
    kind: Literal["logits", "probs"]
    weights: None = None


def as_plain_batch(
    scores: Any, labels: Any, kind: Literal["logits", "probs"], n_classes: int
) -> PlainBatch | None:
    """Return tensors as a batch if nothing about them is unusual; None leaves it to Predictions to say what is.

    Example:
        >>> as_plain_batch(torch.zeros(2, 3), torch.tensor([0, 2]), "logits", 3).labels
        array([0, 2])
        >>> as_plain_batch(torch.zeros(2, 3), torch.tensor([0, 3]), "logits", 3) is None
        True
    """
    if type(scores) is not Tensor or type(labels) is not Tensor or scores.ndim != 2 or n_classes < 2:
        return None
    fits = scores.shape == (len(labels), n_classes) and labels.ndim == 1 and len(labels) > 0
    typed = scores.dtype in (torch.float32, torch.float64) and labels.dtype == torch.int64
    if not (
        fits
        and typed
        and scores.is_contiguous()
        and labels.is_contiguous()
        and scores.is_cpu
        and labels.is_cpu
    ):
        return None
    table, true = scores.detach().numpy(), labels.detach().numpy()
    if true.min() < 0 or true.max() >= n_classes:
        return None
    fine = _are_distributions(table) if kind == "probs" else bool(np.isfinite(table.sum(dtype=np.float64)))
    return PlainBatch(table, true, kind) if fine else None


def _are_distributions(table: Array) -> bool:
    in_range = table.min() >= 0 and table.max() <= 1 + _ROUNDING  # NaN is not
    return bool(in_range and np.abs(table.sum(1) - 1).max() <= _TOLERANCE)
