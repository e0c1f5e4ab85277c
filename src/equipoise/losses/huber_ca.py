"""Huber norm of the difference between confidence and accuracy: the differentiable term of DTDP."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.statistics import confidence_gap

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["HuberConfidenceAccuracy", "huber_ca_penalty"]


def huber_ca_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    alpha: float = 0.005,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Difference between mean confidence and accuracy, squared near 0 and linear beyond.

    Like :func:`~equipoise.losses.dca_penalty`, but its gradient fades as the batch becomes calibrated
    instead of flipping its sign.

    .. math:: d = \sum_i \omega_i (c_i - a_i), \qquad
        \begin{cases} d^2 / 2 & |d| \le \alpha \\ \alpha (|d| - \alpha/2) & |d| > \alpha \end{cases}

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        alpha: Where the norm turns from squared to linear.
        weights: Weight of each sample; shares :math:`\omega` are 1/n by default.

    Returns:
        One value for the batch.

    Example:
        >>> huber_ca_penalty(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]), alpha=1.0)
        tensor(0.0312)

    Reference:
        Patra et al. (2023), Calibrating deep neural networks using explicit regularisation and dynamic data
        pruning.

    Differs from the authors' code:
        None is public; the formula is a reconstruction, and ``alpha`` a provisional choice.
    """
    gap = confidence_gap(logits, labels, weights)
    return torch.nn.functional.huber_loss(gap, torch.zeros_like(gap), delta=alpha)


@final
class HuberConfidenceAccuracy(Penalty):
    """Huber norm of confidence minus accuracy of a batch; formula in :func:`huber_ca_penalty`.

    Args:
        alpha: Where the norm turns from squared to linear, above 0.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> HuberConfidenceAccuracy(alpha=1.0)(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
        tensor(0.0312)
    """

    def __init__(
        self,
        *,
        alpha: float = 0.005,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        if not alpha > 0:
            raise ValueError(
                f"HuberConfidenceAccuracy: `alpha` must be above 0, got {alpha}. "
                "For the plain absolute value use DCA."
            )
        self.alpha = alpha

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`huber_ca_penalty`."""
        return huber_ca_penalty(logits, labels, alpha=self.alpha, weights=weights)
