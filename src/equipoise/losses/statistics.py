"""What batch-level terms are made of: shares of weight, confidence and correctness, a root safe at 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["column_sums", "confidence_gap", "entropy", "one_hot", "safe_root", "shares", "top_label"]


def shares(weights: Float[Tensor, " n"] | None, like: Float[Tensor, "n ..."]) -> Float[Tensor, " n"]:
    """Return each sample's share of the batch: weights that sum to 1, or zeros if nothing counts.

    Example:
        >>> shares(torch.tensor([1.0, 3.0, 0.0]), torch.zeros(3, 2))
        tensor([0.2500, 0.7500, 0.0000])
    """
    if weights is None:
        return like.new_full((len(like),), 1 / max(len(like), 1))
    total = weights.sum()
    return weights / total.where(total != 0, 1.0)


def one_hot(labels: Int[Tensor, " n"], like: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """Return rows with 1 at the label; torch's own reads the labels, which waits for the device.

    Example:
        >>> one_hot(torch.tensor([1, 0]), torch.zeros(2, 2))
        tensor([[0., 1.], [1., 0.]])
    """
    return (labels[:, None] == torch.arange(like.shape[-1], device=labels.device)).to(like)


def top_label(
    logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Return the largest probability of each sample, with gradient, and 1 where its class is the label.

    At a tie the first class is the prediction and alone receives gradient.

    Example:
        >>> top_label(torch.tensor([[0.0, 0.0], [-30.0, 30.0]]), torch.tensor([0, 0]))
        (tensor([0.5000, 1.0000]), tensor([1., 0.]))
    """
    top, predicted = logits.max(-1)
    confidence = (top - logits.logsumexp(-1)).exp()  # half the time of a softmax, of which one column is used
    return confidence, (predicted == labels).to(confidence)


def confidence_gap(
    logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"] | None
) -> Float[Tensor, ""]:
    """Return mean confidence minus accuracy of a batch.

    Example:
        >>> confidence_gap(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]), None)
        tensor(-0.2500)
    """
    confidence, correct = top_label(logits, labels)
    return (shares(weights, logits) * (confidence - correct)).sum()


def entropy(log_probs: Float[Tensor, "n k"]) -> Float[Tensor, " n"]:
    """Return the entropy of each row, in nats.

    Example:
        >>> entropy(torch.zeros(1, 2).log_softmax(-1))
        tensor([0.6931])
    """
    return -(log_probs.exp() * log_probs).sum(-1)


def column_sums(weights: Float[Tensor, " n"], values: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """Return the weighted sum of each column.

    Not a matrix product: autocast would take that to half precision in the backward pass.

    Example:
        >>> column_sums(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
        tensor([3., 2.])
    """
    return (weights[:, None] * values).sum(0)


def safe_root(value: Tensor) -> Tensor:
    """Return the square root of what should not be negative, with a finite gradient at 0.

    Example:
        >>> x = torch.zeros((), requires_grad=True)
        >>> safe_root(3 * x * x).backward()
        >>> x.grad
        tensor(0.)
    """
    epsilon = torch.finfo(value.dtype).eps
    return (value.clamp(min=0) + epsilon**2).sqrt() - epsilon
