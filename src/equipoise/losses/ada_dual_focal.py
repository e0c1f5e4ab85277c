"""AdaFocal's gammas in dual focal loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from equipoise.losses.adafocal import GammaBins, gamma_at, signed_focal_weight
from equipoise.losses.base import Loss, Reduction
from equipoise.losses.dual_focal import Rival, check_rival, true_and_rival
from equipoise.losses.sum import Adaptive

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["AdaDualFocalLoss", "ada_dual_focal_loss"]


def ada_dual_focal_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    edges: Float[Tensor, " edges"],
    gammas: Float[Tensor, " bins"],
    rival: Rival = "next",
    detach_weight: bool = False,
) -> Float[Tensor, " n"]:
    r"""Dual focal loss with a signed gamma that follows the calibration on held-out data.

    For when one gamma does not fit all levels of confidence and dual focal loss is wanted. It needs
    held-out predictions each epoch.

    .. math::
        -(1 - p_y + q)^{\gamma} \log p_y \text{ if } \gamma \ge 0, \qquad
        -(1 + p_y - q)^{|\gamma|} \log p_y \text{ if } \gamma < 0, \qquad \gamma = \gamma_{b(p_y)}

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        edges: Rising edges of the bins, as in :func:`~equipoise.losses.adafocal_loss`.
        gammas: One signed gamma per bin.
        rival: What *q* is, as in :func:`~equipoise.losses.dual_focal_loss`.
        detach_weight: Hold the weight constant in the backward pass.

    Returns:
        One value per sample. Gamma is a constant in the backward pass.

    Example:
        >>> edges, gammas = torch.tensor([0.0, 1.0]), torch.tensor([-1.0])
        >>> logits = torch.tensor([[0.7, 0.3]]).log()
        >>> ada_dual_focal_loss(logits, torch.tensor([0]), edges=edges, gammas=gammas)
        tensor([0.4993])

    Reference:
        Tao et al. (2023), Dual focal loss for calibration, which names the combination; Ghosh et al. (2022).

    Differs from the authors' code:
        There is none. The branch of negative gamma is our reading: the mirror image of the other.
    """
    log_true, q = true_and_rival(logits, labels, rival=rival)
    gamma = gamma_at(torch.exp(log_true.detach()), edges, gammas)
    weight = signed_focal_weight(log_true, gamma=gamma, rival=q)
    return -(weight.detach() if detach_weight else weight) * log_true


@final
class AdaDualFocalLoss(Loss, Adaptive):
    """AdaDualFocal with the signature of ``nn.CrossEntropyLoss``; formula in :func:`ada_dual_focal_loss`.

    Call ``loss.update(logits, labels)`` once per epoch with all held-out predictions.

    Args:
        rival: What the true class is measured against.
        n_bins, rate, switch, bounds, drop_minimum, detach_weight: As in :class:`~equipoise.losses.AdaFocalLoss`.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> loss = AdaDualFocalLoss(n_bins=1)
        >>> loss.update(torch.tensor([[9.0, 0.0]]), torch.tensor([1]))
        >>> loss.bins.gammas
        tensor([2.7179])
    """

    def __init__(
        self,
        *,
        rival: Rival = "next",
        n_bins: int = 15,
        rate: float = 1.0,
        switch: float = 0.2,
        bounds: tuple[float, float] = (-2.0, 20.0),
        drop_minimum: bool = False,
        detach_weight: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_rival(rival, where="AdaDualFocalLoss")
        self.rival = rival
        self.detach_weight = detach_weight
        self.bins = GammaBins(
            n_bins=n_bins, rate=rate, switch=switch, bounds=bounds, drop_minimum=drop_minimum
        )

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`ada_dual_focal_loss` with the current bins."""
        bins = self.bins
        return ada_dual_focal_loss(
            logits,
            labels,
            edges=bins.edges,
            gammas=bins.gammas,
            rival=self.rival,
            detach_weight=self.detach_weight,
        )

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Move the gammas by the calibration of held-out predictions, and take their bins."""
        self.bins.update(*self.held_out(logits, labels))
