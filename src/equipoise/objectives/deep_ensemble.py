"""Deep ensembles: several trainings, one mean opinion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, final, get_args

import torch
from torch import Tensor, nn

from equipoise.calibrators import EnsembleScaling, TemperatureScaling
from equipoise.core.names import check_choice
from equipoise.objectives.parts import Parts
from equipoise.objectives.supervised import Supervised
from equipoise.training import BatchLike, HeldOut, Objective, Step
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits, call_network

__all__ = ["CalibrateMembers", "DeepEnsemble", "MeanNetwork", "mean_log_probs"]

#: When an ensemble is calibrated: each member before averaging, all members with their spread, or only the average.
CalibrateMembers: TypeAlias = Literal["after", "before", "spread"]


def mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """Return the logarithm of the mean of several networks' probabilities; it can be used as logits.

    Example:
        >>> mean_log_probs([torch.tensor([[50.0, 0.0]]), torch.zeros(1, 2)]).exp()
        tensor([[0.7500, 0.2500]])
    """
    stacked = torch.stack([torch.log_softmax(part, 1) for part in logits])
    return torch.logsumexp(stacked, 0) - math.log(len(logits))


@final
class MemberCalibration(nn.Module):
    """Calibrate the members of an ensemble before they are averaged.

    Each member's log-probabilities are multiplied by its scale, the inverse of a temperature. Their differences from
    the mean of all members are multiplied by the spread.

    Args:
        n_members: Number of members.

    Example:
        >>> calibration = MemberCalibration(2)
        >>> _ = calibration.spread.fill_(0.0)
        >>> first, second = calibration([torch.tensor([[4.0, 0.0]]), torch.tensor([[0.0, 0.0]])])
        >>> torch.equal(first, second)
        True
    """

    scales: Tensor
    spread: Tensor

    def __init__(self, n_members: int) -> None:
        super().__init__()
        self.register_buffer("scales", torch.ones(n_members))
        self.register_buffer("spread", torch.ones(()))

    def forward(self, logits: Sequence[Tensor]) -> list[Tensor]:
        """Return calibrated logits of each member."""
        scaled = torch.stack(
            [scale * torch.log_softmax(part, 1) for scale, part in zip(self.scales, logits, strict=True)]
        )
        center = scaled.mean(0)
        return list(center + self.spread * (scaled - center))


@final
class MeanNetwork(nn.Module):
    """Networks whose probabilities are averaged, as one network.

    Args:
        networks: From the same inputs to the same classes.
        calibration: How members are calibrated before they are averaged; None averages them as they are.

    Example:
        >>> MeanNetwork([nn.Linear(2, 3), nn.Linear(2, 3)])(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """

    def __init__(
        self, networks: Sequence[nn.Module], *, calibration: MemberCalibration | None = None
    ) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.calibration = calibration

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the logarithm of the mean probabilities."""
        parts = [as_logits(call_network(network, inputs)) for network in self.networks]
        return mean_log_probs(parts if self.calibration is None else self.calibration(parts))


@final
class DeepEnsemble(Objective):
    r"""Train members that know nothing of each other, and average their probabilities.

    The most reliable way to better calibrated networks, at as many times the cost in training and in use. Members
    differ in their initial weights and random draws; they see the same batches.

    .. math:: p = \frac{1}{M} \sum_m p_m

    Args:
        members: Objectives, each with its own network, initialized apart.
        subset: Share of the training samples that each member sees, drawn at random for each; None shows all to all.
            Every sample is seen by one member at least. A member passes over batches with fewer than two of its
            samples.
        n_samples: Numbers that ``batch.index`` may hold run from 0 to this, exclusive; needed for subsets.
        rows: Numbers of the training samples, where a dataset also holds others; None takes all.
        calibrate: When the ensemble is calibrated. ``"after"`` leaves that to calibrators of the average. ``"before"``
            divides each member's logits by a temperature, ``"spread"`` fits one temperature of all members and a factor
            of their spread (ours); both are fitted on ``tune`` after every epoch, and calibrators of the average may
            follow.

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
    subsets: Tensor | None

    def __init__(
        self,
        members: Sequence[Objective],
        *,
        subset: float | None = None,
        n_samples: int | None = None,
        rows: Tensor | None = None,
        calibrate: CalibrateMembers = "after",
    ) -> None:
        super().__init__()
        check_choice(calibrate, get_args(CalibrateMembers), where="DeepEnsemble", name="calibrate")
        if len(members) < 2:
            raise ValueError(
                f"DeepEnsemble: `members` must be at least two, got {len(members)}. The papers take three to five."
            )
        self.members = cast("Sequence[Objective]", nn.ModuleList(members))
        # Not a child of its own: its networks already are, through the members.
        self.calibrate = calibrate
        self.calibration = None if calibrate == "after" else MemberCalibration(len(members))
        networks = [member.network() for member in members]
        self._mean = (MeanNetwork(networks, calibration=self.calibration),)
        subsets = None if subset is None else _draw_subsets(len(members), subset, n_samples, rows)
        self.register_buffer("subsets", subsets)

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        *,
        n_members: int = 5,
        subset: float | None = None,
        calibrate: CalibrateMembers = "after",
    ) -> DeepEnsemble:
        """Build it from what an experiment has: members of one kind, each with its own initial weights.

        Args:
            parts: Networks, loss, recipe and numbers of samples.
            n_members: Number of networks that are averaged.

        Example:
            >>> len(DeepEnsemble.from_parts(Parts(make_network=lambda: nn.Linear(2, 3)), n_members=3).members)
            3
        """
        members = [Supervised.from_parts(parts) for _ in range(n_members)]
        return cls(members, subset=subset, n_samples=parts.n_samples, rows=parts.rows, calibrate=calibrate)

    def step(self, batch: BatchLike) -> Step:
        """Step every member."""
        if self.subsets is not None:
            return self._step_subsets(batch, self.subsets[:, batch.index])
        steps = [member.step(batch) for member in self.members]
        return Step(mean_log_probs([step.logits for step in steps]), _mean_scalars(steps))

    def _step_subsets(self, batch: BatchLike, chosen: Tensor) -> Step:
        """Step every member on its samples; a sample's logits are the mean of the members that see it."""
        parts = [_take(batch, own) for own in chosen]
        steps = [
            member.step(part) if len(part.index) > 1 else None
            for member, part in zip(self.members, parts, strict=True)
        ]
        done = [step for step in steps if step is not None]
        if not done:
            raise ValueError(
                f"DeepEnsemble: no member sees two samples of a batch of {len(batch.index)}. Enlarge the batches or "
                "`subset`."
            )
        total = done[0].logits.new_full((len(batch.index), *done[0].logits.shape[1:]), -torch.inf)
        for own, step in zip(chosen, steps, strict=True):
            if step is not None:
                total[own] = torch.logaddexp(total[own], torch.log_softmax(step.logits, 1))
        logits = torch.log_softmax(torch.where(torch.isfinite(total), total, 0.0), 1)
        return Step(logits, _mean_scalars(done))

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

    def prepare_evaluation(self) -> None:
        """Let every member prepare its network."""
        for member in self.members:
            member.prepare_evaluation()

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Let every member end its epoch with its own network's held-out predictions, and calibrate them."""
        for member in self.members:
            member.end_epoch(held_out)
        if self.calibration is None:
            return
        if held_out is None:
            raise ValueError(
                f"DeepEnsemble: calibrate={self.calibrate!r} is fitted on a 'tune' split, and there is none. Add "
                'one, or use calibrate="after".'
            )
        found = [held_out(member.network()) for member in self.members]
        if self.calibrate == "before":
            scales = [1 / TemperatureScaling().fit(one).temperature for one in found]
            self.calibration.scales.copy_(torch.tensor(scales))
            return
        fitted = EnsembleScaling().fit(found)
        self.calibration.scales.fill_(1 / fitted.temperature)
        self.calibration.spread.fill_(fitted.spread)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some samples of a batch."""

    inputs: Inputs
    targets: Tensor
    index: Tensor


def _take(batch: BatchLike, chosen: Tensor) -> _Part:
    inputs = batch.inputs
    taken = (
        inputs[chosen]
        if isinstance(inputs, Tensor)
        else {name: part[chosen] for name, part in inputs.items()}
    )
    return _Part(taken, batch.targets[chosen], batch.index[chosen])


def _mean_scalars(steps: Sequence[Step]) -> dict[str, Tensor]:
    """Return the means of the numbers that all steps have."""
    return {
        name: torch.stack([step.scalars[name] for step in steps]).mean()
        for name in steps[0].scalars
        if all(name in step.scalars for step in steps)
    }


def _draw_subsets(n_members: int, share: float, n_samples: int | None, rows: Tensor | None) -> Tensor:
    """Return which samples each member sees: the same number for each, and every sample for one member at least."""
    if n_samples is None:
        raise ValueError("DeepEnsemble: `subset` needs the length of the dataset. Give it as `n_samples`.")
    if not 1 / n_members <= share < 1:
        raise ValueError(
            f"DeepEnsemble: `subset` must be a share from 1 / {n_members}, so that every sample is seen, to below 1, "
            f"got {share}. None shows all samples to all members."
        )
    visited = torch.arange(n_samples) if rows is None else rows.cpu()
    subsets = torch.zeros(n_members, n_samples, dtype=torch.bool)
    # Parts that together are all samples, each filled up at random.
    for member, own in enumerate(visited[torch.randperm(len(visited))].tensor_split(n_members)):
        subsets[member, own] = True
        others = visited[~subsets[member, visited]]
        n_more = max(round(share * len(visited)) - len(own), 0)
        subsets[member, others[torch.randperm(len(others))[:n_more]]] = True
    return subsets
