"""How the parameters of a linear map act on features: one scale and offset per class, or a full matrix."""

from __future__ import annotations

from typing import Protocol, final

import torch
from torch import Tensor

__all__ = ["Diagonal", "Full", "Shape", "with_one"]


class Shape(Protocol):
    """How parameters act on features; linear in the parameters."""

    def forward(self, features: Tensor, theta: Tensor) -> Tensor:
        """Return new logits ``(m, k)``."""

    def adjoint(self, features: Tensor, residual: Tensor) -> Tensor:
        """Return the gradient of ``sum(residual * forward)``."""

    def jacobian(self, features: Tensor, probs: Tensor) -> Tensor:
        """Return ``(m, size)``: the derivative of ``sum_j probs_j * logit_j`` for each parameter."""

    def moments(self, features: Tensor, weights: Tensor, jacobian: Tensor) -> Tensor:
        """Return ``(k, f, f)``: for every class, the weighted second moments of its own features.

        ``jacobian`` is that of ``weights``; it is given because it is at hand.
        """

    def arrange(self, per_class: Tensor) -> Tensor:
        """Bring parameters from ``(k, f)``, one row per class, to their own shape."""

    def per_class(self, theta: Tensor) -> Tensor:
        """Bring parameters to ``(k, f)``."""


@final
class Diagonal:
    """One scale and one offset per class: ``theta`` is ``(2, k)``."""

    def forward(self, features: Tensor, theta: Tensor) -> Tensor:
        """Scale and shift every column."""
        return torch.addcmul(theta[1], features, theta[0])

    def adjoint(self, features: Tensor, residual: Tensor) -> Tensor:
        """Sum over rows."""
        return torch.stack([(residual * features).sum(0), residual.sum(0)])

    def jacobian(self, features: Tensor, probs: Tensor) -> Tensor:
        """Put the columns for scales before those for offsets."""
        return torch.cat([probs * features, probs], 1)

    def moments(self, features: Tensor, weights: Tensor, jacobian: Tensor) -> Tensor:
        """Return moments of each column."""
        once = weights * features
        second, first, zeroth = (once * features).sum(0), once.sum(0), weights.sum(0)
        return torch.stack([second, first, first, zeroth], 1).reshape(-1, 2, 2)

    def arrange(self, per_class: Tensor) -> Tensor:
        """Transpose."""
        return per_class.T

    def per_class(self, theta: Tensor) -> Tensor:
        """Transpose."""
        return theta.T


@final
class Full:
    """A matrix and an offset: ``theta`` is ``(k, k + 1)``, the offset last."""

    def forward(self, features: Tensor, theta: Tensor) -> Tensor:
        """Multiply and shift."""
        return torch.addmm(theta[:, -1], features, theta[:, :-1].T)

    def adjoint(self, features: Tensor, residual: Tensor) -> Tensor:
        """Correlate residuals with features."""
        return torch.cat([residual.T @ features, residual.sum(0)[:, None]], 1)

    def jacobian(self, features: Tensor, probs: Tensor) -> Tensor:
        """Go class by class."""
        return (probs[:, :, None] * with_one(features)[:, None, :]).flatten(1)

    def moments(self, features: Tensor, weights: Tensor, jacobian: Tensor) -> Tensor:
        """Return moments of all features, weighted for every class."""
        wide = with_one(features)
        return (jacobian.T @ wide).reshape(-1, wide.shape[1], wide.shape[1])

    def arrange(self, per_class: Tensor) -> Tensor:
        """Return it unchanged."""
        return per_class

    def per_class(self, theta: Tensor) -> Tensor:
        """Return it unchanged."""
        return theta


def with_one(features: Tensor) -> Tensor:
    """Append a column of ones.

    Example:
        >>> with_one(torch.zeros(1, 2))
        tensor([[0., 0., 1.]])
    """
    return torch.cat([features, torch.ones_like(features[:, :1])], 1)
