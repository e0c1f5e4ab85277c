"""Cross-entropy weighted by the distance of the prediction from the truth (BSCE, BSCE-GRA)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.focal import power
from equipoise.losses.options import check_gamma

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["BrierWeightedLoss", "brier_weighted_loss"]


def brier_weighted_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    gamma: float = 2.0,
    norm: float = 1.0,
    detach_weight: bool = False,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy weighted by how far the predicted probabilities are from the truth.

    Like focal loss, with the whole prediction in the weight instead of the true class alone. With a constant weight
    (BSCE-GRA) the gradient is that of cross-entropy, scaled by how uncertain the prediction is.

    .. math:: -\lVert p - e_y \rVert_\beta^\gamma \log p_y

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        gamma: Exponent of the distance (*γ*); 0 is cross-entropy.
        norm: Order of the norm (*β*), at least 1. With 1 the distance is :math:`2 (1 - p_y)`, so that the loss is
            :math:`2^\gamma` times focal loss; with 2 and ``gamma=2`` it is the Brier score times cross-entropy.
        detach_weight: Hold the distance constant in the backward pass: BSCE-GRA.

    Returns:
        One value per sample.

    Example:
        >>> brier_weighted_loss(torch.zeros(1, 2), torch.tensor([0]), gamma=2.0, norm=2.0)
        tensor([0.3466])

    Reference:
        Lin et al. (2025), Uncertainty weighted gradients for model calibration.

    Differs from the authors' code:
        They sum over the batch; use ``reduction="sum"``. They have no default for gamma, which they choose for each
        task; 2 is ours. Ours is finite, with its gradient, where the true class has probability 1.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    missing = -torch.expm1(-cross_entropy)  # 1 - p_y without cancellation
    if norm == 1:
        weight = power(2 * missing, gamma)
    else:
        # Distances of at most 1, of which the true class's is replaced by the exact one.
        distances = logits.softmax(-1).scatter(-1, labels[:, None], missing[:, None])
        floor = torch.finfo(distances.dtype).eps ** 2
        weight = power(distances.clamp(min=floor).pow(norm).sum(-1), gamma / norm)
    return (weight.detach() if detach_weight else weight) * cross_entropy


@final
class BrierWeightedLoss(Loss):
    """BSCE and BSCE-GRA with the signature of ``nn.CrossEntropyLoss``; formula in :func:`brier_weighted_loss`.

    Args:
        gamma: Exponent of the distance.
        norm: Order of the norm, at least 1.
        detach_weight: Hold the distance constant in the backward pass: BSCE-GRA.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> BrierWeightedLoss(norm=2.0)(torch.zeros(1, 2), torch.tensor([0]))
        tensor(0.3466)
    """

    def __init__(
        self,
        *,
        gamma: float = 2.0,
        norm: float = 1.0,
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(gamma, where="BrierWeightedLoss")
        if not 1 <= norm < float("inf"):
            raise ValueError(
                f"BrierWeightedLoss: `norm` must be at least 1 and finite, got {norm}. The authors use 1."
            )
        self.gamma = gamma
        self.norm = norm
        self.detach_weight = detach_weight

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`brier_weighted_loss`."""
        return brier_weighted_loss(
            logits, labels, gamma=self.gamma, norm=self.norm, detach_weight=self.detach_weight
        )
