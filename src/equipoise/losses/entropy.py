"""Cross-entropy with a reward for entropy: the confidence penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.options import OverClasses, check_over_classes, check_strength

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["EntropyRegularizedLoss", "entropy_regularized_loss"]


def entropy_regularized_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    strength: float = 0.1,
    over_classes: OverClasses = "sum",
) -> Float[Tensor, " n"]:
    r"""Cross-entropy minus a share of the prediction's entropy.

    Predictions are pulled towards uniform, most where they are surest. Like label smoothing it softens right
    and wrong predictions alike.

    .. math:: -\log p_y - \alpha H(p), \qquad H(p) = -\sum_j p_j \log p_j

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        strength: How much entropy is rewarded (*α*).
        over_classes: ``"sum"`` is the entropy; ``"mean"`` divides it by the number of classes.

    Returns:
        One value per sample.

    Example:
        >>> entropy_regularized_loss(torch.zeros(1, 2), torch.tensor([0]), strength=0.1)
        tensor([0.6238])

    Reference:
        Pereyra et al. (2017), Regularizing neural networks by penalizing confident output distributions.

    Differs from the authors' code:
        The MbLS and CALS repositories average over classes too, which divides the strength by their
        number; ``over_classes="mean"`` does so. They also clamp the probabilities at 1e-10; we need not.
    """
    if over_classes == "mean":
        strength = strength / logits.shape[-1]
    if labels.is_floating_point() or torch.compiler.is_compiling():  # a compiler fuses the passes by itself
        log_probs, negative = _log_probs_and_negative_entropy(logits)
        if labels.is_floating_point():
            return strength * negative - (labels * log_probs).sum(-1)
        return strength * negative + nn.functional.nll_loss(log_probs, labels, reduction="none")
    value: Tensor = _ClosedForm.apply(logits, labels[:, None], strength)[0]  # type: ignore[no-untyped-call]
    return value


def _log_probs_and_negative_entropy(logits: Tensor) -> tuple[Tensor, Tensor]:
    log_probs = torch.log_softmax(logits, -1)
    return log_probs, torch.linalg.vecdot(log_probs.exp(), log_probs)


class _ClosedForm(torch.autograd.Function):
    """The gradient in one formula, with half the passes over the logits of automatic differentiation."""

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, labels: Tensor, strength: float) -> tuple[Tensor, Tensor, Tensor]:
        log_probs, negative = _log_probs_and_negative_entropy(logits)
        return strength * negative - log_probs.gather(-1, labels)[..., 0], log_probs, negative

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, float], output: tuple[Tensor, Tensor, Tensor]
    ) -> None:
        logits, labels, ctx.strength = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(logits, labels, *output[1:])
        ctx.save_for_forward(logits, labels)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> tuple[Tensor, None, None]:
        logits, labels = ctx.saved_tensors
        log_probs, negative = _log_probs_and_negative_entropy(logits)
        rise = tangents[0]
        slopes = log_probs.exp() * (ctx.strength * (log_probs - negative[..., None]) + 1)
        return torch.linalg.vecdot(slopes, rise) - rise.gather(-1, labels)[..., 0], None, None

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        logits, labels, log_probs, negative = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: connect both to the logits
            log_probs, negative = _log_probs_and_negative_entropy(logits)
        outer = grads[0][..., None]
        slopes = (ctx.strength * log_probs).add_(1 - ctx.strength * negative[..., None])
        slopes = slopes.mul_(log_probs.exp()).mul_(outer)
        return slopes.scatter_add_(-1, labels, -outer), None, None


@final
class EntropyRegularizedLoss(Loss):
    """Confidence penalty with the signature of ``nn.CrossEntropyLoss``; see :func:`entropy_regularized_loss`.

    Args:
        strength: How much entropy is rewarded (*α*).
        over_classes: ``"sum"`` or ``"mean"``.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> EntropyRegularizedLoss(strength=0.1)(torch.zeros(1, 2), torch.tensor([0]))
        tensor(0.6238)
    """

    soft_targets: ClassVar[bool] = True

    def __init__(
        self,
        *,
        strength: float = 0.1,
        over_classes: OverClasses = "sum",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_strength(strength, where="EntropyRegularizedLoss")
        check_over_classes(over_classes, where="EntropyRegularizedLoss")
        self.strength = strength
        self.over_classes: OverClasses = over_classes

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`entropy_regularized_loss`."""
        return entropy_regularized_loss(
            logits, labels, strength=self.strength, over_classes=self.over_classes
        )
