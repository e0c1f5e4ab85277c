"""Binary problems, one per class: columns of targets, weighted logistic regressions solved side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError

__all__ = ["LogisticFit", "fit_logistic", "log_odds", "row_weights", "targets"]

_RIDGE = 1e-9
_MOST_STEPS = 60


def targets(labels: Array, n_classes: int) -> Array:
    """Return ``(n, k)`` with one where the column is the label.

    Example:
        >>> targets(np.array([1, 0]), 2)
        array([[0., 1.],
               [1., 0.]])
    """
    return np.equal(labels[:, None], np.arange(n_classes)).astype(np.float64)


def row_weights(weights: Array | None, n_rows: int) -> Array:
    """Return the weights, or ones.

    Example:
        >>> row_weights(None, 2)
        array([1., 1.])
    """
    return np.ones(n_rows) if weights is None else weights


def log_odds(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return log p and log(1 - p) for every class, exact where p is next to 0 or 1.

    Example:
        >>> [part.tolist() for part in log_odds(torch.tensor([[0.0, 1e4]]))]
        [[[-10000.0, 0.0]], [[-0.0, -10000.0]]]
    """
    log_probs = logits.log_softmax(-1)
    first = logits.max(-1, keepdim=True).values
    top = logits.argmax(-1, keepdim=True)
    # For the top class 1 - p is the sum of the others, which log1p(-p) cannot see.
    # Written so that exp never overflows, also where logaddexp is translated word for word, as in ONNX.
    behind = logits.scatter(-1, top, -torch.inf).logsumexp(-1, keepdim=True) - first
    remainder = behind - torch.log1p(behind.exp())
    log_rest = torch.log1p(-log_probs.exp().clamp(max=0.75)).scatter(-1, top, remainder)
    return log_probs, log_rest


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """Coefficients ``(k, d)`` of k regressions, with their certificate."""

    coefficients: Tensor
    gap: float
    iterations: int
    converged: bool


def fit_logistic(
    features: Sequence[Tensor], wanted: Tensor, weights: Tensor, *, free: Tensor, start: Tensor
) -> LogisticFit:
    """Fit k weighted logistic regressions at once by damped Newton steps.

    Args:
        features: d tensors ``(n, k)``: what every regression sees of each row.
        wanted: Targets in [0, 1], ``(n, k)``.
        weights: ``(n,)``, summing to one.
        free: ``(k, d)``; False holds a coefficient at its start.
        start: ``(k, d)``.

    Returns:
        The coefficients and how well they are determined.

    Example:
        >>> ones, wanted = torch.ones(4, 1).double(), torch.tensor([[1.0], [1.0], [1.0], [0.0]]).double()
        >>> found = fit_logistic([ones], wanted, torch.full((4,), 0.25).double(),
        ...                      free=torch.ones(1, 1, dtype=bool), start=torch.zeros(1, 1).double())
        >>> round(float(found.coefficients), 6) == round(float(np.log(3)), 6)
        True
    """
    problem = _Problem(features, wanted, weights[:, None], free, start)
    theta, gap, steps = start.clone(), torch.inf, 0
    if not all(bool((feature.square() < torch.inf).all()) for feature in features):
        raise DataError(
            "fit: `logits` must be numbers whose squares are finite, got larger ones. Are these a network's logits?"
        )
    value = problem.value(theta)
    gradient, hessian = problem.derivatives(theta)
    while gap > 1e-13 and steps < _MOST_STEPS:
        direction = -torch.linalg.solve(hessian, gradient[..., None])[..., 0]
        gap = float((-0.5 * direction * gradient).sum(1).max())
        length = torch.ones_like(value)
        for _ in range(20):
            trial = problem.value(theta + length[:, None] * direction)
            worse = ~(trial <= value + 1e-15)
            if not bool(worse.any()):
                break
            length = torch.where(worse, length / 4, length)
        theta = theta + length[:, None] * direction
        stalled = not bool((value - trial > 1e-14).any())
        value = trial
        steps += 1
        if stalled:
            break
        gradient, hessian = problem.derivatives(theta)
    return LogisticFit(theta, gap, steps, gap <= 1e-10)


@dataclass(frozen=True, slots=True)
class _Problem:
    features: Sequence[Tensor]
    wanted: Tensor
    share: Tensor
    free: Tensor
    start: Tensor

    def score(self, theta: Tensor) -> Tensor:
        """Return what every regression says of each row, ``(n, k)``."""
        score = torch.zeros_like(self.wanted)
        for j, feature in enumerate(self.features):
            score = torch.addcmul(score, feature, theta[:, j])
        return score

    def value(self, theta: Tensor) -> Tensor:
        """Return the objective of every regression, ``(k,)``."""
        score, drift = self.score(theta), theta - self.start
        loss = torch.nn.functional.softplus(score) - self.wanted * score
        return (loss * self.share).sum(0) + _RIDGE * (drift**2).sum(1)

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return gradient ``(k, d)`` and Hessian ``(k, d, d)`` of every regression."""
        drift, probs = theta - self.start, self.score(theta).sigmoid()
        residual, spread = (probs - self.wanted) * self.share, probs * (1 - probs) * self.share
        gradient = torch.stack([(residual * feature).sum(0) for feature in self.features], 1)
        rows = [torch.stack([(spread * a * b).sum(0) for b in self.features], 1) for a in self.features]
        both = self.free[:, :, None] & self.free[:, None, :]
        hessian = torch.where(both, torch.stack(rows, 1), 0.0)
        hessian = hessian + torch.diag_embed(torch.where(self.free, 2 * _RIDGE, 1.0))
        return (gradient + 2 * _RIDGE * drift) * self.free, hessian
