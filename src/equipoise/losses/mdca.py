"""Difference between predicted and true class frequencies in a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor

from equipoise.losses.base import Penalty
from equipoise.losses.statistics import column_sums, shares

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["MDCA", "mdca_penalty"]


def mdca_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"] | Float[Tensor, "n k"],
    *,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Mean over classes of the difference between mean probability and frequency.

    Calibrates every class and not only the predicted one, at the price of one product. In batches with fewer
    samples than classes the frequencies are noise.

    .. math:: \frac1k \sum_j \Bigl| \sum_i \omega_i (p_{ij} - \mathbb{1}[y_i = j]) \Bigr|

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``, or soft targets.
        weights: Weight of each sample; shares :math:`\omega` are 1/n by default.

    Returns:
        One value for the batch. Classes absent from it count, with frequency 0.

    Example:
        >>> import torch
        >>> mdca_penalty(torch.zeros(2, 2), torch.tensor([0, 0]))
        tensor(0.5000)

    Reference:
        Hebbalaguppe et al. (2022), A stitch in time saves nine: a train-time regularizing loss for improved
        neural network calibration, eq. (3).

    Differs from the authors' code:
        They loop over classes; the value is the same.
    """
    share = shares(weights, logits)
    predicted = column_sums(share, logits.softmax(-1))
    if labels.is_floating_point():
        return (predicted - column_sums(share, labels)).abs().mean()
    return predicted.index_add(0, labels, -share).abs().mean()


@final
class MDCA(Penalty):
    """Difference between predicted and true class frequencies of a batch; formula in :func:`mdca_penalty`.

    Args:
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> import torch
        >>> MDCA()(torch.zeros(2, 2), torch.tensor([0, 0]))
        tensor(0.5000)
    """

    soft_targets: ClassVar[bool] = True

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`mdca_penalty`."""
        return mdca_penalty(logits, labels, weights=weights)
