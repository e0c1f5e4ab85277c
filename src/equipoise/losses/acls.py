"""Adaptive and conditional label smoothing: costs for a large top logit and for small other ones (ACLS)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.options import check_margin, check_strength

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["AdaptiveConditionalLoss", "adaptive_conditional_loss"]


def adaptive_conditional_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    margin: float = 10.0,
    strength: float = 0.1,
    top: float = 1.0,
    others: float = 0.1,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus squared costs for a top logit above a margin, and for other logits that far below it.

    Smoothing that grows with confidence, and acts only on predictions that are too confident. The first cost sees the
    size of the top logit itself, so the loss is not invariant to a shift of all logits.

    .. math::
        -\log p_y + \alpha \Bigl[ \lambda_1 \max(0, z_{(1)} - m)^2 +
        \frac{\lambda_2}{k - 1} \sum_{j : z_j < z_{(1)}} \max(0, z_{(1)} - z_j - m)^2 \Bigr],
        \qquad z_{(1)} = \max_j z_j

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        margin: Height and gap that cost nothing (*m*).
        strength: Weight of both costs (*α*); 0 is cross-entropy.
        top: Weight of the top logit's height (:math:`\lambda_1`).
        others: Weight of the other logits' gaps (:math:`\lambda_2`).

    Returns:
        One value per sample. In the gaps the top logit is constant in the backward pass.

    Example:
        >>> import torch
        >>> adaptive_conditional_loss(torch.tensor([[12.0, 0.0]]), torch.tensor([0]), strength=1.0)
        tensor([4.4000])

    Reference:
        Park et al. (2023), ACLS: adaptive and conditional label smoothing for network calibration.

    Differs from the authors' code:
        Nothing known: logits that are tied for the largest have no gap, and gaps are divided by *k* - 1, as there.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    largest = logits.max(-1, keepdim=True).values
    height = (largest[:, 0] - margin).relu().square()
    gaps = (largest.detach() - logits - margin).relu().square()
    below = gaps.where(logits.detach() < largest.detach(), 0.0).sum(-1) / max(logits.shape[-1] - 1, 1)
    return cross_entropy + strength * (top * height + others * below)


@final
class AdaptiveConditionalLoss(Loss):
    """ACLS with the signature of ``nn.CrossEntropyLoss``; formula in :func:`adaptive_conditional_loss`.

    Args:
        margin: Height and gap that cost nothing (*m*).
        strength: Weight of both costs (*α*).
        top: Weight of the top logit's height.
        others: Weight of the other logits' gaps.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> import torch
        >>> AdaptiveConditionalLoss(strength=1.0)(torch.tensor([[12.0, 0.0]]), torch.tensor([0]))
        tensor(4.4000)
    """

    soft_targets: ClassVar[bool] = True

    def __init__(
        self,
        *,
        margin: float = 10.0,
        strength: float = 0.1,
        top: float = 1.0,
        others: float = 0.1,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_margin(margin, where="AdaptiveConditionalLoss")
        check_strength(strength, where="AdaptiveConditionalLoss")
        for name, value in (("top", top), ("others", others)):
            if not value >= 0:
                raise ValueError(f"AdaptiveConditionalLoss: `{name}` must be at least 0, got {value}.")
        self.margin = margin
        self.strength = strength
        self.top = top
        self.others = others

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`adaptive_conditional_loss`."""
        return adaptive_conditional_loss(
            logits, labels, margin=self.margin, strength=self.strength, top=self.top, others=self.others
        )
