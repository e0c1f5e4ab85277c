"""Objective: the four verbs a method answers to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from torch import Tensor, nn

from equipoise.core.predictions import Predictions
from equipoise.losses.buffers import FullPrecisionBuffers
from equipoise.training.batch_source import BatchLike

__all__ = ["HeldOut", "Objective", "Step"]

#: Gives a network's predictions on the ``tune`` split; computed on first use, once per network and epoch.
HeldOut: TypeAlias = Callable[[nn.Module], Predictions]


@final
@dataclass(frozen=True)
class Step:
    """What is left of a step.

    Nothing here is read during an epoch, so that the device need not wait: the loop averages once at its end.

    Attributes:
        logits: Detached, one row per sample of this process's batch.
        scalars: Detached numbers by name. ``"loss"`` must be among them; the others become columns of the
            history too.

    Example:
        >>> import torch
        >>> Step(torch.zeros(4, 2), {"loss": torch.tensor(0.7)}).scalars["loss"]
        tensor(0.7000)
    """

    logits: Tensor
    scalars: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        if "loss" not in self.scalars:
            raise ValueError(
                f"Step: `scalars` must hold 'loss', got {', '.join(self.scalars) or 'nothing'}. It is what the loop "
                "watches and the history begins with."
            )


class Objective(FullPrecisionBuffers, ABC):
    """A method of training. It owns the whole step; the loop owns time and knows no method.

    Everything that must survive a restart is in ``state_dict``: keep numbers in buffers, and networks in
    :class:`~equipoise.training.Learner`, which brings its optimizer along. Buffers of the objective itself stay in
    float32 or float64 when it is cast to half precision.

    Example:
        >>> import torch
        >>> from equipoise.training import Learner
        >>> class LeastSquares(Objective):
        ...     def __init__(self, network):
        ...         super().__init__()
        ...         self.learner = Learner(network)
        ...
        ...     def step(self, batch):
        ...         logits = self.learner(batch.inputs)
        ...         loss = (logits - nn.functional.one_hot(batch.targets, logits.shape[1])).square().mean()
        ...         self.learner.step(loss, n_samples=len(logits))
        ...         return Step(logits.detach(), {"loss": loss.detach()})
        ...
        ...     def network(self):
        ...         return self.learner.network
        >>> LeastSquares(nn.Linear(2, 3)).network()
        Linear(in_features=2, out_features=3, bias=True)
    """

    @abstractmethod
    def step(self, batch: BatchLike) -> Step:
        """Learn from a batch: forward, loss, descend."""

    @abstractmethod
    def network(self) -> nn.Module:
        """Return what is evaluated and shipped: a module from inputs to logits."""

    def plan_epoch(self, epoch: int) -> Tensor | None:
        """Return the numbers of the samples an epoch visits, or None for all; called before each epoch."""
        return None

    def prepare_evaluation(self) -> None:
        """Finish what :meth:`network` returns; called after an epoch's last step, before anything is evaluated."""

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Re-tune from held-out predictions, ``held_out(network)``; None if the run has no ``tune`` data."""
