"""What runs inside the processes of a distributed test; here so that they can import it."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from equipoise.catalogue import CATALOGUE

PENALTIES = CATALOGUE["penalties"]

PARTS = [slice(0, 7), slice(7, 12)]  # unequal on purpose


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, the weights of a linear network, labels with some to ignore."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(12, 6, generator=generator, dtype=torch.float64)
    network = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (12,), generator=generator)
    labels[[2, 9]] = -100
    return features, network, labels


def value_and_gradient(key: str, part: slice, *, gather: bool) -> tuple[Tensor, Tensor]:
    """A term of part of the batch, and its gradient in the network's weights."""
    features, network, labels = inputs()
    network.requires_grad_()
    term = PENALTIES[key].make(gather=gather, weight=torch.tensor([1.0, 2.0, 0.5, 1.0]))
    value = term(features[part] @ network, labels[part])
    return value.detach(), torch.autograd.grad(value, network)[0]


def work(rank: int, folder: str) -> None:
    """Compute every term over both processes' batches, and average gradients as data parallelism does."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=len(PARTS))
    results = {}
    for key in PENALTIES:
        value, gradient = value_and_gradient(key, PARTS[rank], gather=True)
        dist.all_reduce(gradient)
        results[key] = value, gradient / len(PARTS)
    torch.save(results, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()
