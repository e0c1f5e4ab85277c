"""Focal loss whose gamma depends on how likely the true class is: FLSD-53."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from equipoise.losses.base import Loss, Reduction
from equipoise.losses.focal import focal_of
from equipoise.losses.options import check_gamma

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["SampleDependentFocalLoss", "sample_dependent_focal_loss"]


def sample_dependent_focal_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    gammas: tuple[float, float, float] = (5.0, 3.0, 3.0),
    cuts: tuple[float, float] = (0.2, 0.5),
    detach_weight: bool = False,
) -> Float[Tensor, " n"]:
    r"""Focal loss with a larger gamma for samples whose true class is still unlikely.

    A large gamma strengthens the gradient of hard samples and weakens that of easy ones; this picks, by the
    true class's probability, one that does not over-weaken. Its cuts are fixed for all networks and all
    of training: if no gamma fits, let AdaFocal find them.

    .. math:: -(1 - p_y)^{\gamma(p_y)} \log p_y

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        gammas: Gamma for probabilities below the first cut, between the cuts, and from the second cut on.
            FLSD-53 is ``(5, 3, 3)``, FLSD-52 ``(5, 3, 2)``.
        cuts: The two cuts; a probability equal to a cut belongs above it.
        detach_weight: Hold the weight constant in the backward pass.

    Returns:
        One value per sample. Gamma is a constant in the backward pass.

    Example:
        >>> sample_dependent_focal_loss(torch.tensor([[0.0, 4.0]]), torch.tensor([0]))
        tensor([3.6696])

    Reference:
        Mukhoti et al. (2020), Calibrating deep neural networks using focal loss, section 5.

    Differs from the authors' code:
        They loop over samples and sum over the batch; the values are the same with ``reduction="sum"``.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    probs = torch.exp(-cross_entropy.detach())
    low, middle, high = gammas
    above = torch.full_like(probs, middle).where(probs < cuts[1], high)
    gamma = above.where(probs >= cuts[0], low)
    return focal_of(cross_entropy, gamma=gamma, detach_weight=detach_weight)


@final
class SampleDependentFocalLoss(Loss):
    """FLSD with the signature of ``nn.CrossEntropyLoss``; formula in :func:`sample_dependent_focal_loss`.

    Args:
        gammas: Gamma below the first cut, between the cuts, and from the second cut on.
        cuts: Probabilities of the true class at which gamma changes.
        detach_weight: Hold the weight constant in the backward pass.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> SampleDependentFocalLoss()(torch.tensor([[0.0, 4.0]]), torch.tensor([0]))
        tensor(3.6696)
    """

    def __init__(
        self,
        *,
        gammas: tuple[float, float, float] = (5.0, 3.0, 3.0),
        cuts: tuple[float, float] = (0.2, 0.5),
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        for gamma in gammas:
            check_gamma(gamma, where="SampleDependentFocalLoss")
        if not 0 <= cuts[0] <= cuts[1] <= 1:
            raise ValueError(
                f"SampleDependentFocalLoss: `cuts` must rise within [0, 1], got {cuts}. "
                "The paper's are (0.2, 0.5)."
            )
        self.gammas = gammas
        self.cuts = cuts
        self.detach_weight = detach_weight

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`sample_dependent_focal_loss`."""
        return sample_dependent_focal_loss(
            logits, labels, gammas=self.gammas, cuts=self.cuts, detach_weight=self.detach_weight
        )
