"""What the loop asks of data: batches for an epoch; and how processes share a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor

from equipoise.losses.gather import gather_rows

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Batch", "Batches", "Inputs", "gather", "share"]

#: What a network is called with.
Inputs = Tensor | Mapping[str, Tensor]


class Batch(Protocol):
    """Some samples, their classes, and which samples they are.

    Attributes:
        inputs: What the network is called with, one row per sample.
        targets: Class numbers ``(n,)``, or soft targets.
        index: The samples' numbers in their split ``(n,)``.
    """

    @property
    def inputs(self) -> Inputs: ...  # noqa: D102
    @property
    def targets(self) -> Tensor: ...  # noqa: D102
    @property
    def index(self) -> Tensor: ...  # noqa: D102


class Batches(Protocol):
    """Makes the batches of an epoch.

    The same call gives the same batches, so the position of a run in its data is two numbers: the epoch and
    the batches done. Random draws depend on the epoch, not on calls made before.
    """

    def __call__(self, epoch: int, visit: Tensor | None) -> Iterable[Batch]:
        """Return the batches of an epoch.

        Args:
            epoch: Counted from 0.
            visit: Numbers of the samples to visit; None visits all.
        """


class Part(NamedTuple):
    """One process's part of a batch, on its device."""

    inputs: Inputs
    targets: Tensor
    index: Tensor


def share(batch: Batch, fabric: Fabric) -> Batch:
    """Return this process's part of a batch, on its device; parts are in order of rank.

    Example:
        >>> from equipoise.training import Hardware
        >>> batch = Part(torch.zeros(3, 2), torch.tensor([0, 1, 1]), torch.arange(3))
        >>> len(share(batch, Hardware(accelerator="cpu").make_fabric()).targets)
        3
    """
    rank, world = fabric.global_rank, fabric.world_size

    def mine(rows: Tensor) -> Tensor:
        part = rows if world == 1 else rows.tensor_split(world)[rank]
        return part.to(fabric.device, non_blocking=True)

    inputs = batch.inputs
    parts = mine(inputs) if isinstance(inputs, Tensor) else {name: mine(rows) for name, rows in inputs.items()}
    return Part(parts, mine(batch.targets), mine(batch.index))


def gather(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the rows of all processes, in order of rank, with gradient; one process gets back what it gave.

    A loss of gathered rows is the loss of the whole batch, whatever its formula and however uneven the parts,
    and the gradient that data parallelism averages is that of the whole batch.

    Example:
        >>> [rows] = gather(torch.tensor([1.0, 2.0]))
        >>> rows
        tensor([1., 2.])
    """
    *gathered, there = gather_rows(*tensors, torch.ones(len(tensors[0]), device=tensors[0].device))
    if len(there) == len(tensors[0]):
        return tensors
    return tuple(rows[there > 0] for rows in gathered)
