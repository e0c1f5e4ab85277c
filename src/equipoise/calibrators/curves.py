"""Curves and steps on scores in torch, one per class, and the way from changed scores back to probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from equipoise.core.arrays import Array
from equipoise.core.bins import bin_of

__all__ = ["interpolate", "normalised", "padded", "step_at", "with_top"]


def interpolate(x: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    """Follow a piecewise linear curve per class, level beyond its ends.

    Args:
        x: ``(m, c)``.
        knots: ``(c, p)``, ascending; repeats of the last knot are padding.
        values: ``(c, p)``.

    Returns:
        ``(m, c)``.

    Example:
        >>> interpolate(torch.tensor([[0.25], [7.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[2.0, 4.0]]))
        tensor([[2.5000],
                [4.0000]])
    """
    columns = x.T.contiguous()
    right = torch.searchsorted(knots.contiguous(), columns, right=True).clamp(1, knots.shape[1] - 1)
    low, high = knots.gather(1, right - 1), knots.gather(1, right)
    width = high - low
    share = torch.where(width > 0, (columns - low) / torch.where(width > 0, width, 1.0), 1.0).clamp(0.0, 1.0)
    below, above = values.gather(1, right - 1), values.gather(1, right)
    return (below + share * (above - below)).T


def step_at(x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
    """Read a step function per class; bins are right-closed.

    Args:
        x: ``(m, c)``.
        edges: Inner edges ``(c, b - 1)``, ascending; infinities are padding.
        values: ``(c, b)``.

    Returns:
        ``(m, c)``.

    Example:
        >>> step_at(torch.tensor([[0.5], [0.6]]), torch.tensor([[0.5]]), torch.tensor([[0.1, 0.9]]))
        tensor([[0.1000],
                [0.9000]])
    """
    place = bin_of(x.T, edges)
    return values.gather(1, place).T


def normalised(scores: Tensor, fallback: Tensor) -> Tensor:
    """Divide rows by their sums; rows of zeros are taken from ``fallback``.

    Example:
        >>> normalised(torch.tensor([[1.0, 3.0], [0.0, 0.0]]), torch.tensor([[0.5, 0.5], [0.9, 0.1]]))
        tensor([[0.2500, 0.7500],
                [0.9000, 0.1000]])
    """
    total = scores.sum(-1, keepdim=True)
    return torch.where(total > 0, scores / torch.where(total > 0, total, 1.0), fallback)


def with_top(probs: Tensor, confidence: Tensor) -> Tensor:
    """Give the predicted class a new probability; the others share the rest as before.

    Args:
        probs: ``(m, k)``.
        confidence: ``(m,)``.

    Returns:
        Probabilities ``(m, k)``.

    Example:
        >>> with_top(torch.tensor([[0.8, 0.15, 0.05]]), torch.tensor([0.6]))
        tensor([[0.6000, 0.3000, 0.1000]])
    """
    top = probs.argmax(-1, keepdim=True)
    others = probs.scatter(-1, top, 0.0)
    even = torch.full_like(probs, 1.0 / max(1, probs.shape[-1] - 1)).scatter(-1, top, 0.0)
    rest = normalised(others, even) * (1 - confidence)[:, None]
    return rest.scatter(-1, top, confidence[:, None])


def padded(columns: Sequence[Array], *, fill: float | None = None, width: int = 1) -> Array:
    """Stack arrays of unequal length, repeating the last value or a given one.

    Example:
        >>> padded([np.array([1.0]), np.array([2.0, 3.0])])
        array([[1., 1.],
               [2., 3.]])
    """
    width = max(width, *(len(column) for column in columns))
    table = np.empty((len(columns), width))
    for row, column in zip(table, columns, strict=True):
        row[: len(column)] = column
        row[len(column) :] = column[-1] if fill is None else fill
    return table
