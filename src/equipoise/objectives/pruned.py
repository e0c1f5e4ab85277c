"""Pruning: samples the network stays unsure of are left out of later epochs."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn

from equipoise.objectives.parts import Parts
from equipoise.objectives.supervised import Supervised
from equipoise.training import BatchLike, HeldOut, Objective, Step, gather

__all__ = ["Pruned", "keep_most_confident", "moving_average"]


def moving_average(scores: Tensor, seen: Tensor, fresh: Tensor, *, momentum: float) -> Tensor:
    r"""Return :math:`e \leftarrow \kappa c + (1 - \kappa) e`; a sample seen for the first time gets :math:`c` itself.

    Example:
        >>> scores, seen = torch.tensor([0.5, 0.0]), torch.tensor([True, False])
        >>> moving_average(scores, seen, torch.tensor([0.9, 0.9]), momentum=0.5)
        tensor([0.7000, 0.9000])
    """
    return torch.where(seen, momentum * fresh + (1 - momentum) * scores, fresh)


def keep_most_confident(scores: Tensor, kept: Tensor, *, fraction: float) -> Tensor:
    """Return the mask of samples kept, without the given fraction of those kept so far, lowest scores first.

    Example:
        >>> keep_most_confident(torch.tensor([0.1, 0.9, 0.5, 0.3]), torch.tensor([True] * 4), fraction=0.25)
        tensor([False,  True,  True,  True])
    """
    rows = kept.nonzero().flatten()
    n_dropped = math.floor(fraction * len(rows) + 1e-9)
    order = torch.argsort(scores[rows], stable=True)
    remaining = kept.clone()
    remaining[rows[order[:n_dropped]]] = False
    return remaining


@final
class Pruned(Objective):
    r"""Train any objective on fewer and fewer samples: every few epochs the least confident ones are left out.

    Samples that a network cannot get sure of drive it to overconfidence elsewhere; leaving them out also makes
    epochs shorter. It is the wrong choice where rare or hard classes matter: they are what is left out first.

    .. math:: e_i \leftarrow \kappa \, c_i + (1 - \kappa) \, e_i

    Args:
        objective: What is trained.
        n_samples: Numbers that ``batch.index`` may hold run from 0 to this, exclusive: the length of the dataset.
        period: Epochs between prunings.
        fraction: Share of the remaining samples that is left out each time (*ε*).
        momentum: Weight *κ* of the newest confidence in the moving average.
        rows: Numbers of the samples there are to use, where a dataset also holds others; None takes all.

    Example:
        >>> from equipoise.objectives import Supervised
        >>> supervised = Supervised(nn.Linear(2, 2), nn.CrossEntropyLoss())
        >>> pruned = Pruned(supervised, n_samples=10, period=5, fraction=0.1, momentum=0.3)
        >>> pruned.plan_epoch(0) is None
        True

    Reference:
        Patra et al. (2023), Calibrating deep neural networks using explicit regularisation and dynamic data pruning.

    Reconstruction:
        No code is public and the formula is from secondary text, so no parameter has a default. A sample's first
        confidence starts its average; the fraction is of the samples that remain. Add the paper's regularizer by
        the loss of the wrapped objective.
    """

    scores: Tensor
    seen: Tensor
    kept: Tensor
    everyone: Tensor

    def __init__(
        self,
        objective: Objective,
        *,
        n_samples: int,
        period: int,
        fraction: float,
        momentum: float,
        rows: Tensor | None = None,
    ) -> None:
        super().__init__()
        if n_samples < 1 or period < 1:
            raise ValueError(
                f"Pruned: `n_samples` and `period` must be at least 1, got {n_samples} and {period}."
            )
        if not 0 <= fraction < 1:
            raise ValueError(f"Pruned: `fraction` must lie in [0, 1), got {fraction}. 0.1 drops a tenth.")
        if not 0 < momentum <= 1:
            raise ValueError(f"Pruned: `momentum` must lie in (0, 1], got {momentum}. 1 forgets the past.")
        self.objective = objective
        self.period = period
        self.fraction = fraction
        self.momentum = momentum
        self.register_buffer("scores", torch.zeros(n_samples, dtype=torch.float32))
        self.register_buffer("seen", torch.zeros(n_samples, dtype=torch.bool))
        everyone = torch.zeros(n_samples, dtype=torch.bool)
        everyone[slice(None) if rows is None else rows] = True
        self.register_buffer("everyone", everyone, persistent=False)
        self.register_buffer("kept", everyone.clone())

    @classmethod
    def from_parts(
        cls, parts: Parts, *, period: int = 10, fraction: float = 0.1, momentum: float = 0.3
    ) -> Pruned:
        """Build it from what an experiment has: one network with one loss, on fewer and fewer samples.

        Args:
            parts: Network, loss, recipe and numbers of samples.

        Raises:
            ValueError: If the length of the dataset is missing.

        Example:
            >>> parts = Parts(make_network=lambda: nn.Linear(2, 3), n_samples=9)
            >>> Pruned.from_parts(parts, period=2).period
            2
        """
        if parts.n_samples is None:
            raise ValueError("pruned: needs the length of the dataset. Give it as `n_samples`.")
        return cls(
            Supervised.from_parts(parts),
            n_samples=parts.n_samples,
            period=period,
            fraction=fraction,
            momentum=momentum,
            rows=parts.rows,
        )

    def step(self, batch: BatchLike) -> Step:
        """Let the objective step, and remember how sure its network was."""
        step = self.objective.step(batch)
        confidence, index = gather(_confidence(step.logits), batch.index)
        self.scores[index] = moving_average(
            self.scores[index], self.seen[index], confidence.to(self.scores), momentum=self.momentum
        )
        self.seen[index] = True
        return step

    def plan_epoch(self, epoch: int) -> Tensor | None:
        """Leave out the least confident samples if it is time; return those that remain."""
        if epoch and epoch % self.period == 0:
            # A sample that was never seen, such as one left over by whole batches, has no score to be judged by.
            judged = keep_most_confident(self.scores, self.kept & self.seen, fraction=self.fraction)
            self.kept &= judged | ~self.seen
        inner = self.objective.plan_epoch(epoch)
        if torch.equal(self.kept, self.everyone):
            return inner
        return self.kept.nonzero().flatten() if inner is None else inner[self.kept[inner]]

    def network(self) -> nn.Module:
        """Return the objective's network."""
        return self.objective.network()

    def prepare_evaluation(self) -> None:
        """Let the objective prepare its network."""
        self.objective.prepare_evaluation()

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Let the objective end its epoch."""
        self.objective.end_epoch(held_out)


def _confidence(logits: Tensor) -> Tensor:
    """Return the largest probability of each sample; of dense outputs, the mean over places."""
    return logits.softmax(1).amax(1).flatten(1).mean(1) if logits.ndim > 2 else logits.softmax(1).amax(1)
