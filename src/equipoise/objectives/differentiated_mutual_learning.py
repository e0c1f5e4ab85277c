"""Differentiated deep mutual learning: a primary network, and auxiliaries that are kept different."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, cast, final

import torch
from torch import Tensor, nn

from equipoise.core.names import check_choice, look_up
from equipoise.objectives.kl import kl_divergence, mixture
from equipoise.objectives.loss_helpers import adapt, check_mean
from equipoise.objectives.mutual_learning import pool_terms
from equipoise.objectives.parts import Parts
from equipoise.objectives.views import VIEWS
from equipoise.training import (
    BatchLike,
    HeldOut,
    Learner,
    MultiStep,
    Objective,
    Optimizer,
    Recipe,
    Step,
    gather,
)
from equipoise.training.batch_source import Inputs

__all__ = ["DifferentiatedMutualLearning"]


@final
class DifferentiatedMutualLearning(Objective):
    r"""Train a primary network on the labels and on auxiliaries that follow it slowly and never see a label.

    The auxiliaries' slower opinion is that of an ensemble in the making, and the primary distils it: the gradient
    of its extra term is that of :math:`\mathrm{KL}(h \| f) / \beta` with the ensemble
    :math:`h = (1 - \beta) f + \beta g` held constant. Only the primary is evaluated and shipped. An auxiliary much
    weaker than the primary ruins its calibration.

    .. math::
        L_f = \mathrm{CE}(f, y) + \frac{w}{M} \sum_m \mathrm{KL}(g_m \| f), \qquad L_{g_m} = \mathrm{KL}(f \| g_m)

    Args:
        primary: The network that is wanted, *f*.
        auxiliaries: One or more others, *g*; the paper takes a ResNet-18 beside larger primaries.
        loss: What the primary learns from labels; cross-entropy by default.
        weight: Weight *w* of the auxiliaries' opinions.
        beta: None teaches the primary from *g*; a number in (0, 1] from the ensemble *h*, whose gradient is
            *beta* times the same.
        peers: Whether the terms of several auxiliaries are averaged or summed.
        augment: What is done to the inputs of each auxiliary; None shows all networks the same batch.
        recipe: How the primary is moved.
        auxiliary_recipe: How auxiliaries are moved: a lower rate that stays constant.

    Example:
        >>> objective = DifferentiatedMutualLearning(nn.Linear(2, 3), [nn.Linear(2, 3)])
        >>> batch = torch.ones(4, 2), torch.tensor([0, 1, 2, 0]), torch.arange(4)
        >>> from collections import namedtuple
        >>> sorted(objective.step(namedtuple("Batch", "inputs targets index")(*batch)).scalars)
        ['disagreement', 'diversity', 'kl', 'loss']

    Reference:
        Liu et al. (2025), Improving accuracy and calibration via differentiated deep mutual learning;
        proposition 1 is from its supplement.

    Reconstruction:
        The main text was not at hand. Losses and schedules follow a third-party reading that matches the
        supplement's notation; the value of the learning rates, the averaging over several auxiliaries, and the
        same batch for all networks are our reading, and every one of them is a parameter.
    """

    auxiliaries: Sequence[Learner[nn.Module]]

    def __init__(
        self,
        primary: nn.Module,
        auxiliaries: Sequence[nn.Module],
        *,
        loss: nn.Module | None = None,
        weight: float = 1.0,
        beta: float | None = None,
        peers: Literal["mean", "sum"] = "mean",
        augment: Callable[[Inputs], Inputs] | None = None,
        recipe: Recipe | None = None,
        auxiliary_recipe: Recipe | None = None,
    ) -> None:
        super().__init__()
        where = "DifferentiatedMutualLearning"
        if not auxiliaries:
            raise ValueError(
                f"{where}: `auxiliaries` must be at least one network, got none. Alone is Supervised."
            )
        if beta is not None and not 0 < beta <= 1:
            raise ValueError(f"{where}: `beta` must lie in (0, 1], got {beta}. None teaches from g itself.")
        check_choice(peers, ("mean", "sum"), where=where, name="peers")
        self.loss = nn.CrossEntropyLoss() if loss is None else loss
        check_mean(self.loss, where=where)
        recipe = recipe or Recipe(schedule=MultiStep((100, 150, 200)))
        auxiliary_recipe = auxiliary_recipe or _constant(0.01)
        self.learner = Learner(primary, recipe=recipe)
        learners = nn.ModuleList(Learner(network, recipe=auxiliary_recipe) for network in auxiliaries)
        self.auxiliaries = cast("Sequence[Learner[nn.Module]]", learners)
        self.weight = weight
        self.beta = beta
        self.peers = peers
        self.augment = augment

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        *,
        n_auxiliaries: int = 1,
        auxiliary_lr: float = 0.01,
        weight: float = 1.0,
        beta: float | None = None,
        peers: Literal["mean", "sum"] = "mean",
        augment: str | Callable[[Inputs], Inputs] | None = None,
    ) -> DifferentiatedMutualLearning:
        """Build it from what an experiment has: a primary, and auxiliaries with a constant learning rate.

        Args:
            parts: Networks, loss and recipe.
            n_auxiliaries: Number of auxiliaries.
            auxiliary_lr: Their constant learning rate.
            augment: A function of inputs, or the name of one: ``"flip"``, ``"shift"``, ``"noise"``.

        Example:
            >>> parts = Parts(make_network=lambda: nn.Linear(2, 3))
            >>> len(DifferentiatedMutualLearning.from_parts(parts, n_auxiliaries=2).auxiliaries)
            2
        """
        make_auxiliary = parts.make_auxiliary or parts.make_network
        return cls(
            parts.make_network(),
            [make_auxiliary() for _ in range(n_auxiliaries)],
            loss=parts.loss(),
            weight=weight,
            beta=beta,
            peers=peers,
            augment=look_up(augment, VIEWS, what="augmentation") if isinstance(augment, str) else augment,
            recipe=parts.recipe,
            auxiliary_recipe=_constant(auxiliary_lr, clip_norm=parts.recipe.clip_norm),
        )

    def step(self, batch: BatchLike) -> Step:
        """Step the primary, then the auxiliaries, all from one forward pass."""
        logits = self.learner.logits(batch.inputs)
        others = [learner.logits(self._view(batch.inputs)) for learner in self.auxiliaries]
        own, targets, *said = gather(logits, batch.targets, *others)
        kl = pool_terms([self._divergence(own, other.detach()) for other in said], peers=self.peers)
        loss = self.loss(own, targets) + self.weight * kl
        self.learner.step(loss, n_samples=len(targets))
        taught = [kl_divergence(other, own.detach()).mean() for other in said]
        for learner, value in zip(self.auxiliaries, taught, strict=True):
            learner.step(value, n_samples=len(targets))
        diversity = torch.stack(taught).detach().mean()
        differ = [(own.argmax(1) != other.argmax(1)).float().mean() for other in said]
        return Step(
            logits.detach(),
            {
                "loss": loss.detach(),
                "kl": kl.detach(),
                "diversity": diversity,
                "disagreement": torch.stack(differ).mean(),
            },
        )

    def _view(self, inputs: Inputs) -> Inputs:
        return inputs if self.augment is None else self.augment(inputs)

    def _divergence(self, own: Tensor, other: Tensor) -> Tensor:
        target = other if self.beta is None else mixture(own.detach(), other, beta=self.beta)
        return kl_divergence(own, target).mean()

    def network(self) -> nn.Module:
        """Return the primary."""
        return self.learner.network

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Re-tune the primary's loss, if it adapts."""
        adapt(self.loss, self.network(), held_out, where="DifferentiatedMutualLearning")


def _constant(lr: float, *, clip_norm: float | None = None) -> Recipe:
    """Return SGD at a constant learning rate."""
    options = {"momentum": 0.9, "weight_decay": 5e-4}
    return Recipe(optimizer=Optimizer("SGD", lr=lr, options=options), clip_norm=clip_norm)
