"""Poly-1: cross-entropy with another weight for the first term of its expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["Poly1Loss", "poly1_loss"]


def poly1_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    epsilon: float = 1.0,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus a multiple of the probability that is missing from the true class.

    Cross-entropy is :math:`\sum_j (1 - p_y)^j / j`; this changes the weight of the first term. Above 0 it raises
    confidence, below 0 it lowers it.

    .. math:: -\log p_y + \epsilon (1 - p_y)

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        epsilon: Change of the first weight (*ε*), at least -1; 0 is cross-entropy. The paper chooses it for each
            task; the default of 1 is usual and not confirmed from the paper.

    Returns:
        One value per sample.

    Example:
        >>> poly1_loss(torch.zeros(1, 2), torch.tensor([0]), epsilon=2.0)
        tensor([1.6931])

    Reference:
        Leng et al. (2022), PolyLoss: a polynomial expansion perspective of classification loss functions.

    Differs from the authors' code:
        Nothing known.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    if labels.is_floating_point():
        return cross_entropy + epsilon * (1 - (labels * logits.softmax(-1)).sum(-1))
    return cross_entropy - epsilon * torch.expm1(-cross_entropy)  # 1 - p_y without cancellation


@final
class Poly1Loss(Loss):
    """Poly-1 with the signature of ``nn.CrossEntropyLoss``; formula in :func:`poly1_loss`.

    Args:
        epsilon: Change of the first weight, at least -1.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> Poly1Loss(epsilon=2.0)(torch.zeros(1, 2), torch.tensor([0]))
        tensor(1.6931)
    """

    soft_targets: ClassVar[bool] = True

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        if not epsilon >= -1:
            raise ValueError(
                f"Poly1Loss: `epsilon` must be at least -1, got {epsilon}. Below that the loss falls as mistakes grow."
            )
        self.epsilon = epsilon

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`poly1_loss`."""
        return poly1_loss(logits, labels, epsilon=self.epsilon)
