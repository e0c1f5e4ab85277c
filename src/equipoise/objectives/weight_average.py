"""Weight averaging: the mean of the weights along the way is evaluated and shipped."""

from __future__ import annotations

import math
from typing import Literal, final

from torch import Tensor, nn

from equipoise.core.names import check_choice
from equipoise.objectives.deep_ensemble import MemberCalibration
from equipoise.objectives.parts import Parts
from equipoise.objectives.supervised import Supervised
from equipoise.training import AveragedWeights, BatchLike, HeldOut, Learner, Objective, Source, Step
from equipoise.training.batch_norm import has_batch_norm, refresh_batch_norm
from equipoise.training.randomness import random_state, restore_random_state

__all__ = ["WeightAverage"]


@final
class WeightAverage(Objective):
    r"""Train any objective, and evaluate and ship an average of its network's weights.

    The average lies in a flatter part of the loss than the last iterate, is less confident, and costs one copy of the
    weights. With a learning rate that falls to 0 there is little left to average; leave it higher.

    .. math::
        \text{EMA: } \bar\theta \leftarrow d \, \bar\theta + (1 - d) \, \theta \text{ after every step}, \qquad
        \text{SWA: } \bar\theta = \tfrac{1}{E - e_0} \sum_{e \ge e_0} \theta_e \text{ over epoch ends}

    Args:
        objective: What is trained.
        kind: ``"ema"``, an exponential moving average over steps, or ``"swa"``, the mean over the ends of epochs.
        decay: Decay *d* of the moving average.
        warm_up: Whether the decay starts low: ``min(d, (1 + t) / (10 + t))`` at update *t*. Without it, short
            trainings mostly average the first steps: 500 steps at 0.999 leave 60% of the weight on the first.
        start: First epoch, counted from 0, that ``"swa"`` averages; until then the network itself is
            evaluated.
        train: Training batches, from which statistics of batch norms are computed anew for the average, once per
            epoch; needed for networks with batch norms.

    Raises:
        ValueError: If the network has batch norms and there are no training batches.

    Example:
        >>> ema = WeightAverage(Supervised(nn.Linear(2, 3), nn.CrossEntropyLoss()), decay=0.99)
        >>> ema.network()
        Linear(in_features=2, out_features=3, bias=True)

    Reference:
        Izmailov et al. (2018), Averaging weights leads to wider optima and better generalization (SWA);
        Polyak and Juditsky (1992), Acceleration of stochastic approximation by averaging (EMA is its common form).

    Differs from the authors' code:
        The warm-up of the decay is that of TensorFlow's moving average; ``warm_up=False`` is the plain formula, as in
        ``torch.optim.swa_utils``. While batch norm statistics are computed, dropout is off, as it is in evaluation.
        The constant learning rate of SWA is a schedule, :class:`~equipoise.training.HoldFrom`.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        kind: Literal["ema", "swa"] = "ema",
        decay: float = 0.999,
        warm_up: bool = True,
        start: int = 0,
        train: Source | None = None,
    ) -> None:
        super().__init__()
        check_choice(kind, ("ema", "swa"), where="WeightAverage", name="kind")
        if not 0 <= decay < 1:
            raise ValueError(f"WeightAverage: `decay` must lie in [0, 1), got {decay}. 0.999 is usual.")
        if start < 0:
            raise ValueError(f"WeightAverage: `start` must be at least 0, got {start}.")
        if train is None and has_batch_norm(objective.network()):
            raise ValueError(
                "WeightAverage: the network has batch norms, whose statistics must be computed for the averaged "
                "weights. Give the training batches as `train`."
            )
        if any(isinstance(part, MemberCalibration) for part in objective.modules()):
            raise ValueError(
                "WeightAverage: members with averaged weights cannot be calibrated before averaging, since their "
                'temperatures are fitted without it. Use calibrate="after".'
            )
        self.objective = objective
        self.average = AveragedWeights(objective.network())
        self.kind, self.decay, self.warm_up, self.start = kind, decay, warm_up, start
        # A tuple, since a source may be a module, which would become a child.
        self._train = (train,)
        self._epoch = 0

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        *,
        kind: Literal["ema", "swa"] = "ema",
        decay: float = 0.999,
        warm_up: bool = True,
        start: float = 0.75,
    ) -> WeightAverage:
        """Build it from what an experiment has: one network with one loss.

        Args:
            parts: Network, loss, recipe, training batches and number of epochs.
            start: Share of the epochs after which ``"swa"`` starts to average.

        Example:
            >>> parts = Parts(make_network=lambda: nn.Linear(2, 3), epochs=8)
            >>> WeightAverage.from_parts(parts, kind="swa").start
            6
        """
        return cls.around(
            Supervised.from_parts(parts), parts, kind=kind, decay=decay, warm_up=warm_up, start=start
        )

    @classmethod
    def around(
        cls,
        objective: Objective,
        parts: Parts,
        *,
        kind: Literal["ema", "swa"] = "ema",
        decay: float = 0.999,
        warm_up: bool = True,
        start: float = 0.75,
    ) -> WeightAverage:
        """Wrap an objective that was built from the same parts; ``start`` is a share of the epochs.

        Example:
            >>> parts = Parts(make_network=lambda: nn.Linear(2, 3), epochs=8)
            >>> WeightAverage.around(Supervised.from_parts(parts), parts, kind="swa", start=0.5).start
            4
        """
        if not 0 <= start < 1:
            raise ValueError(f"weight_average: `start` must be a share of the epochs in [0, 1), got {start}.")
        if kind == "swa" and parts.epochs is None:
            raise ValueError("weight_average: swa needs the number of epochs. Give it as `epochs`.")
        first = math.floor(start * (parts.epochs or 0))
        return cls(objective, kind=kind, decay=decay, warm_up=warm_up, start=first, train=parts.train)

    def step(self, batch: BatchLike) -> Step:
        """Let the objective step; a moving average follows every step of the optimizer."""
        step = self.objective.step(batch)
        if self.kind == "ema" and not self._is_accumulating():
            self.average.add(self.objective.network(), share=1 - self._decay())
        return step

    def _is_accumulating(self) -> bool:
        return any(part.is_accumulating for part in self.objective.modules() if isinstance(part, Learner))

    def _decay(self) -> float:
        count = self.average.count
        return min(self.decay, (1 + count) / (10 + count)) if self.warm_up else self.decay

    def plan_epoch(self, epoch: int) -> Tensor | None:
        """Let the objective plan its epoch."""
        self._epoch = epoch
        return self.objective.plan_epoch(epoch)

    def prepare_evaluation(self) -> None:
        """Average the end of an epoch, and compute the statistics of batch norms for the average."""
        self.objective.prepare_evaluation()
        if self.kind == "swa" and self._epoch >= self.start:
            self.average.add(self.objective.network(), share=1 / (self.average.count + 1))
        (train,) = self._train
        if not self.average.count or train is None or not has_batch_norm(self.average.network):
            return
        before = random_state()
        device = next(self.average.network.parameters()).device
        # Every process goes through all batches, so that all get the same statistics without talking.
        batches = train(epoch=self._epoch, indices=None, start=0, rank=0, world_size=1, device=device)
        learner = next(part for part in self.objective.modules() if isinstance(part, Learner))
        with learner.fabric.autocast():
            refresh_batch_norm(self.average.network, batches)
        restore_random_state(before)

    def network(self) -> nn.Module:
        """Return the average; the network itself before there is one."""
        return self.average.network if self.average.count else self.objective.network()

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Let the objective end its epoch; losses adapt to the network that is trained."""
        self.objective.end_epoch(held_out)

    def get_extra_state(self) -> dict[str, int]:
        """Return the current epoch."""
        return {"epoch": self._epoch}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        self._epoch = state["epoch"]
