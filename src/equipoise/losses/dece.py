"""Expected calibration error with soft bins and a soft accuracy, differentiable in everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.soft_ece import check_soft_bins
from equipoise.losses.statistics import column_sums, shares

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["DifferentiableECE", "dece_penalty"]

_SMOOTHING = 1e-6


def dece_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    n_bins: int = 15,
    rank_temperature: float = 100.0,
    bin_temperature: float = 0.01,
    authors_denominator: bool = False,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Expected calibration error in which both bins and accuracy are soft.

    Because accuracy has a gradient too, it can drive hyper-parameters through an inner training step. Near
    ties between classes that gradient is steep.

    .. math::
        r_i = 1 + \sum_{k \ne y} \sigma \bigl( t_a (p_k - p_y) \bigr), \quad
        \tilde a_i = \max(0, 2 - r_i), \quad
        q_{ij} = \mathrm{softmax}_j \Bigl( \tfrac{1}{t_b} \sum_{l \le j} (c_i - \tfrac{l-1}{M}) \Bigr), \quad
        \sum_j \Bigl| \sum_i \omega_i q_{ij} (\tilde a_i - c_i) \Bigr|

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        n_bins: Number of bins (*M*).
        rank_temperature: Hardness of the rank (:math:`t_a`); larger is harder.
        bin_temperature: Softness of the bins (:math:`t_b`); smaller is harder.
        authors_denominator: Reproduce the authors' :math:`1 + (M+1) 10^{-6}` in the smoothing of the bins,
            which leaves their total below 1.
        weights: Weight of each sample; shares :math:`\omega` are 1/n by default.

    Returns:
        One value for the batch.

    Example:
        >>> dece_penalty(torch.tensor([[0.1, 0.0]]), torch.tensor([0]), n_bins=1)
        tensor(0.4683)

    Reference:
        Bohdal, Yang and Hospedales (2021), Meta-calibration: learning of model calibration using
        differentiable expected calibration error.

    Differs from the authors' code:
        The mistake in the denominator (an option). Theirs can be differentiated once, ours as often as needed.
    """
    probs = logits.softmax(-1)
    confidence = probs.max(-1).values
    true = probs.gather(-1, labels[:, None])
    rank = 0.5 + (rank_temperature * (probs - true)).sigmoid().sum(-1)  # the true class itself adds 1/2
    accuracy = (2 - rank).relu()
    steps = torch.arange(n_bins, dtype=probs.dtype, device=probs.device)
    offsets = (steps / n_bins).cumsum(0)
    member = (((steps + 1) * confidence[:, None] - offsets) / bin_temperature).softmax(-1)
    total = 1 + (n_bins + authors_denominator) * _SMOOTHING
    member = (member + _SMOOTHING) / total
    return column_sums(shares(weights, logits) * (accuracy - confidence), member).abs().sum()


@final
class DifferentiableECE(Penalty):
    """Expected calibration error of a batch, soft in bins and accuracy; formula in :func:`dece_penalty`.

    Args:
        n_bins: Number of bins.
        rank_temperature: Hardness of the rank; larger is harder.
        bin_temperature: Softness of the bins; smaller is harder.
        authors_denominator: Reproduce a mistake in the authors' smoothing.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> DifferentiableECE(n_bins=1)(torch.tensor([[0.1, 0.0]]), torch.tensor([0]))
        tensor(0.4683)
    """

    def __init__(
        self,
        *,
        n_bins: int = 15,
        rank_temperature: float = 100.0,
        bin_temperature: float = 0.01,
        authors_denominator: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        temperatures = {"rank_temperature": rank_temperature, "bin_temperature": bin_temperature}
        check_soft_bins(n_bins, temperatures, where="DifferentiableECE")
        self.n_bins = n_bins
        self.rank_temperature = rank_temperature
        self.bin_temperature = bin_temperature
        self.authors_denominator = authors_denominator

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`dece_penalty`."""
        return dece_penalty(
            logits,
            labels,
            n_bins=self.n_bins,
            rank_temperature=self.rank_temperature,
            bin_temperature=self.bin_temperature,
            authors_denominator=self.authors_denominator,
            weights=weights,
        )
