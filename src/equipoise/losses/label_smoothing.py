"""Label smoothing: cross-entropy against softened targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["LabelSmoothingLoss", "label_smoothing_loss"]


def label_smoothing_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    smoothing: float = 0.05,
    off_target: bool = False,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy against a target that gives a little probability to every class.

    The logits stop growing once the true class has :math:`1 - \alpha + \alpha/k`, so no prediction is driven
    to certainty. It softens all samples alike, sure and unsure, and hides which wrong classes are near.

    .. math:: -(1 - \alpha) \log p_y - \frac{\alpha}{k} \sum_j \log p_j

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets, which are smoothed in the same way.
        smoothing: Probability taken from the target (*α*).
        off_target: Share it among the other ``k - 1`` classes only, instead of among all ``k``. The same
            number then smooths by ``k / (k - 1)`` more.

    Returns:
        One value per sample.

    Example:
        >>> import torch
        >>> label_smoothing_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), smoothing=0.1)
        tensor([0.2269])

    Reference:
        Szegedy et al. (2016), Rethinking the Inception architecture, section 7; for calibration: Müller et
        al. (2019), When does label smoothing help?

    Differs from the authors' code:
        The MDCA repository shares among the other classes; ``off_target=True`` does so. With class weights
        torch's ``label_smoothing`` weighs inside the sum over classes, so that the weights change the
        smoothing; here they weigh samples.
    """
    if off_target:
        n_classes = logits.shape[-1]
        smoothing = smoothing * n_classes / (n_classes - 1)
    return nn.functional.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)


@final
class LabelSmoothingLoss(Loss):
    """Label smoothing with the signature of ``nn.CrossEntropyLoss``; formula in :func:`label_smoothing_loss`.

    Args:
        smoothing: Probability taken from the target, in ``[0, 1)``.
        off_target: Share it among the other classes only.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> import torch
        >>> LabelSmoothingLoss(smoothing=0.1)(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(0.2269)
    """

    soft_targets: ClassVar[bool] = True

    def __init__(
        self,
        *,
        smoothing: float = 0.05,
        off_target: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        if not 0 <= smoothing < 1:
            raise ValueError(
                f"LabelSmoothingLoss: `smoothing` must be in [0, 1), got {smoothing}. "
                "The papers use 0.05 or 0.1."
            )
        self.smoothing = smoothing
        self.off_target = off_target

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`label_smoothing_loss`."""
        return label_smoothing_loss(logits, labels, smoothing=self.smoothing, off_target=self.off_target)
