"""Smooth expected calibration error: accuracy by a Gaussian kernel over confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from torch import Tensor

from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.neighbors import Power, check_kernel, neighbor_errors
from equipoise.losses.statistics import shares, top_label

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["SmoothECE", "sece_penalty"]


def sece_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    bandwidth: float = 0.01,
    include_self: bool = True,
    power: Power = 1,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Difference between each confidence and the accuracy of samples with a similar confidence.

    No bins, so it is smooth in the confidences: what a gamma-network is trained on. With a narrow kernel in a
    small batch most samples are their own only neighbors; widen the kernel or leave the sample itself out.

    .. math::
        \sum_i \omega_i \Bigl| \frac{\sum_j \omega_j K_{ij} a_j}{\sum_j \omega_j K_{ij}} - c_i \Bigr|^p,
        \qquad K_{ij} = e^{-(c_i - c_j)^2 / 2h^2}

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        bandwidth: Width of the kernel (*h*).
        include_self: Whether a sample is its own neighbor; if not, one without others adds nothing.
        power: Of the difference (*p*), 1 or 2; no root is taken.
        weights: Weight of each sample; shares :math:`\omega` are 1/n by default.

    Returns:
        One value for the batch. Beyond 1024 samples memory stays bounded: rows come in blocks.

    Example:
        >>> import torch
        >>> sece_penalty(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
        tensor(0.2500)

    Reference:
        Wang and Golebiowski (2024), Towards unbiased calibration using meta-regularization.

    Differs from the authors' code:
        None is public; the self term and the norm are a reconstruction. Computed in log space, so that a
        sample far from all others is compared with its nearest.
    """
    confidence, correct = top_label(logits, labels)
    share, scaled = shares(weights, logits), confidence / (bandwidth * 2**0.5)

    def log_kernel(rows: slice) -> Tensor:
        return -(scaled[rows, None] - scaled).square()

    errors = neighbor_errors(
        log_kernel, correct[:, None], confidence[:, None], share, power=power, include_self=include_self
    )
    return (share * errors).sum()


@final
class SmoothECE(Penalty):
    """Smooth expected calibration error of a batch; formula in :func:`sece_penalty`.

    Args:
        bandwidth: Width of the kernel, above 0.
        include_self: Whether a sample is its own neighbor.
        power: Of the difference, 1 or 2.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> import torch
        >>> SmoothECE()(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
        tensor(0.2500)
    """

    def __init__(
        self,
        *,
        bandwidth: float = 0.01,
        include_self: bool = True,
        power: Power = 1,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        check_kernel(bandwidth, power, where="SmoothECE")
        self.bandwidth = bandwidth
        self.include_self = include_self
        self.power: Power = power

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`sece_penalty`."""
        return sece_penalty(
            logits,
            labels,
            bandwidth=self.bandwidth,
            include_self=self.include_self,
            power=self.power,
            weights=weights,
        )
