"""Cross-entropy with the norm of the logits as a penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from equipoise.core.names import check_choice
from equipoise.losses.base import Loss, Reduction
from equipoise.losses.options import check_strength

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["LogitPenaltyLoss", "logit_penalty_loss"]


def logit_penalty_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    strength: float = 0.05,
    order: float = 1.0,
    on: Literal["logits", "probs"] = "logits",
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus the size of the logits.

    Regularization in function space: it keeps the scores small instead of the weights. It also pins the
    logits' common shift, which the probabilities do not see, to 0.

    .. math:: -\log p_y + \alpha \lVert z \rVert_p

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        strength: Weight of the norm (*α*): 0.05 for 10 classes, 0.01 for 100.
        order: Which norm (*p*), at least 1; may be infinite.
        on: ``"logits"``, or ``"probs"`` for the distance of the probabilities from uniform,
            :math:`\lVert p - 1/k \rVert_p`.

    Returns:
        One value per sample. The gradient of the norm at 0 is 0.

    Example:
        >>> logit_penalty_loss(torch.tensor([[1.0, -1.0]]), torch.tensor([0]), strength=0.5)
        tensor([1.1269])

    Reference:
        Wang et al. (2021), Rethinking calibration of deep neural networks, section 4.

    Differs from the authors' code:
        Nothing known. What the MbLS repository calls an L1 penalty is another one; ``on="probs"`` gives it.
    """
    measured = logits if on == "logits" else logits.softmax(-1) - 1 / logits.shape[-1]
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    return cross_entropy + strength * _norm(measured, order)


def _norm(values: Tensor, order: float) -> Tensor:
    if order == 1:
        return values.abs().sum(-1)
    if order in (2, torch.inf):
        norm: Tensor = torch.linalg.vector_norm(values, ord=order, dim=-1)
        return norm
    # A high power of a large logit overflows: bring the largest to 1 first. The scale may be held constant,
    # because a norm's gradient does not depend on it.
    scale = values.detach().abs().amax(-1, keepdim=True)
    scale = scale.where(scale > 0, 1.0)
    scaled: Tensor = torch.linalg.vector_norm(values / scale, ord=order, dim=-1)
    return scaled * scale[:, 0]


@final
class LogitPenaltyLoss(Loss):
    """Logit penalty with the signature of ``nn.CrossEntropyLoss``; formula in :func:`logit_penalty_loss`.

    Args:
        strength: Weight of the norm (*α*).
        order: Which norm, at least 1.
        on: ``"logits"`` or ``"probs"``.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> LogitPenaltyLoss(strength=0.5)(torch.tensor([[1.0, -1.0]]), torch.tensor([0]))
        tensor(1.1269)
    """

    soft_targets: ClassVar[bool] = True

    def __init__(
        self,
        *,
        strength: float = 0.05,
        order: float = 1.0,
        on: Literal["logits", "probs"] = "logits",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_strength(strength, where="LogitPenaltyLoss")
        check_choice(on, ("logits", "probs"), where="LogitPenaltyLoss", name="on")
        if not order >= 1:
            raise ValueError(
                f"LogitPenaltyLoss: `order` must be at least 1, got {order}. The paper's norm is 1."
            )
        self.strength = strength
        self.order = order
        self.on: Literal["logits", "probs"] = on

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`logit_penalty_loss`."""
        return logit_penalty_loss(logits, labels, strength=self.strength, order=self.order, on=self.on)
