"""One network, one loss."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

from equipoise.objectives.loss_helpers import adapt, check_mean, loss_terms
from equipoise.objectives.parts import Parts
from equipoise.training import BatchLike, HeldOut, Learner, Objective, Recipe, Step, gather

__all__ = ["Supervised"]


@final
class Supervised(Objective):
    r"""Train a network with any loss of (logits, labels), ours or torch's.

    A loss that adapts is re-tuned at the end of every epoch from the held-out predictions. Over several processes
    the loss is that of the whole batch, batch statistics included; leave a penalty's own ``gather`` off.

    .. math:: \min_\theta \frac{1}{n} \sum_i L(f_\theta(x_i), y_i)

    Args:
        network: A module from inputs to logits, or to an object with ``logits``. One column holds log-odds of
            class 1 and meets the loss as two, so that every loss of two classes trains it.
        loss: A module of (logits, labels) that gives the mean over the batch.
        recipe: How the network is moved.

    Example:
        >>> from equipoise.losses import FocalLoss
        >>> Supervised(nn.Linear(2, 3), FocalLoss(gamma=3)).network()
        Linear(in_features=2, out_features=3, bias=True)

    Differs from the authors' code:
        Nothing known; published recipes that sum the loss are ``recipe=FOCAL_RECIPE``.
    """

    def __init__(self, network: nn.Module, loss: nn.Module, *, recipe: Recipe | None = None) -> None:
        super().__init__()
        check_mean(loss, where="Supervised")
        self.learner = Learner(network, recipe=recipe)
        self.loss = loss

    @classmethod
    def from_parts(cls, parts: Parts) -> Supervised:
        """Build it from what an experiment has.

        Args:
            parts: Network, loss and recipe.

        Example:
            >>> Supervised.from_parts(Parts(make_network=lambda: nn.Linear(2, 3))).network().out_features
            3
        """
        return cls(parts.network("supervised"), parts.loss(), recipe=parts.recipe)

    def step(self, batch: BatchLike) -> Step:
        """Descend on the loss of a batch."""
        logits = self.learner.logits(batch.inputs)
        everyone, targets = gather(logits, batch.targets)
        loss, terms = loss_terms(self.loss, everyone, targets)
        self.learner.step(loss, n_samples=len(targets), recompute=lambda: self._loss(batch))
        return Step(logits.detach(), terms)

    def _loss(self, batch: BatchLike) -> Tensor:
        loss: Tensor = self.loss(*gather(self.learner.logits(batch.inputs), batch.targets))
        return loss

    def network(self) -> nn.Module:
        """Return the network."""
        return self.learner.network

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Re-tune the loss, if it adapts."""
        adapt(self.loss, self.network(), held_out, where="Supervised")
