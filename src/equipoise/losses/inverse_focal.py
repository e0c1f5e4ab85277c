"""Inverse focal loss: more weight for samples the network is sure of."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.focal import power
from equipoise.losses.options import check_gamma

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["InverseFocalLoss", "inverse_focal_loss"]


def inverse_focal_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    gamma: float | Float[Tensor, "*n"] = 2.0,
    detach_weight: bool = False,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy that weighs a sample more as the network grows sure of it.

    The opposite of focal loss: it raises confidence, so that a temperature fitted afterwards has more
    to work with. On its own it makes an overconfident network worse.

    .. math:: -(1 + p_y)^\gamma \log p_y

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        gamma: How fast the weight grows; 0 is cross-entropy. A number, or one per sample.
        detach_weight: Hold the weight constant in the backward pass.

    Returns:
        One value per sample.

    Example:
        >>> inverse_focal_loss(torch.zeros(1, 2), torch.tensor([0]), gamma=1.0)
        tensor([1.0397])

    Reference:
        Wang et al. (2021), Rethinking calibration of deep neural networks, section 5.2.

    Differs from the authors' code:
        Their repository does not hold this loss. Some public versions use :math:`p_y^\gamma`; that is not
        the paper's.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    weight = power(1 + torch.exp(-cross_entropy), gamma)
    return (weight.detach() if detach_weight else weight) * cross_entropy


@final
class InverseFocalLoss(Loss):
    """Inverse focal loss with the signature of ``nn.CrossEntropyLoss``; see :func:`inverse_focal_loss`.

    Args:
        gamma: How fast the weight grows with the true class's probability.
        detach_weight: Hold the weight constant in the backward pass.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> InverseFocalLoss(gamma=1.0)(torch.zeros(1, 2), torch.tensor([0]))
        tensor(1.0397)
    """

    def __init__(
        self,
        *,
        gamma: float = 2.0,
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(gamma, where="InverseFocalLoss")
        self.gamma = gamma
        self.detach_weight = detach_weight

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`inverse_focal_loss`."""
        return inverse_focal_loss(logits, labels, gamma=self.gamma, detach_weight=self.detach_weight)
