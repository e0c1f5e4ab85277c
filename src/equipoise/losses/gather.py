"""One batch out of the parts that the processes of ``torch.distributed`` hold, with gradient."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["gather_rows"]


class _AllGather(torch.autograd.Function):
    """Gather equal parts from all processes; backward sums each part's gradient over the processes."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, part: Tensor) -> Tensor:
        parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, part.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        # Every process computes the same global value, and data parallelism averages parameter gradients:
        # the sum here and the average there make the gradient of one global batch.
        total = grads[0].clone()
        dist.all_reduce(total)
        return total.chunk(dist.get_world_size())[dist.get_rank()]


def gather_rows(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Concatenate the rows of each tensor over all processes; the same on every process, with gradient.

    Parts may differ in length: short ones are padded with zeros, which as a sample weight means *not there*,
    so pass the weights along. Without an initialized process group the tensors come back as they are.

    Args:
        tensors: With one row per sample each.

    Returns:
        The tensors, with the rows of all processes in order of rank.

    Example:
        >>> [rows] = gather_rows(torch.tensor([1.0, 2.0]))
        >>> rows
        tensor([1., 2.])
    """
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return tensors
    longest = torch.tensor(len(tensors[0]), device=tensors[0].device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    missing = int(longest) - len(tensors[0])
    return tuple(_gather(tensor, missing) for tensor in tensors)


def _gather(part: Tensor, missing: int) -> Tensor:
    padded = torch.cat([part, part.new_zeros(missing, *part.shape[1:])])
    gathered: Tensor = _AllGather.apply(padded)  # type: ignore[no-untyped-call]
    return gathered
