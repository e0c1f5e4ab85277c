"""Cross-entropy with the squared norm of the logits as a penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.options import check_strength

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["LogitL2Loss", "logit_l2_loss"]


def logit_l2_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    strength: float = 0.002,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus half the squared norm of the logits.

    Weight decay for what the network says instead of its weights. Unlike the norm itself
    (:func:`logit_penalty_loss`), it costs large logits most and small ones next to nothing.

    .. math:: -\log p_y + \tfrac{\beta}{2} \lVert z \rVert_2^2

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        strength: Weight of the penalty (*β*); 0 is cross-entropy.

    Returns:
        One value per sample.

    Example:
        >>> import torch
        >>> logit_l2_loss(torch.tensor([[1.0, -1.0]]), torch.tensor([0]), strength=0.5)
        tensor([0.6269])

    Reference:
        Kornblith et al. (2021), Why do better loss functions lead to less transferable features?, "logit penalty".

    Differs from the authors' code:
        The default strength is not confirmed from the paper, which chooses it for its own data.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    return cross_entropy + 0.5 * strength * logits.square().sum(-1)


@final
class LogitL2Loss(Loss):
    """Squared logit penalty with the signature of ``nn.CrossEntropyLoss``; formula in :func:`logit_l2_loss`.

    Args:
        strength: Weight of the penalty (*β*).
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> import torch
        >>> LogitL2Loss(strength=0.5)(torch.tensor([[1.0, -1.0]]), torch.tensor([0]))
        tensor(0.6269)
    """

    soft_targets: ClassVar[bool] = True

    def __init__(
        self,
        *,
        strength: float = 0.002,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_strength(strength, where="LogitL2Loss")
        self.strength = strength

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`logit_l2_loss`."""
        return logit_l2_loss(logits, labels, strength=self.strength)
