"""The forms scores come in (columns, rows, dense outputs; NumPy, torch) and the way back to each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from equipoise.core.arrays import Array, as_floats, as_tensor
from equipoise.core.predictions.arguments import labels_of
from equipoise.core.predictions.as_rows import score_rows
from equipoise.core.probabilities import positive_logits

__all__ = ["as_rows", "blocks", "one_column", "restore"]

_ELEMENTS = 1 << 18


def as_rows(scores: Any, *, where: str) -> Array:
    """Return logits as rows ``(m, k)``; one column of log-odds becomes two.

    Args:
        scores: ``(n,)``, ``(n, 1)``, ``(n, k)`` or dense ``(n, k, d1, ...)``; NumPy or torch.
        where: The caller, for the message.

    Returns:
        float32 or float64 rows, dense places in the order of ``labels.reshape(-1)``.

    Example:
        >>> as_rows(torch.zeros(2, 3, 4, 4), where="doc").shape
        (32, 3)
        >>> as_rows([1.5], where="doc")
        array([[0. , 1.5]])
    """
    values = as_floats(scores, where=where, name="logits")
    if values.ndim == 0:
        raise ValueError(
            f"{where}: `logits` must have a row per sample, got a single number. Pass an array (n, k)."
        )
    rows = score_rows(values, labels_of(None, values, None), name="logits")
    return positive_logits(rows) if rows.ndim == 1 else rows


def one_column(rows: Array, *, gives: str) -> Array:
    """Return the positive class of two-column scores: log-odds, or its probability.

    Example:
        >>> one_column(np.array([[0.5, 2.0]]), gives="logits")
        array([1.5])
    """
    return rows[:, 1] - rows[:, 0] if gives == "logits" else rows[:, 1]


def restore(rows: Array, like: Any, *, gives: str) -> Any:
    """Give mapped rows the shape, type, precision and device that the scores came in.

    Example:
        >>> restore(np.zeros((32, 3)), torch.zeros(2, 3, 4, 4), gives="logits").shape
        torch.Size([2, 3, 4, 4])
    """
    shape = tuple(np.shape(like))
    if len(shape) == 1 or shape[1] == 1:
        result = one_column(rows, gives=gives).reshape(shape)
    else:
        result = np.moveaxis(rows.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
    if isinstance(like, torch.Tensor):
        dtype = like.dtype if like.is_floating_point() else torch.float64
        return as_tensor(np.ascontiguousarray(result)).to(device=like.device, dtype=dtype)
    if isinstance(like, np.ndarray) and like.dtype.kind == "f":
        return result.astype(like.dtype, copy=False)
    return result


def blocks(n_rows: int, n_classes: int) -> Iterator[slice]:
    """Yield slices of rows small enough that a float64 copy of each stays in the cache.

    Example:
        >>> [block.stop for block in blocks(5, 1 << 17)]
        [2, 4, 5]
    """
    step = max(1, _ELEMENTS // max(1, n_classes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
