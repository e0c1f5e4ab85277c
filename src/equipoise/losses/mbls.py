"""Margin-based label smoothing: a cost for logits too far below the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.hinge import hinge
from equipoise.losses.options import (
    OverClasses,
    check_margin,
    check_over_classes,
    check_strength,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["MarginLoss", "margin_loss"]


def margin_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    margin: float = 10.0,
    strength: float = 0.1,
    over_classes: OverClasses = "sum",
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus a cost for gaps between the largest logit and the others beyond a margin.

    Label smoothing drives all gaps to one value; this lets them be, up to the margin, and so costs less
    accuracy. One margin for all classes: if they differ much, let CALS find the strengths.

    .. math:: -\log p_y + \lambda \sum_j \max(0, \max_i z_i - z_j - m)

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        margin: Gap that costs nothing (*m*). The paper uses 10 for images and 6 for text.
        strength: Cost of the rest (*λ*).
        over_classes: ``"sum"`` as in the equation, or ``"mean"``.

    Returns:
        One value per sample.

    Example:
        >>> import torch
        >>> margin_loss(torch.tensor([[12.0, 0.0]]), torch.tensor([0]), margin=10.0, strength=1.0)
        tensor([2.0000])

    Reference:
        Liu et al. (2022), The devil is in the margin: margin-based label smoothing, eq. (8).

    Differs from the authors' code:
        They average over classes too, so that their strength 0.1 is 0.1/k of the equation's;
        ``over_classes="mean"`` does so, and the catalogue uses it to match the published results.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    n_classes = logits.shape[-1]
    weights = logits.new_full((n_classes,), strength if over_classes == "sum" else strength / n_classes)
    return cross_entropy + hinge(logits, margins=logits.new_full((), margin), weights=weights)


@final
class MarginLoss(Loss):
    """Margin-based label smoothing with the signature of ``nn.CrossEntropyLoss``; see :func:`margin_loss`.

    Args:
        margin: Gap between logits that costs nothing (*m*).
        strength: Cost of the rest (*λ*).
        over_classes: ``"sum"`` or ``"mean"``.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> import torch
        >>> MarginLoss(strength=1.0)(torch.tensor([[12.0, 0.0]]), torch.tensor([0]))
        tensor(2.0000)
    """

    soft_targets: ClassVar[bool] = True

    def __init__(
        self,
        *,
        margin: float = 10.0,
        strength: float = 0.1,
        over_classes: OverClasses = "sum",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_margin(margin, where="MarginLoss")
        check_strength(strength, where="MarginLoss")
        check_over_classes(over_classes, where="MarginLoss")
        self.margin = margin
        self.strength = strength
        self.over_classes: OverClasses = over_classes

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`margin_loss`."""
        return margin_loss(
            logits, labels, margin=self.margin, strength=self.strength, over_classes=self.over_classes
        )
