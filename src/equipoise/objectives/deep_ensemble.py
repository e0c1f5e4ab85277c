"""Deep ensembles: several trainings, one mean opinion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast, final

import torch
from torch import Tensor, nn

from equipoise.training import BatchLike, HeldOut, Objective, Step
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits, call_network

__all__ = ["DeepEnsemble", "MeanNetwork", "mean_log_probs"]


def mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """Return the logarithm of the mean of several networks' probabilities; it can be used as logits.

    Example:
        >>> mean_log_probs([torch.tensor([[50.0, 0.0]]), torch.zeros(1, 2)]).exp()
        tensor([[0.7500, 0.2500]])
    """
    stacked = torch.stack([torch.log_softmax(part, 1) for part in logits])
    return torch.logsumexp(stacked, 0) - math.log(len(logits))


@final
class MeanNetwork(nn.Module):
    """Networks whose probabilities are averaged, as one network.

    Args:
        networks: From the same inputs to the same classes.

    Example:
        >>> MeanNetwork([nn.Linear(2, 3), nn.Linear(2, 3)])(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the logarithm of the mean probabilities."""
        return mean_log_probs([as_logits(call_network(network, inputs)) for network in self.networks])


@final
class DeepEnsemble(Objective):
    r"""Train members that know nothing of each other, and average their probabilities.

    The most reliable way to better calibrated networks, at as many times the cost in training and in use. Members
    differ in their initial weights and random draws; they see the same batches.

    .. math:: p = \frac{1}{M} \sum_m p_m

    Args:
        members: Objectives, each with its own network, initialised apart.

    Example:
        >>> from equipoise.objectives import Supervised
        >>> ensemble = DeepEnsemble([Supervised(nn.Linear(2, 3), nn.CrossEntropyLoss()) for _ in range(3)])
        >>> len(ensemble.network().networks)
        3

    Reference:
        Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using deep ensembles.

    Differs from the authors' code:
        No adversarial training. Members share the order of the batches; the paper shuffles for each.
    """

    members: Sequence[Objective]

    def __init__(self, members: Sequence[Objective]) -> None:
        super().__init__()
        if len(members) < 2:
            raise ValueError(
                f"DeepEnsemble: `members` must be at least two, got {len(members)}. The papers take three to five."
            )
        self.members = cast("Sequence[Objective]", nn.ModuleList(members))
        # Not a child of its own: its networks already are, through the members.
        self._mean = (MeanNetwork([member.network() for member in members]),)

    def step(self, batch: BatchLike) -> Step:
        """Step every member."""
        steps = [member.step(batch) for member in self.members]
        scalars = {
            name: torch.stack([step.scalars[name] for step in steps]).mean()
            for name in steps[0].scalars
            if all(name in step.scalars for step in steps)
        }
        return Step(mean_log_probs([step.logits for step in steps]), scalars)

    def network(self) -> MeanNetwork:
        """Return the members' networks as one."""
        return self._mean[0]

    def plan_epoch(self, epoch: int) -> Tensor | None:
        """Let members plan; they see the same batches, so none may leave samples out.

        Raises:
            ValueError: If a member leaves samples out.
        """
        if any(member.plan_epoch(epoch) is not None for member in self.members):
            raise ValueError(
                "DeepEnsemble: a member visits a part of the samples, but members see the same batches. Prune the "
                "ensemble instead: Pruned(DeepEnsemble([...]), ...)."
            )
        return None

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Let every member end its epoch with its own network's held-out predictions."""
        for member in self.members:
            member.end_epoch(held_out)
