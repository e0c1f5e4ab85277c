"""Max suppression: a penalty on the largest logit in place of the true one (MaxSup)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.options import check_strength
from equipoise.losses.sum import Adaptive

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["MaxSuppressionLoss", "max_suppression_loss"]


def max_suppression_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    strength: float | Float[Tensor, ""] = 0.1,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus the height of the largest logit above the mean of all.

    Label smoothing lowers the logit of the true class, and so rewards wrong predictions that are confident. This
    lowers the largest logit instead, whether it is right or wrong.

    .. math:: -\log p_y + \alpha \left( \max_j z_j - \tfrac1k \sum_j z_j \right)

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        strength: Weight of the penalty (*α*); 0 is cross-entropy.

    Returns:
        One value per sample. Of logits that are tied for the largest, the first has the gradient.

    Example:
        >>> max_suppression_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), strength=1.0)
        tensor([1.1269])

    Reference:
        Zhou et al. (2025), MaxSup: overcoming representation collapse in label smoothing.

    Differs from the authors' code:
        Nothing known in the formula. They raise the strength from 0.1 to 0.2 in the course of the training;
        :class:`MaxSuppressionLoss` does so by epochs if it knows their number.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    return cross_entropy + strength * (logits.max(-1).values - logits.mean(-1))


@final
class MaxSuppressionLoss(Loss, Adaptive):
    """MaxSup with the signature of ``nn.CrossEntropyLoss``; formula in :func:`max_suppression_loss`.

    Args:
        strength: Weight of the penalty in the first epoch (*α*).
        final_strength: Weight in the last epoch; between the two it grows linearly with the epochs.
        epochs: Number of epochs of the training; specs fill it in. None keeps the first strength throughout.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> loss = MaxSuppressionLoss(epochs=3)
        >>> for _ in range(2):
        ...     loss.update(torch.zeros(1, 2), torch.tensor([0]))
        >>> loss.current_strength
        tensor(0.2000)
    """

    soft_targets: ClassVar[bool] = True
    epoch: Tensor
    current_strength: Tensor

    def __init__(
        self,
        *,
        strength: float = 0.1,
        final_strength: float = 0.2,
        epochs: int | None = None,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_strength(strength, where="MaxSuppressionLoss")
        check_strength(final_strength, where="MaxSuppressionLoss")
        if epochs is not None and epochs < 1:
            raise ValueError(f"MaxSuppressionLoss: `epochs` must be at least 1, got {epochs}.")
        self.strength = strength
        self.final_strength = final_strength
        self.epochs = epochs
        if epochs is not None:
            self.register_buffer("epoch", torch.tensor(0))
            self.register_buffer("current_strength", torch.tensor(strength, dtype=torch.float32))

    @property
    def adapts(self) -> bool:
        """Whether the strength changes with the epochs."""
        return self.epochs is not None

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`max_suppression_loss` with the strength of this epoch."""
        strength = self.strength if self.epochs is None else self.current_strength.to(logits)
        return max_suppression_loss(logits, labels, strength=strength)

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Go on to the next epoch; the predictions are not used."""
        if self.epochs is not None:
            self.epoch += 1
            share = min(int(self.epoch) / max(self.epochs - 1, 1), 1.0)
            self.current_strength.fill_(self.strength + share * (self.final_strength - self.strength))
