"""AdaFocal: focal and inverse focal loss whose gammas follow the calibration on held-out data."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from equipoise.core.bins import bin_of
from equipoise.losses.base import Loss, Reduction
from equipoise.losses.buffers import FullPrecisionBuffers
from equipoise.losses.focal import power
from equipoise.losses.sum import Adaptive, shown_parameters

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = [
    "AdaFocalLoss",
    "GammaBins",
    "adafocal_loss",
    "gamma_at",
    "interpolated_edges",
    "next_gammas",
    "signed_focal_weight",
]


def adafocal_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    edges: Float[Tensor, " edges"],
    gammas: Float[Tensor, " bins"],
    detach_weight: bool = False,
) -> Float[Tensor, " n"]:
    r"""Focal loss where the network is overconfident, inverse focal loss where it is underconfident.

    Gamma is looked up by the true class's probability and may be negative. It needs held-out predictions each
    epoch (:class:`AdaFocalLoss` keeps them); without, it is focal loss with gamma 1.

    .. math::
        -(1 - p_y)^{\gamma} \log p_y \text{ if } \gamma \ge 0, \qquad
        -(1 + p_y)^{|\gamma|} \log p_y \text{ if } \gamma < 0, \qquad \gamma = \gamma_{b(p_y)}

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        edges: Rising edges of the bins; a bin holds its lower edge, the outer bins all that lies beyond.
        gammas: One signed gamma per bin.
        detach_weight: Hold the weight constant in the backward pass.

    Returns:
        One value per sample. Gamma is a constant in the backward pass.

    Example:
        >>> edges, gammas = torch.tensor([0.0, 0.5, 1.0]), torch.tensor([1.0, -1.0])
        >>> adafocal_loss(torch.zeros(1, 2), torch.tensor([0]), edges=edges, gammas=gammas)
        tensor([1.0397])

    Reference:
        Ghosh et al. (2022), AdaFocal: calibration-aware adaptive focal loss, eqs. (6) and (7).

    Differs from the authors' code:
        They sum over the batch; use ``reduction="sum"``. Their gap statistics lose every held-out sample of
        minimal confidence (a strict lower edge); ours count it, and ``drop_minimum=True`` is as theirs. Their
        update in mid-epoch leaves the network in evaluation mode; here the caller owns the network.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    gamma = gamma_at(torch.exp(-cross_entropy.detach()), edges, gammas)
    weight = signed_focal_weight(-cross_entropy, gamma=gamma)
    return (weight.detach() if detach_weight else weight) * cross_entropy


def signed_focal_weight(
    log_true: Float[Tensor, " n"], *, gamma: Float[Tensor, " n"], rival: Float[Tensor, " n"] | float = 0.0
) -> Float[Tensor, " n"]:
    r"""Return :math:`(1 - d)^\gamma` for positive gamma and :math:`(1 + d)^{|\gamma|}` for negative.

    Args:
        log_true: Log-probability of the true class.
        gamma: One signed gamma per sample.
        rival: Probability subtracted: :math:`d = p_y - q`.

    Returns:
        One weight per sample.

    Example:
        >>> signed_focal_weight(torch.tensor([0.5, 0.5]).log(), gamma=torch.tensor([2.0, -2.0]))
        tensor([0.2500, 2.2500])
    """
    base = torch.where(gamma > 0, rival - torch.expm1(log_true), 1 + torch.exp(log_true) - rival)
    return power(base, gamma.abs())


def next_gammas(
    gammas: Float[Tensor, " bins"],
    gaps: Float[Tensor, " bins"],
    *,
    rate: float = 1.0,
    switch: float = 0.2,
    bounds: tuple[float, float] = (-2.0, 20.0),
) -> Float[Tensor, " bins"]:
    r"""Move each gamma by the gap between confidence and accuracy in its bin.

    A gamma that has shrunk below ``switch`` changes side, between focal and inverse focal loss.

    .. math:: \gamma \leftarrow \gamma \exp(\operatorname{sign}(\gamma)\, \lambda (\text{conf} - \text{acc}))

    Args:
        gammas: Signed gammas, one per bin.
        gaps: Mean confidence minus accuracy on held-out data, one per bin.
        rate: How strongly they react (*λ*).
        switch: Smallest size of a gamma (*S*).
        bounds: Smallest and largest gamma.

    Returns:
        The gammas of the next epoch.

    Example:
        >>> next_gammas(torch.tensor([3.0, 0.21]), torch.tensor([0.1, -0.1]))
        tensor([ 3.3155, -0.2000])
    """
    side = torch.where(gammas > 0, 1.0, -1.0).to(gammas)
    moved = gammas * torch.exp(side * rate * gaps)
    return moved.where(moved.abs() >= switch, -side * switch).clamp(*bounds)


def gamma_at(
    probs: Float[Tensor, " n"], edges: Float[Tensor, " edges"], gammas: Float[Tensor, " bins"]
) -> Float[Tensor, " n"]:
    """Return the gamma of the bin that each probability lies in; bins hold their lower edge.

    Example:
        >>> gamma_at(torch.tensor([0.5]), torch.tensor([0.0, 0.5, 1.0]), torch.tensor([1.0, 2.0]))
        tensor([2.])
    """
    inner = edges[1:-1].to(probs)
    return gammas.to(probs)[bin_of(probs, inner, closed="left")]


@final
class GammaBins(FullPrecisionBuffers):
    """The memory of AdaFocal: bins of confidence, and a signed gamma in each.

    Args:
        n_bins: How many.
        rate: How strongly gammas react to a gap between confidence and accuracy.
        switch: Size of gamma below which it changes side.
        bounds: Smallest and largest gamma.
        drop_minimum: Leave held-out samples of minimal confidence out of the gaps, as the authors' code does.

    Example:
        >>> GammaBins(n_bins=2).gammas
        tensor([1., 1.])
    """

    edges: Tensor
    gammas: Tensor

    def __init__(
        self,
        *,
        n_bins: int = 15,
        rate: float = 1.0,
        switch: float = 0.2,
        bounds: tuple[float, float] = (-2.0, 20.0),
        drop_minimum: bool = False,
    ) -> None:
        super().__init__()
        if n_bins < 1:
            raise ValueError(f"AdaFocal: `n_bins` must be at least 1, got {n_bins}. The paper uses 15.")
        self.rate = rate
        self.switch = switch
        self.bounds = bounds
        self.drop_minimum = drop_minimum
        self.register_buffer("edges", torch.arange(n_bins + 1, dtype=torch.float32) / n_bins)
        self.register_buffer("gammas", torch.ones(n_bins, dtype=torch.float32))

    @property
    def n_bins(self) -> int:
        """How many bins."""
        return len(self.gammas)

    def extra_repr(self) -> str:
        """Show the parameters when printed."""
        return shown_parameters(self)

    @torch.no_grad()
    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Take new bins and move the gammas, from flat held-out logits and labels."""
        confidence, predicted = logits.softmax(-1).max(-1)
        edges = interpolated_edges(confidence, n_bins=self.n_bins)
        gaps = _gaps(confidence, predicted == labels, edges, drop_minimum=self.drop_minimum)
        gammas = next_gammas(
            self.gammas.to(gaps), gaps, rate=self.rate, switch=self.switch, bounds=self.bounds
        )
        self.gammas.copy_(gammas)
        self.edges.copy_(edges)


def interpolated_edges(confidence: Float[Tensor, " n"], *, n_bins: int) -> Float[Tensor, " edges"]:
    """Return bin edges that cut sorted confidences into parts of equal size, interpolated between samples.

    Example:
        >>> interpolated_edges(torch.tensor([0.5, 0.9, 0.7, 0.6]), n_bins=2)
        tensor([0.5000, 0.7000, 0.9000])
    """
    ordered = confidence.sort().values
    last = len(ordered) - 1
    places = torch.linspace(0, len(ordered), n_bins + 1, dtype=ordered.dtype, device=ordered.device)
    places = places.clamp(max=last)
    left = places.long()
    right = (left + 1).clamp(max=last)
    return ordered[left].lerp(ordered[right], places - left)


def _gaps(
    confidence: Float[Tensor, " n"],
    correct: Bool[Tensor, " n"],
    edges: Float[Tensor, " edges"],
    *,
    drop_minimum: bool,
) -> Float[Tensor, " bins"]:
    """Return mean confidence minus accuracy in each bin, closed on the right; 0 for an empty bin."""
    excess = confidence - correct.to(confidence)
    present = torch.ones_like(confidence)
    if drop_minimum:
        present = (confidence > edges[0]).to(confidence)
    bins = bin_of(confidence, edges[1:-1])
    totals = excess.new_zeros(2, len(edges) - 1).index_add(1, bins, torch.stack([excess * present, present]))
    return totals[0] / totals[1].clamp(min=1)


@final
class AdaFocalLoss(Loss, Adaptive):
    """AdaFocal with the signature of ``nn.CrossEntropyLoss``; formula in :func:`adafocal_loss`.

    Call ``loss.update(logits, labels)`` once per epoch with all held-out predictions.

    Args:
        n_bins: Number of confidence bins.
        rate: How strongly gammas react to a gap between confidence and accuracy (*λ*).
        switch: Size of gamma below which it changes between focal and inverse focal (*S*).
        bounds: Smallest and largest gamma.
        drop_minimum: Leave held-out samples of minimal confidence out of the gaps, as the authors' code does.
        detach_weight: Hold the weight constant in the backward pass.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> loss = AdaFocalLoss(n_bins=1)
        >>> loss.update(torch.tensor([[9.0, 0.0]]), torch.tensor([1]))
        >>> loss.bins.gammas
        tensor([2.7179])
    """

    def __init__(
        self,
        *,
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
        self.detach_weight = detach_weight
        self.bins = GammaBins(
            n_bins=n_bins, rate=rate, switch=switch, bounds=bounds, drop_minimum=drop_minimum
        )

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`adafocal_loss` with the current bins."""
        bins = self.bins
        return adafocal_loss(
            logits, labels, edges=bins.edges, gammas=bins.gammas, detach_weight=self.detach_weight
        )

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Move the gammas by the calibration of held-out predictions, and take their bins."""
        self.bins.update(*self.held_out(logits, labels))
