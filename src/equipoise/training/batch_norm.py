"""Batch norm over all processes, and its statistics computed anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import final

import torch
import torch.distributed as dist
from torch import Tensor, nn

from equipoise.training.batch_source import BatchLike
from equipoise.training.evaluation import evaluating
from equipoise.training.network_call import call_network

__all__ = ["has_batch_norm", "keep_batch_norm_statistics", "refresh_batch_norm", "synchronize_batch_norm"]


def has_batch_norm(network: nn.Module) -> bool:
    """Whether a network has batch norms that keep running statistics.

    Example:
        >>> has_batch_norm(nn.Sequential(nn.BatchNorm1d(3))), has_batch_norm(nn.Linear(2, 3))
        (True, False)
    """
    return bool(_batch_norms(network))


def _batch_norms(network: nn.Module) -> list[nn.modules.batchnorm._BatchNorm]:
    kind = nn.modules.batchnorm._BatchNorm
    return [part for part in network.modules() if isinstance(part, kind) and part.track_running_stats]


@contextmanager
def keep_batch_norm_statistics(network: nn.Module) -> Iterator[None]:
    """Leave the running statistics of batch norms as they are, whatever passes through the network.

    Example:
        >>> network = nn.BatchNorm1d(1)
        >>> with keep_batch_norm_statistics(network):
        ...     _ = network(torch.tensor([[1.0], [3.0]]))
        >>> float(network.running_mean), int(network.num_batches_tracked)
        (0.0, 0)
    """
    buffers = [buffer for norm in _batch_norms(network) for buffer in norm.buffers()]
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        for buffer, old in zip(buffers, before, strict=True):
            buffer.copy_(old)


def refresh_batch_norm(network: nn.Module, batches: Iterable[BatchLike]) -> None:
    """Compute the running statistics of batch norms anew, as plain means over batches.

    Args:
        network: Its batch norms are changed in place. Everything else in it is in evaluation mode meanwhile.
        batches: Training batches.

    Raises:
        ValueError: If there is no batch.

    Example:
        >>> from equipoise.training import Loader
        >>> source = Loader([(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1]))])
        >>> network = nn.BatchNorm1d(1)
        >>> batches = source(epoch=0, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu"))
        >>> refresh_batch_norm(network, batches)
        >>> float(network.running_mean), float(network.running_var)
        (2.0, 2.0)
    """
    norms = _batch_norms(network)
    momenta = [norm.momentum for norm in norms]
    count = 0
    with evaluating(network):
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # a plain mean over all batches
            norm.train()
        for batch in batches if norms else ():
            call_network(network, batch.inputs)
            count += 1
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    if norms and not count:
        raise ValueError(
            "refresh_batch_norm: there is no batch to compute statistics from. Is `train` empty?"
        )


def synchronize_batch_norm(network: nn.Module, *, device: torch.device) -> nn.Module:
    """Replace batch norms by ones that share their statistics; parameters and names in ``state_dict`` stay.

    On a GPU they become torch's ``SyncBatchNorm``, which exists for GPUs only; elsewhere they become ours.

    Args:
        network: Changed in place.
        device: The device it will be trained on.

    Returns:
        The network; another module only if it is itself a batch norm.

    Example:
        >>> network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        >>> type(synchronize_batch_norm(network, device=torch.device("cpu"))[1]).__name__
        'SynchronizedBatchNorm'
    """
    if device.type == "cuda":
        synchronized: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
        return synchronized
    if isinstance(network, nn.modules.batchnorm._BatchNorm) and not isinstance(network, nn.SyncBatchNorm):
        return network if isinstance(network, SynchronizedBatchNorm) else SynchronizedBatchNorm(network)
    for name, child in network.named_children():
        setattr(network, name, synchronize_batch_norm(child, device=device))
    return network


class _AllReduce(torch.autograd.Function):
    """Add up what all processes have; backward adds up their gradients."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, part: Tensor) -> Tensor:
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        total = grads[0].clone()
        dist.all_reduce(total)
        return total


def _total(part: Tensor) -> Tensor:
    total: Tensor = _AllReduce.apply(part)  # type: ignore[no-untyped-call]
    return total


@final
class SynchronizedBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Takes the place of a batch norm, and shares its parameters and buffers.

    Args:
        layer: The batch norm it replaces.
    """

    def __init__(self, layer: nn.modules.batchnorm._BatchNorm) -> None:
        super().__init__(
            layer.num_features, layer.eps, layer.momentum, affine=False, track_running_stats=False
        )
        self.affine, self.track_running_stats = layer.affine, layer.track_running_stats
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, getattr(layer, name))
        self.training = layer.training

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"SynchronizedBatchNorm: expected inputs (n, c, ...), got {tuple(input.shape)}.")

    def forward(self, input: Tensor) -> Tensor:
        """Normalize by the statistics of all processes while training, and as any batch norm otherwise."""
        use_batch = self.training or self.running_mean is None
        if not (use_batch and dist.is_initialized() and dist.get_world_size() > 1):
            result: Tensor = super().forward(input)
            return result
        self._check_input_dim(input)
        axes = [axis for axis in range(input.ndim) if axis != 1]
        shape = [1, -1, *[1] * (input.ndim - 2)]
        wide = input.to(torch.promote_types(input.dtype, torch.float32))
        count = torch.tensor([wide.numel() / max(wide.shape[1], 1)], dtype=wide.dtype, device=wide.device)
        sums = _total(torch.cat([wide.sum(axes), count]))
        mean, total = sums[:-1] / sums[-1], sums[-1].detach()
        centered = wide - mean.reshape(shape)
        variance = _total(centered.square().sum(axes)) / total
        if self.training and self.track_running_stats:
            self._track(mean.detach(), (variance * total / (total - 1).clamp(min=1)).detach())
        normalized = centered * (variance + self.eps).rsqrt().reshape(shape)
        if self.affine:
            normalized = normalized * self.weight.reshape(shape) + self.bias.reshape(shape)
        return normalized.to(input.dtype)

    def _track(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean), share)
        self.running_var.lerp_(variance.to(self.running_var), share)
