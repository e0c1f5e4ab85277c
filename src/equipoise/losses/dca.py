"""Difference between confidence and accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from torch import Tensor

from equipoise.losses.base import Penalty
from equipoise.losses.statistics import confidence_gap

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["DCA", "dca_penalty"]


def dca_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Absolute difference between the mean confidence and the accuracy of a batch.

    The calibration error with a single bin: cheap, and blind to over- and underconfidence that cancel.

    .. math:: \Bigl| \sum_i \omega_i (c_i - a_i) \Bigr|

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        weights: Weight of each sample; shares :math:`\omega` are 1/n by default.

    Returns:
        One value for the batch.

    Example:
        >>> import torch
        >>> dca_penalty(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
        tensor(0.2500)

    Reference:
        Liang et al. (2020), Improved trainable calibration method for neural networks on medical imaging
        classification.

    Differs from the authors' code:
        Nothing known; their weight beside cross-entropy is 10 by default, 1 in later comparisons.
    """
    return confidence_gap(logits, labels, weights).abs()


@final
class DCA(Penalty):
    """Difference between confidence and accuracy of a batch; formula in :func:`dca_penalty`.

    Args:
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> import torch
        >>> DCA()(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
        tensor(0.2500)
    """

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`dca_penalty`."""
        return dca_penalty(logits, labels, weights=weights)
