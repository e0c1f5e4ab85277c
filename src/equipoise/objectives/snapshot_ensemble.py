"""Snapshot ensembles: several networks from one training."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import final

import torch
from torch import Tensor, nn

from equipoise.objectives.deep_ensemble import mean_log_probs
from equipoise.objectives.parts import Parts
from equipoise.objectives.supervised import Supervised
from equipoise.training import BatchLike, Cyclic, HeldOut, Objective, Step
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits, call_network

__all__ = ["SnapshotEnsemble", "SnapshotNetwork"]


@final
class SnapshotNetwork(nn.Module):
    """Copies of one network at different times, whose probabilities are averaged.

    Args:
        network: The network; it is copied.
        n_snapshots: Number of copies.

    Example:
        >>> network = nn.Linear(2, 3)
        >>> snapshots = SnapshotNetwork(network, 4)
        >>> snapshots.store(network, index=0)
        >>> snapshots(torch.ones(1, 2)).exp().sum()
        tensor(1.)
    """

    def __init__(self, network: nn.Module, n_snapshots: int) -> None:
        super().__init__()
        self.networks = nn.ModuleList(
            copy.deepcopy(network).requires_grad_(False) for _ in range(n_snapshots)
        )
        self.count = 1

    @torch.no_grad()
    def store(self, network: nn.Module, *, index: int) -> None:
        """Copy the network's weights and buffers to a snapshot; those up to it are averaged."""
        mine = self.networks[index]
        for own, other in zip(
            [*mine.parameters(), *mine.buffers()], [*network.parameters(), *network.buffers()], strict=True
        ):
            own.copy_(other)
        self.count = index + 1

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the logarithm of the mean probabilities."""
        return mean_log_probs(
            [as_logits(call_network(network, inputs)) for network in list(self.networks)[: self.count]]
        )

    def get_extra_state(self) -> dict[str, int]:
        """Return the number of snapshots."""
        return {"count": self.count}

    def set_extra_state(self, state: Mapping[str, int]) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        self.count = state["count"]


@final
class SnapshotEnsemble(Objective):
    r"""Train one network in cycles of the learning rate, and average its copies at the end of each.

    Most of an ensemble's gain for one training: a high learning rate at the start of a cycle drives the network to
    another minimum. Prediction costs as much as with any ensemble. Until its cycle ends, the latest weights are the
    current snapshot.

    .. math:: p = \frac{1}{M} \sum_m p_{\theta_m}, \qquad \theta_m = \theta \text{ at the end of cycle } m

    Args:
        objective: What is trained; its learning rate must follow :class:`~equipoise.training.Cyclic`.
        epochs: Number of epochs of the training, at least one per snapshot.
        n_snapshots: Number of cycles, and of copies that are averaged (*M*).

    Example:
        >>> ensemble = SnapshotEnsemble(Supervised(nn.Linear(2, 3), nn.CrossEntropyLoss()), epochs=10)
        >>> len(ensemble.network().networks)
        5

    Reference:
        Huang et al. (2017), Snapshot ensembles: train 1, get M for free.

    Differs from the authors' code:
        All snapshots are averaged; they also report the last few of more cycles.
    """

    def __init__(self, objective: Objective, *, epochs: int, n_snapshots: int = 5) -> None:
        super().__init__()
        if n_snapshots < 2:
            raise ValueError(f"SnapshotEnsemble: `n_snapshots` must be at least 2, got {n_snapshots}.")
        if epochs < n_snapshots:
            raise ValueError(
                f"SnapshotEnsemble: `epochs` must be at least one per snapshot, got {epochs} for {n_snapshots}."
            )
        self.objective = objective
        self.snapshots = SnapshotNetwork(objective.network(), n_snapshots)
        self.epochs, self.n_snapshots = epochs, n_snapshots
        self._epoch = 0

    @classmethod
    def from_parts(cls, parts: Parts, *, n_snapshots: int = 5) -> SnapshotEnsemble:
        """Build it from what an experiment has; the recipe's schedule is replaced by cycles.

        Args:
            parts: Network, loss, recipe and number of epochs.

        Example:
            >>> parts = Parts(make_network=lambda: nn.Linear(2, 3), epochs=6)
            >>> SnapshotEnsemble.from_parts(parts, n_snapshots=3).objective.learner.recipe.schedule
            Cyclic(n_cycles=3)
        """
        if parts.epochs is None:
            raise ValueError("snapshot_ensemble: needs the number of epochs. Give it as `epochs`.")
        recipe = replace(parts.recipe, schedule=Cyclic(n_snapshots))
        inner = Supervised.from_parts(replace(parts, recipe=recipe))
        return cls(inner, epochs=parts.epochs, n_snapshots=n_snapshots)

    def step(self, batch: BatchLike) -> Step:
        """Let the objective step."""
        return self.objective.step(batch)

    def plan_epoch(self, epoch: int) -> Tensor | None:
        """Let the objective plan its epoch."""
        self._epoch = epoch
        return self.objective.plan_epoch(epoch)

    def prepare_evaluation(self) -> None:
        """Store the network as the snapshot of the current cycle; epochs beyond the last cycle replace its snapshot."""
        self.objective.prepare_evaluation()
        cycle = min(self._epoch * self.n_snapshots // self.epochs, self.n_snapshots - 1)
        self.snapshots.store(self.objective.network(), index=cycle)

    def network(self) -> SnapshotNetwork:
        """Return the snapshots as one network."""
        return self.snapshots

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Let the objective end its epoch."""
        self.objective.end_epoch(held_out)

    def get_extra_state(self) -> dict[str, int]:
        """Return the current epoch."""
        return {"epoch": self._epoch}

    def set_extra_state(self, state: Mapping[str, int]) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        self._epoch = state["epoch"]
