"""The papers' pairs of a loss and a batch-level term, with the papers' weights between them.

Any other pair is one line: ``DualFocalLoss() + 0.5 * SmoothECE(bandwidth=0.05)``. In all pairs ``strength``
is the weight of the term (λ), both terms receive ``weight``, ``ignore_index`` and ``reduction`` (``"mean"``
or ``"sum"``), and ``gather`` computes the term over the batch of all processes; the other parameters are
described at the loss or the term they belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from equipoise.losses.avuc import AvUC
from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.dca import DCA
from equipoise.losses.dece import DifferentiableECE
from equipoise.losses.focal import FocalLoss
from equipoise.losses.huber_ca import HuberConfidenceAccuracy
from equipoise.losses.kde import KernelECE, Kind
from equipoise.losses.mdca import MDCA
from equipoise.losses.mmce import MMCE
from equipoise.losses.mmce_weighted import MMCEWeighted, Normalisation
from equipoise.losses.sece import SmoothECE
from equipoise.losses.soft_avuc import SoftAvUC
from equipoise.losses.soft_ece import Binning, SoftBinnedECE
from equipoise.losses.sum import Sum

__all__ = [
    "ce_avuc",
    "ce_dca",
    "ce_dece",
    "ce_kde",
    "ce_mmce",
    "ce_mmce_weighted",
    "ce_sece",
    "ce_soft_avuc",
    "ce_soft_ece",
    "focal_huber_ca",
    "focal_mdca",
]


def _pair(
    loss: Callable[..., nn.Module],
    term: Callable[..., Penalty],
    strength: float,
    weight: Tensor | None,
    ignore_index: int,
    reduction: Reduction,
    gather: bool,
) -> Sum:
    shared = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
    return Sum(loss(**shared), strength * term(**shared, gather=gather))


def ce_mmce(
    *,
    strength: float = 0.1,
    squared: bool = True,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and the squared maximum mean calibration error; the weight is that of Liu et al. (2023).

    Example:
        >>> ce_mmce().terms[1].factor
        0.1
    """
    term = partial(MMCE, squared=squared)
    return _pair(nn.CrossEntropyLoss, term, strength, weight, ignore_index, reduction, gather)


def ce_mmce_weighted(
    *,
    strength: float = 2.0,
    normalisation: Normalisation = "paper",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and balanced MMCE; its weight is that of Mukhoti et al. (2020), Kumar et al. use 4 to 10.

    Example:
        >>> ce_mmce_weighted().terms[1].factor
        2.0
    """
    term = partial(MMCEWeighted, normalisation=normalisation)
    return _pair(nn.CrossEntropyLoss, term, strength, weight, ignore_index, reduction, gather)


def ce_dca(
    *,
    strength: float = 1.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and DCA, with the weight of later comparisons; Liang et al. (2020) use 10.

    Example:
        >>> ce_dca().terms[1].factor
        1.0
    """
    return _pair(nn.CrossEntropyLoss, DCA, strength, weight, ignore_index, reduction, gather)


def ce_soft_ece(
    *,
    strength: float = 1.0,
    n_bins: int = 15,
    temperature: float = 0.01,
    binning: Binning = "confidence",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and soft-binned ECE, whose weight Karandikar et al. (2021) tune for each task.

    Example:
        >>> ce_soft_ece().terms[1].factor
        1.0
    """
    term = partial(SoftBinnedECE, n_bins=n_bins, temperature=temperature, binning=binning)
    return _pair(nn.CrossEntropyLoss, term, strength, weight, ignore_index, reduction, gather)


def ce_avuc(
    *,
    strength: float = 3.0,
    n_updates: int = 5,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and AvUC, with the weight of Krishnan and Tickoo (2020).

    Example:
        >>> ce_avuc().terms[1].factor
        3.0
    """
    term = partial(AvUC, n_updates=n_updates)
    return _pair(nn.CrossEntropyLoss, term, strength, weight, ignore_index, reduction, gather)


def ce_soft_avuc(
    *,
    strength: float = 1.0,
    threshold: float = 0.5,
    temperature: float = 1.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and soft AvUC, whose weight Karandikar et al. (2021) tune for each task.

    Example:
        >>> ce_soft_avuc().terms[1].factor
        1.0
    """
    term = partial(SoftAvUC, threshold=threshold, temperature=temperature)
    return _pair(nn.CrossEntropyLoss, term, strength, weight, ignore_index, reduction, gather)


def ce_dece(
    *,
    strength: float = 0.5,
    n_bins: int = 15,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and DECE: the outer loss of meta-calibration, with the weight of Bohdal et al. (2021).

    Example:
        >>> ce_dece().terms[1].factor
        0.5
    """
    term = partial(DifferentiableECE, n_bins=n_bins)
    return _pair(nn.CrossEntropyLoss, term, strength, weight, ignore_index, reduction, gather)


def ce_kde(
    *,
    strength: float = 1.0,
    bandwidth: float = 0.001,
    kind: Kind = "canonical",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and kernel ECE (KDE-XE), whose weight Popordanoska et al. (2022) cross-validate.

    Example:
        >>> ce_kde().terms[1].factor
        1.0
    """
    term = partial(KernelECE, bandwidth=bandwidth, kind=kind)
    return _pair(nn.CrossEntropyLoss, term, strength, weight, ignore_index, reduction, gather)


def ce_sece(
    *,
    strength: float = 0.5,
    bandwidth: float = 0.01,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Cross-entropy and smooth ECE: an outer loss for a gamma network, with the weight of its DECE twin.

    Example:
        >>> ce_sece().terms[1].factor
        0.5
    """
    term = partial(SmoothECE, bandwidth=bandwidth)
    return _pair(nn.CrossEntropyLoss, term, strength, weight, ignore_index, reduction, gather)


def focal_mdca(
    *,
    gamma: float = 1.0,
    strength: float = 1.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Focal loss and MDCA, with the setting of Hebbalaguppe et al. (2022) for CIFAR-10.

    Example:
        >>> focal_mdca().terms[1].factor
        1.0
    """
    loss = partial(FocalLoss, gamma=gamma)
    return _pair(loss, MDCA, strength, weight, ignore_index, reduction, gather)


def focal_huber_ca(
    *,
    gamma: float = 1.0,
    strength: float = 10.0,
    alpha: float = 0.005,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
) -> Sum:
    """Focal loss and the Huber norm of confidence minus accuracy: the loss of DTDP, with provisional weights.

    Example:
        >>> focal_huber_ca().terms[1].factor
        10.0
    """
    loss = partial(FocalLoss, gamma=gamma)
    term = partial(HuberConfidenceAccuracy, alpha=alpha)
    return _pair(loss, term, strength, weight, ignore_index, reduction, gather)
