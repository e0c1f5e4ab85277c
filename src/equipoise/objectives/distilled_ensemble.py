"""Ensemble distillation: one network learns what several say together."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

from equipoise.objectives.deep_ensemble import DeepEnsemble
from equipoise.objectives.kl import kl_divergence
from equipoise.objectives.loss_helpers import adapt, check_mean
from equipoise.objectives.parts import Parts
from equipoise.training import BatchLike, HeldOut, Learner, Objective, Recipe, Step, gather

__all__ = ["DistilledEnsemble"]


@final
class DistilledEnsemble(Objective):
    r"""Train an ensemble, and with it one network on the labels and on the ensemble's mean probabilities.

    Much of an ensemble's calibration for the cost of one network in use; training costs one network more than the
    ensemble. Only the student is evaluated and shipped.

    .. math::
        L = (1 - w) \, \mathrm{CE}(s, y) + w \, \tau^2 \, \mathrm{KL}(\bar p_\tau \| s_\tau), \qquad
        \bar p = \frac{1}{M} \sum_m p_m

    Args:
        teacher: The ensemble.
        student: The network that learns from it.
        loss: What the student learns from labels; cross-entropy by default.
        weight: Weight *w* of the teacher's opinion, in [0, 1].
        temperature: Temperature *τ* of both sides; 1 keeps the ensemble's own probabilities.
        recipe: How the student is trained.

    Example:
        >>> from equipoise.objectives import Supervised
        >>> members = [Supervised(nn.Linear(2, 3), nn.CrossEntropyLoss()) for _ in range(2)]
        >>> DistilledEnsemble(DeepEnsemble(members), nn.Linear(2, 3)).network()
        Linear(in_features=2, out_features=3, bias=True)

    Reference:
        Hinton, Vinyals and Dean (2015), Distilling the knowledge in a neural network.

    Differs from the authors' code:
        The teacher is trained together with the student, on the same batches, as in co-distillation (Anil et al.,
        2018), and not before it; so one run does both, and can be resumed. They use higher temperatures; 1 is ours.
    """

    def __init__(
        self,
        teacher: DeepEnsemble,
        student: nn.Module,
        *,
        loss: nn.Module | None = None,
        weight: float = 0.9,
        temperature: float = 1.0,
        recipe: Recipe | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= weight <= 1:
            raise ValueError(
                f"DistilledEnsemble: `weight` must lie in [0, 1], got {weight}. 0 ignores the teacher."
            )
        if not temperature > 0:
            raise ValueError(f"DistilledEnsemble: `temperature` must be above 0, got {temperature}.")
        self.teacher = teacher
        self.loss = nn.CrossEntropyLoss() if loss is None else loss
        check_mean(self.loss, where="DistilledEnsemble")
        self.student = Learner(student, recipe=recipe)
        self.weight, self.temperature = weight, temperature

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        *,
        n_members: int = 5,
        weight: float = 0.9,
        temperature: float = 1.0,
    ) -> DistilledEnsemble:
        """Build it from what an experiment has; the student is the auxiliary network, if there is one.

        Args:
            parts: Networks, loss and recipe.
            n_members: Number of networks of the ensemble.

        Example:
            >>> parts = Parts(make_network=lambda: nn.Linear(2, 3))
            >>> len(DistilledEnsemble.from_parts(parts, n_members=3).teacher.members)
            3
        """
        make_student = parts.make_auxiliary or parts.make_network
        teacher = DeepEnsemble.from_parts(
            Parts(make_network=parts.make_network, make_loss=parts.make_loss, recipe=parts.recipe),
            n_members=n_members,
        )
        return cls(
            teacher,
            make_student(),
            loss=parts.loss(),
            weight=weight,
            temperature=temperature,
            recipe=parts.recipe,
        )

    def step(self, batch: BatchLike) -> Step:
        """Step the ensemble, then the student on what it said."""
        taught = self.teacher.step(batch)
        logits = self.student.logits(batch.inputs)
        own, targets, said = gather(logits, batch.targets, taught.logits)
        tau = self.temperature
        kl = tau**2 * kl_divergence(own / tau, said / tau).mean()
        loss = (1 - self.weight) * self.loss(own, targets) + self.weight * kl
        self.student.step(loss, n_samples=len(targets))
        return Step(
            logits.detach(),
            {"loss": loss.detach(), "kl": kl.detach(), "loss_teacher": taught.scalars["loss"]},
        )

    def network(self) -> nn.Module:
        """Return the student."""
        return self.student.network

    def plan_epoch(self, epoch: int) -> Tensor | None:
        """Let the ensemble plan its epoch."""
        return self.teacher.plan_epoch(epoch)

    def prepare_evaluation(self) -> None:
        """Let the ensemble prepare its networks."""
        self.teacher.prepare_evaluation()

    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Let losses adapt, each to its own network."""
        self.teacher.end_epoch(held_out)
        adapt(self.loss, self.network(), held_out, where="DistilledEnsemble")
