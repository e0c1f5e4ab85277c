"""Deep mutual learning: networks that teach each other as they learn."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal, cast, final

import torch
from torch import Tensor, nn

from equipoise.core.names import check_choice
from equipoise.objectives.kl import kl_divergence
from equipoise.objectives.loss_helpers import adapt, check_mean
from equipoise.objectives.parts import Parts
from equipoise.training import BatchLike, HeldOut, Learner, Objective, Recipe, Step, gather

__all__ = ["MutualLearning", "pool_terms"]


def pool_terms(values: Sequence[Tensor], *, peers: Literal["mean", "sum"]) -> Tensor:
    """Return the mean or the sum of the terms that a network's peers contribute.

    Example:
        >>> pool_terms([torch.tensor(1.0), torch.tensor(3.0)], peers="mean")
        tensor(2.)
    """
    total = torch.stack(list(values)).sum()
    return total / len(values) if peers == "mean" else total


@final
class MutualLearning(Objective):
    r"""Train several networks together, each on the labels and on what its peers say.

    Peers that disagree keep each other from being too sure, at the price of training all of them; the first one
    is evaluated and shipped.

    .. math:: L_i = \mathrm{CE}(p_i, y) + \frac{w}{n - 1} \sum_{j \ne i} \mathrm{KL}(p_j \| p_i)

    Args:
        networks: Two or more, of any kinds, from the same inputs to the same classes.
        loss: What each learns from labels; cross-entropy by default. Every network gets its own copy.
        weight: Weight *w* of the peers' opinions.
        peers: Whether the terms of several peers are averaged or summed.
        refresh: Whether a network that has just stepped is asked again before the next one learns from it.
        recipe: How each network is moved.

    Example:
        >>> objective = MutualLearning([nn.Linear(2, 3), nn.Linear(2, 3)])
        >>> batch = torch.ones(4, 2), torch.tensor([0, 1, 2, 0]), torch.arange(4)
        >>> from collections import namedtuple
        >>> sorted(objective.step(namedtuple("Batch", "inputs targets index")(*batch)).scalars)
        ['kl', 'loss', 'loss_1']

    Reference:
        Zhang et al. (2018), Deep mutual learning, eq. (5)-(9) and algorithm 1.

    Differs from the authors' code:
        They sum the peers' terms and step all networks from one forward pass (``peers="sum"``,
        ``refresh=False``); we follow the paper. They guard the logarithm with 1e-8; ours needs no guard.
    """

    learners: Sequence[Learner[nn.Module]]

    def __init__(
        self,
        networks: Sequence[nn.Module],
        *,
        loss: nn.Module | None = None,
        weight: float = 1.0,
        peers: Literal["mean", "sum"] = "mean",
        refresh: bool = True,
        recipe: Recipe | None = None,
    ) -> None:
        super().__init__()
        if len(networks) < 2:
            raise ValueError(
                f"MutualLearning: `networks` must be at least two, got {len(networks)}. One alone is Supervised."
            )
        check_choice(peers, ("mean", "sum"), where="MutualLearning", name="peers")
        loss = nn.CrossEntropyLoss() if loss is None else loss
        check_mean(loss, where="MutualLearning")
        learners = nn.ModuleList(Learner(network, recipe=recipe) for network in networks)
        self.learners = cast("Sequence[Learner[nn.Module]]", learners)
        self.losses = nn.ModuleList(copy.deepcopy(loss) for _ in networks)
        self.weight = weight
        self.peers = peers
        self.refresh = refresh

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        *,
        n_networks: int = 2,
        weight: float = 1.0,
        peers: Literal["mean", "sum"] = "mean",
        refresh: bool = True,
    ) -> MutualLearning:
        """Build it from what an experiment has: networks of one kind, or the first with auxiliaries of another.

        Args:
            parts: Networks, loss and recipe.
            n_networks: Number of networks that learn together.

        Example:
            >>> len(MutualLearning.from_parts(Parts(make_network=lambda: nn.Linear(2, 3)), n_networks=3).learners)
            3
        """
        make_other = parts.make_auxiliary or parts.make_network
        networks = [parts.make_network(), *(make_other() for _ in range(n_networks - 1))]
        return cls(
            networks, loss=parts.loss(), weight=weight, peers=peers, refresh=refresh, recipe=parts.recipe
        )

    def step(self, batch: BatchLike) -> Step:
        """Let every network learn from the labels and from its peers."""
        outputs: list[Tensor] = [learner.logits(batch.inputs) for learner in self.learners]
        opinions = [output.detach() for output in outputs]
        first = opinions[0]
        scalars: dict[str, Tensor] = {}
        for number, (learner, loss) in enumerate(zip(self.learners, self.losses, strict=True)):
            others = opinions[:number] + opinions[number + 1 :]
            own, targets, *said = gather(outputs[number], batch.targets, *others)
            kl = pool_terms([kl_divergence(own, other).mean() for other in said], peers=self.peers)
            value = loss(own, targets) + self.weight * kl
            learner.step(value, n_samples=len(targets))
            scalars[f"loss_{number}" if number else "loss"] = value.detach()
            scalars.setdefault("kl", kl.detach())
            if self.refresh and number + 1 < len(outputs):
                with torch.no_grad():
                    opinions[number] = learner.logits(batch.inputs)
        return Step(first, scalars)

    def network(self) -> nn.Module:
        """Return the first network."""
        return self.learners[0].network

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Re-tune losses that adapt, each from its own network's predictions."""
        for learner, loss in zip(self.learners, self.losses, strict=True):
            adapt(loss, learner.network, held_out, where="MutualLearning")
