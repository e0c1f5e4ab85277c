"""Average calibration error of images as a term of the loss (L1-ACE)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.gather import gather_rows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["L1AverageCalibrationError", "l1_ace_penalty"]


def l1_ace_penalty(
    logits: Float[Tensor, "n m k"],
    labels: Int[Tensor, "n m"],
    *,
    weights: Float[Tensor, "n m"] | None = None,
    n_bins: int = 20,
) -> Float[Tensor, ""]:
    r"""Mean over images, classes and non-empty bins of the gap between mean probability and frequency.

    Every bin counts the same, however few pixels it holds, so that the rare uncertain pixels at borders are seen.

    .. math::
        \frac{1}{n k} \sum_{ij} \frac{1}{|B_{ij}|} \sum_{b \in B_{ij}} |\bar p_{ijb} - \mathrm{freq}_{ijb}|

    Args:
        logits: Unnormalized scores of the pixels of each image; never probabilities.
        labels: Class numbers in ``[0, k)``.
        weights: Weight of each pixel; 1 by default. Pixels of weight 0 do not exist.
        n_bins: Number of bins of equal width between 0 and 1.

    Returns:
        One value for the batch. Gradients flow through the mean probability of each bin; bins themselves are constant.

    Example:
        >>> l1_ace_penalty(torch.zeros(1, 4, 2), torch.tensor([[0, 0, 0, 1]]))
        tensor(0.2500)

    Reference:
        Barfoot et al. (2024), Average calibration error: a differentiable loss for improved reliability in image
        segmentation.

    Differs from the authors' code:
        Not compared with it. Bins hold their upper edge, as everywhere here. Images without a counted pixel count 0.
    """
    n_images, _, n_classes = logits.shape
    probs = logits.softmax(-1)
    weight = probs.new_ones(labels.shape) if weights is None else weights
    # The bin of each probability, numbered over images, classes and bins.
    bins = (probs.detach() * n_bins).ceil().long().clamp(1, n_bins) - 1
    image = torch.arange(n_images, device=logits.device)[:, None, None]
    cells = (image * n_classes + torch.arange(n_classes, device=logits.device)) * n_bins + bins
    hits = (labels[..., None] == torch.arange(n_classes, device=labels.device)).to(probs)
    size = n_images * n_classes * n_bins
    each = weight[..., None].expand_as(probs)

    def total(values: Tensor) -> Tensor:
        return values.new_zeros(size).index_add(0, cells.flatten(), values.flatten())

    mass, gaps = total(each), total(each * (probs - hits))
    filled = mass > 0
    errors = (gaps / mass.where(filled, 1.0)).abs().where(filled, 0.0)
    rows = errors.reshape(-1, n_bins).sum(-1)
    return (rows / filled.reshape(-1, n_bins).sum(-1).clamp(min=1)).mean()


@final
class L1AverageCalibrationError(Penalty):
    """L1-ACE of a batch of images; formula in :func:`l1_ace_penalty`.

    It is meant for images, ``(n, k, d1, ...)`` with labels ``(n, d1, ...)``. Samples ``(n, k)`` are one image.

    Args:
        n_bins: Number of bins.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> L1AverageCalibrationError()(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
        tensor(0.2500)
    """

    def __init__(
        self,
        *,
        n_bins: int = 20,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        if n_bins < 1:
            raise ValueError(f"L1AverageCalibrationError: `n_bins` must be at least 1, got {n_bins}.")
        self.n_bins = n_bins

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`l1_ace_penalty` of samples that are one image."""
        return l1_ace_penalty(logits[None], labels[None], weights=weights[None], n_bins=self.n_bins)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the term of a batch."""
        if logits.ndim < 3:
            return super().forward(logits, labels)
        flat = self.flatten(logits, labels)
        rows = flat.logits, flat.labels, flat.weights
        pixels, scores = flat.shape[1:].numel(), gather_rows(*rows) if self.gather else rows
        all_logits, all_labels, all_weights = scores
        value = l1_ace_penalty(
            all_logits.reshape(-1, pixels, all_logits.shape[-1]),
            all_labels.reshape(-1, pixels),
            weights=all_weights.reshape(-1, pixels),
            n_bins=self.n_bins,
        )
        return value * flat.weights.sum() if self.reduction == "sum" else value
