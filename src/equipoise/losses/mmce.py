"""Maximum mean calibration error, by a sort instead of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.statistics import safe_root, shares, top_label

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["MMCE", "check_width", "laplace_form", "mmce_penalty"]


def laplace_form(
    points: Float[Tensor, " n"], values: Float[Tensor, " n"], *, width: float
) -> Float[Tensor, ""]:
    r"""Sum values over all pairs, weighed by how near their points in [0, 1] are, in time n log n.

    .. math:: \sum_{ij} v_i v_j e^{-|x_i - x_j| / w}

    Once the points are sorted the kernel factorises, so that running sums replace the pairs. Pairs of equal
    points are summed apart: there the kernel has a kink, and its subgradient must be 0 for both.

    Example:
        >>> laplace_form(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0]), width=1.0)
        tensor(2.7358)
    """
    x, order = points.sort()
    v = values.gather(0, order)
    # Centered exponents: their range is halved, which keeps narrow kernels inside float32.
    grow = ((x - 0.5) / width).exp()
    first = torch.searchsorted(x.detach(), x.detach())  # where the points equal to this one begin
    rising = v * grow
    below = (rising.cumsum(0) - rising).gather(0, first)
    running = v.cumsum(0) - v
    return (v * (v + 2 * (running - running.gather(0, first) + below / grow))).sum()


def mmce_penalty(
    logits: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    *,
    width: float = 0.4,
    squared: bool = False,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Distance between confidence and correctness, smoothed over samples of similar confidence.

    Zero exactly if confidence is calibrated, without bins. It needs batches with some wrong
    predictions; on a training set fitted perfectly it only asks for more confidence.

    .. math:: \Bigl( \sum_{ij} \omega_i \omega_j (a_i - c_i)(a_j - c_j) e^{-|c_i - c_j| / w} \Bigr)^{1/2}

    Args:
        logits: Unnormalized scores; never probabilities.
        labels: Class numbers in ``[0, k)``.
        width: Width of the Laplace kernel.
        squared: Leave out the root.
        weights: Weight of each sample; shares :math:`\omega` are 1/n by default.

    Returns:
        One value for the batch.

    Example:
        >>> mmce_penalty(torch.zeros(2, 2), torch.tensor([0, 0]), squared=True)
        tensor(0.2500)

    Reference:
        Kumar, Sarawagi and Jain (2018), Trainable calibration measures for neural networks from kernel
        mean embeddings.

    Differs from the authors' code:
        They return the square (``squared=True``), and form all pairs where we sort; the value is the same.
    """
    confidence, correct = top_label(logits, labels)
    value = laplace_form(confidence, shares(weights, logits) * (correct - confidence), width=width)
    return value if squared else safe_root(value)


@final
class MMCE(Penalty):
    """Maximum mean calibration error of a batch; formula in :func:`mmce_penalty`.

    Args:
        width: Width of the Laplace kernel, at least 0.01.
        squared: Leave out the root, as the authors' code does.
        weight, ignore_index, reduction, gather: As in :class:`~equipoise.losses.Penalty`.

    Example:
        >>> MMCE(squared=True)(torch.zeros(2, 2), torch.tensor([0, 0]))
        tensor(0.2500)
    """

    def __init__(
        self,
        *,
        width: float = 0.4,
        squared: bool = False,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        gather: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, gather=gather)
        check_width(width, where="MMCE")
        self.width = width
        self.squared = squared

    def term(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return :func:`mmce_penalty`."""
        return mmce_penalty(logits, labels, width=self.width, squared=self.squared, weights=weights)


def check_width(width: float, *, where: str) -> None:
    """Raise unless a kernel is wide enough for single precision.

    Example:
        >>> check_width(0.4, where="MMCE")
    """
    if not width >= 0.01:
        raise ValueError(
            f"{where}: `width` must be at least 0.01, got {width}. A narrower kernel sees no neighbors."
        )
