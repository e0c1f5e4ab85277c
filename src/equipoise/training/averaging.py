"""A running average of a network's weights."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import final

import torch
from torch import nn

__all__ = ["AveragedWeights"]


@final
class AveragedWeights(nn.Module):
    """A copy of a network that holds an average of its weights over time.

    Buffers, such as the statistics of batch norms, are copied and not averaged.

    Args:
        network: The network whose weights are averaged; it is copied.

    Example:
        >>> network = nn.Linear(1, 1, bias=False)
        >>> average = AveragedWeights(network)
        >>> for value in (1.0, 3.0):
        ...     _ = network.weight.data.fill_(value)
        ...     average.add(network, share=0.5)
        >>> average.count, float(average.network.weight)
        (2, 2.0)
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).requires_grad_(False)
        self.count = 0

    @torch.no_grad()
    def add(self, network: nn.Module, *, share: float) -> None:
        """Move the average towards the network's weights by a share; the first time they are copied."""
        mine = [weight.data for weight in self.network.parameters()]
        theirs = [weight.detach() for weight in network.parameters()]
        torch._foreach_lerp_(mine, theirs, share if self.count else 1.0)
        for own, other in zip(self.network.buffers(), network.buffers(), strict=True):
            own.copy_(other)
        self.count += 1

    def get_extra_state(self) -> dict[str, int]:
        """Return the number of weights that were averaged."""
        return {"count": self.count}

    def set_extra_state(self, state: Mapping[str, int]) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        self.count = state["count"]
