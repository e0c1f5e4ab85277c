"""Expected calibration error with soft bins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor

from equipoise.core.names import check_choice
from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.statistics import column_sums, safe_root, shares, top_label

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["SoftBinnedECE", "check_soft_bins", "soft_ece_penalty"]

Binning = Literal["confidence", "label"]

_SMOOTHING = 1e-5
_TINY = torch.finfo(torch.float32).tiny  # below it a bin holds nobody, and the sums it divides are 0


def soft_ece_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    n_bins: int = 15,
    temperature: float = 0.01,
    binning: Binning = "confidence",
    least_mass: float = 0.0,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Expected calibration error whose bins share a sample according to its distance from their centers.

    As the temperature falls the bins harden and their gradient vanishes; as it rises they all
    hold the same. Memory grows with samples times bins.

    .. math::
        u_{ij} = \mathrm{softmax}_j \bigl( -(c_i - \xi_j)^2 / T \bigr), \qquad
        \Bigl( \sum_j S_j \bigl( \bar c_j - \bar a_j \bigr)^2 \Bigr)^{1/2}

    with bin shares :math:`S_j = \sum_i \omega_i u_{ij}` and means weighed by :math:`\omega_i u_{ij}`. With
    ``binning="label"`` it is :math:`\sum_{ij} \omega_i u_{ij} (\bar a_j - c_i)^2`, without root, and the
    bins divide ``[1/k, 1]``.

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        n_bins: Number of bins (*M*).
        temperature: Softness of the bins (*T*).
        binning: ``"confidence"`` compares bin means; ``"label"`` compares every confidence with the
            accuracy of its bins.
        least_mass: Number of samples that a bin is taken to hold at least, in the means of ``"confidence"``.
            The authors' code has 1e-5, which silences bins that only far samples reach.
        weights: Weight of each sample; shares :math:`\omega` are 1/n by default.

    Returns:
        One value for the batch.

    Example:
        >>> soft_ece_penalty(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
        tensor(0.2500)

    Reference:
        Karandikar et al. (2021), Soft calibration objectives for neural networks.

    Differs from the authors' code:
        The floor under a bin's mass (an option). They give the temperature as :math:`1 / (M^2 \ln d)` for a
        decay factor *d*. Their root has an infinite gradient at 0; ours is finite.
    """
    confidence, correct = top_label(logits, labels)
    weights = torch.ones_like(confidence) if weights is None else weights
    share = shares(weights, logits)
    lowest = 0.0 if binning == "confidence" else 1 / logits.shape[-1]
    edges = torch.linspace(lowest, 1, n_bins + 1, dtype=logits.dtype, device=logits.device)
    member = (-(confidence[:, None] - (edges[1:] + edges[:-1]) / 2).square() / temperature).softmax(-1)
    if binning == "label":
        member = (1 - _SMOOTHING) * member + _SMOOTHING / n_bins
        accuracy = column_sums(share * correct, member) / column_sums(share, member).clamp(min=_TINY)
        return (share[:, None] * member * (accuracy - confidence[:, None]).square()).sum()
    mass = column_sums(weights, member)
    gap = column_sums(weights * (confidence - correct), member) / mass.clamp(min=max(least_mass, _TINY))
    return safe_root((column_sums(share, member) * gap.square()).sum())


@final
class SoftBinnedECE(Penalty):
    """Expected calibration error of a batch with soft bins; formula in :func:`soft_ece_penalty`.

    Args:
        n_bins: Number of bins.
        temperature: Softness of the bins, above 0.
        binning: ``"confidence"``, or ``"label"`` for the label-binned square.
        least_mass: Number of samples that a bin is taken to hold at least; the authors' code has 1e-5.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> SoftBinnedECE()(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
        tensor(0.2500)
    """

    def __init__(
        self,
        *,
        n_bins: int = 15,
        temperature: float = 0.01,
        binning: Binning = "confidence",
        least_mass: float = 0.0,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        check_choice(binning, ("confidence", "label"), where="SoftBinnedECE", name="binning")
        check_soft_bins(n_bins, {"temperature": temperature}, where="SoftBinnedECE")
        self.n_bins = n_bins
        self.temperature = temperature
        self.binning: Binning = binning
        self.least_mass = least_mass

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`soft_ece_penalty`."""
        return soft_ece_penalty(
            logits,
            labels,
            n_bins=self.n_bins,
            temperature=self.temperature,
            binning=self.binning,
            least_mass=self.least_mass,
            weights=weights,
        )


def check_soft_bins(n_bins: int, temperatures: Mapping[str, float], *, where: str) -> None:
    """Raise unless soft bins are at least one and their temperatures positive.

    Example:
        >>> check_soft_bins(15, {"temperature": 0.01}, where="SoftBinnedECE")
    """
    if n_bins < 1:
        raise ValueError(f"{where}: `n_bins` must be at least 1, got {n_bins}. The papers use 15.")
    for name, value in temperatures.items():
        if not value > 0:
            raise ValueError(
                f"{where}: `{name}` must be above 0, got {value}. Smaller is harder, 0 has no gradient."
            )
