"""The Brier score as a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

import torch
from torch import Tensor

from equipoise.losses.base import Loss

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["BrierLoss", "brier_loss"]


def brier_loss(
    logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"] | Float[Tensor, "n k"]
) -> Float[Tensor, " n"]:
    r"""Squared distance between the predicted probabilities and the target.

    A proper score like cross-entropy, but bounded: one confidently wrong sample costs at most 2. Its gradient
    vanishes for such samples, so training starts slowly when there are many classes.

    .. math:: \sum_k (p_k - t_k)^2

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets *t*.

    Returns:
        One value per sample, in ``[0, 2]``.

    Example:
        >>> brier_loss(torch.zeros(1, 2), torch.tensor([0]))
        tensor([0.5000])

    Reference:
        Brier (1950), Verification of forecasts expressed in terms of probability; as a training loss in
        Mukhoti et al. (2020), Calibrating deep neural networks using focal loss.

    Differs from the authors' code:
        Nothing known: summed over classes, as theirs.
    """
    probs = logits.softmax(-1)
    if labels.is_floating_point():
        return (probs - labels).square().sum(-1)
    # Subtracting 1 in place of a one-hot matrix, and never p^2 - 2p + 1, which cancels as p nears 1.
    target = labels[:, None]
    return probs.scatter_add(-1, target, -torch.ones_like(target, dtype=probs.dtype)).square().sum(-1)


@final
class BrierLoss(Loss):
    """The Brier score with the signature of ``nn.CrossEntropyLoss``; formula in :func:`brier_loss`.

    Args:
        weight: Weight of each class, ``(k,)``.
        ignore_index: Label of samples that do not count.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> BrierLoss()(torch.zeros(1, 2), torch.tensor([0]))
        tensor(0.5000)
    """

    soft_targets: ClassVar[bool] = True

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`brier_loss`."""
        return brier_loss(logits, labels)
