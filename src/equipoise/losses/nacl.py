"""Neighbor-aware calibration for dense prediction: logits near the share of each class around a pixel (NACL)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor, nn

from equipoise.core.names import check_choice
from equipoise.losses.base import Loss, Reduction, weighted_mean
from equipoise.losses.options import check_strength

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["NeighborAwareLoss", "neighbor_aware_loss", "neighbor_shares"]


def neighbor_shares(
    labels: Int[Tensor, "n ..."],
    n_classes: int,
    *,
    kernel: Literal["mean", "gaussian"] = "mean",
    size: int = 3,
) -> Float[Tensor, "n k ..."]:
    """Return the share of each class among the pixels around each pixel; what lies outside counts as no class.

    Args:
        labels: Class numbers of images ``(n, d1, ...)``; those outside ``[0, k)`` are no class.
        n_classes: Number of classes.
        kernel: ``"mean"`` weighs all neighbors equally, ``"gaussian"`` by a normal density of width 1.
        size: Side of the neighborhood in pixels, odd.

    Example:
        >>> neighbor_shares(torch.tensor([[0, 0, 1]]), 2, size=3)[0, 0]
        tensor([0.6667, 0.6667, 0.3333])
    """
    # Not one_hot, which reads the labels and so waits for the device.
    shares = (labels[..., None] == torch.arange(n_classes, device=labels.device)).float().movedim(-1, 1)
    reach = size // 2
    offsets = range(-reach, reach + 1)
    weights = [1.0 if kernel == "mean" else math.exp(-0.5 * offset**2) for offset in offsets]
    for axis in range(2, shares.ndim):  # both kernels are products over axes
        widths = [0, 0] * (shares.ndim - 1 - axis) + [reach, reach]
        padded = nn.functional.pad(shares, widths)
        parts = [
            weight / sum(weights) * padded.narrow(axis, start, shares.shape[axis])
            for start, weight in enumerate(weights)
        ]
        shares = torch.stack(parts).sum(0)
    return shares


def neighbor_aware_loss(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    shares: Float[Tensor, "n k"],
    strength: float = 0.1,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy plus the distance of the logits from the share of each class around a pixel.

    It keeps logits small, and smaller where classes meet, where labels are least certain. Logits are compared with
    shares, as published, not probabilities.

    .. math:: -\log p_y + \frac{\alpha}{k} \sum_j |u_j - z_j|

    Args:
        logits: Unnormalized scores of pixels; never probabilities.
        labels: Class numbers in ``[0, k)``.
        shares: Share *u* of each class around each pixel, from :func:`neighbor_shares`.
        strength: Weight of the distance (*α*); 0 is cross-entropy.

    Returns:
        One value per pixel.

    Example:
        >>> shares = torch.tensor([[1.0, 0.0]])
        >>> neighbor_aware_loss(torch.zeros(1, 2), torch.tensor([0]), shares=shares, strength=1.0)
        tensor([1.1931])

    Reference:
        Murugesan et al. (2024), Neighbor-aware calibration of segmentation networks with penalty-based constraints.

    Differs from the authors' code:
        Nothing known for the linear penalty with a mean or Gaussian kernel; their other penalties are not here. Void
        pixels are no neighbors.
    """
    cross_entropy = nn.functional.cross_entropy(logits, labels, reduction="none")
    return cross_entropy + strength * (shares - logits).abs().mean(-1)


@final
class NeighborAwareLoss(Loss):
    """NACL with the signature of ``nn.CrossEntropyLoss``; formula in :func:`neighbor_aware_loss`.

    It is meant for images, ``(n, k, d1, ...)`` with labels ``(n, d1, ...)``. For samples without neighbors, ``(n, k)``,
    the share of their own class is 1.

    Args:
        strength: Weight of the distance (*α*).
        kernel: ``"mean"`` or ``"gaussian"``.
        size: Side of the neighborhood in pixels, odd.
        weight, ignore_index, reduction: As in :class:`~equipoise.losses.Loss`.

    Example:
        >>> NeighborAwareLoss(strength=1.0)(torch.zeros(1, 2, 1, 1), torch.zeros(1, 1, 1, dtype=torch.long))
        tensor(0.7487)
    """

    def __init__(
        self,
        *,
        strength: float = 0.1,
        kernel: Literal["mean", "gaussian"] = "mean",
        size: int = 3,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_strength(strength, where="NeighborAwareLoss")
        check_choice(kernel, ("mean", "gaussian"), where="NeighborAwareLoss", name="kernel")
        if size < 1 or size % 2 == 0:
            raise ValueError(
                f"NeighborAwareLoss: `size` must be odd and at least 1, got {size}. The paper uses 3."
            )
        self.strength = strength
        self.kernel: Literal["mean", "gaussian"] = kernel
        self.size = size

    def per_sample(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`neighbor_aware_loss` of samples without neighbors."""
        shares = neighbor_shares(labels, logits.shape[-1], size=1).to(logits)
        return neighbor_aware_loss(logits, labels, shares=shares, strength=self.strength)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch of images, reduced as asked."""
        if logits.ndim < 3:
            return super().forward(logits, labels)
        flat = self.flatten(logits, labels)
        known = labels.where(labels != self.ignore_index, -1)
        n_classes = flat.logits.shape[-1]
        around = neighbor_shares(known.long(), n_classes, kernel=self.kernel, size=self.size)
        shares = around.movedim(1, -1).reshape(-1, n_classes).to(flat.logits)
        values = neighbor_aware_loss(flat.logits, flat.labels, shares=shares, strength=self.strength)
        values = values.where(flat.counted, 0.0)
        if self.reduction == "mean":
            return weighted_mean(values, flat.weights)
        values = values * flat.weights
        return values.sum() if self.reduction == "sum" else values.reshape(flat.shape)
