"""Averages over a sample's neighbors in the batch, by kernels in log space and bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from equipoise.core.names import check_choice

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["MOST_PAIRS", "Power", "check_kernel", "neighbor_errors"]

Power = Literal[1, 2]

#: Pairs held in memory at once; beyond, rows are taken in blocks and computed again in the backward pass.
MOST_PAIRS = 1024 * 1024

# Log kernel of a sample that is not there; finite, so that a row without neighbors has a gradient.
_NEVER = -1e30


def neighbor_errors(
    log_kernel: Callable[[slice], Float[Tensor, "b n"]],
    targets: Float[Tensor, "n d"],
    predictions: Float[Tensor, "n d"],
    share: Float[Tensor, " n"],
    *,
    power: Power = 1,
    include_self: bool = False,
    least_density: float | None = None,
) -> Float[Tensor, " n"]:
    """Compare each prediction with the kernel average of the targets around it.

    Args:
        log_kernel: Gives the log kernel of the rows in a slice against all samples.
        targets: What is averaged.
        predictions: What it is compared with.
        share: Weight of each sample as a neighbor; 0 for those that are not there.
        power: Of the absolute difference.
        include_self: Whether a sample is its own neighbor.
        least_density: Treat an (unnormalized) kernel sum below this as this, which draws averages without
            near neighbors towards 0.

    Returns:
        The differences summed over *d*; 0 for a sample without neighbors.

    Example:
        >>> points = torch.tensor([[0.0], [1.0]])
        >>> neighbor_errors(lambda rows: -(points[rows] - points.T) ** 2, points, points, torch.ones(2))
        tensor([1., 1.])
    """
    n_samples, present = len(share), share > 0
    hidden = torch.where(present, 0.0, _NEVER).to(share)
    log_share = share.where(present, 1.0).log()
    others = present.sum() - (0 if include_self else present.long())
    alone = (others == 0).expand(n_samples)[:, None]

    def block(rows: slice) -> Tensor:
        kernel = log_kernel(rows) + hidden
        if not include_self:
            kernel = kernel.diagonal_scatter(share.new_full((len(kernel),), _NEVER), offset=rows.start)
        average = (kernel + log_share).softmax(-1) @ targets
        if least_density is not None:
            density = kernel.logsumexp(-1, keepdim=True)
            average = average * (density - log(least_density)).clamp(max=0).exp()
        difference = (average - predictions[rows]).abs()
        return (difference if power == 1 else difference.square()).where(~alone[rows], 0.0).sum(-1)

    size = max(1, MOST_PAIRS // max(n_samples, 1))
    if n_samples <= size:
        return block(slice(0, n_samples))
    starts = range(0, n_samples, size)
    return torch.cat([checkpoint(block, slice(start, start + size), use_reentrant=False) for start in starts])


def check_kernel(bandwidth: float, power: int, *, where: str) -> None:
    """Raise unless a kernel has a width and differences are taken to the power 1 or 2.

    Example:
        >>> check_kernel(0.01, 1, where="SmoothECE")
    """
    if not bandwidth > 0:
        raise ValueError(
            f"{where}: `bandwidth` must be above 0, got {bandwidth}. Confidences lie in [0, 1]; try 0.01."
        )
    check_choice(str(power), ("1", "2"), where=where, name="power")
