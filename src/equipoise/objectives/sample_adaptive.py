"""CALS in its general form: a margin penalty with a multiplier for every sample and class."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from equipoise.core.names import check_choice
from equipoise.losses.cals_alm import PENALTIES, SLOPES, PenaltyName, constraints
from equipoise.losses.options import OverClasses, check_margin, check_n_classes, check_over_classes
from equipoise.objectives.parts import Parts
from equipoise.training import BatchLike, HeldOut, Learner, Objective, Recipe, Step, gather

__all__ = ["SampleAdaptive"]

#: The multipliers stay within these, as those of classes do.
_LEAST, _MOST = 1e-6, 1e6


@final
class SampleAdaptive(Objective):
    r"""Cross-entropy plus an augmented Lagrangian penalty with its own multiplier for every sample and class.

    It is the general problem that CALS starts from. The paper turns to one multiplier per class, learned from held-out
    predictions, since these here follow the training samples and are many. It is here for comparison.

    .. math:: -\log p_y + \frac{1}{k} \sum_j P(h_j, \rho_{ij}, \lambda_{ij}), \qquad
        \lambda_{ij} \leftarrow P'(h_j, \rho_{ij}, \lambda_{ij})

    Args:
        network: A module from inputs to logits.
        n_samples: Numbers that ``batch.index`` may hold run from 0 to this, exclusive: the length of the dataset.
        n_classes: Number of classes.
        margin: Gap between logits that costs nothing (*m*).
        penalty: ``"phr"``, ``"p2"`` or ``"p3"``.
        over_classes: ``"mean"`` or ``"sum"``.
        growth: What rho is multiplied with where a constraint does not improve (*γ*).
        patience: A constraint has improved if it fell below this share of its value before (*τ*).
        period: Epochs of descent between two updates of the multipliers.
        rho_max: Largest rho.
        rows: Numbers of the training samples, where a dataset also holds others; None takes all. Four numbers are
            kept for each of them and each class.
        recipe: How the network is moved.

    Example:
        >>> objective = SampleAdaptive(nn.Linear(2, 3), n_samples=10, n_classes=3)
        >>> objective.multipliers.shape
        torch.Size([10, 3])

    Reference:
        Liu et al. (2023), Class adaptive network calibration, eq. (4) and algorithm 1.

    Differs from the authors' code:
        It contains the form for classes only. The multipliers of a sample are updated from the logits that it had when
        it was last trained on, augmented, so that no epoch needs a second pass. Rho stays below 10, as in their code
        for classes.
    """

    multipliers: Tensor
    rho: Tensor
    latest: Tensor
    previous: Tensor
    seen: Tensor
    epoch: Tensor
    place: Tensor

    def __init__(
        self,
        network: nn.Module,
        *,
        n_samples: int,
        n_classes: int,
        margin: float = 10.0,
        penalty: PenaltyName = "phr",
        over_classes: OverClasses = "mean",
        growth: float = 1.2,
        patience: float = 0.9,
        period: int = 1,
        rho_max: float = 10.0,
        rows: Tensor | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        super().__init__()
        if n_samples < 1 or period < 1:
            raise ValueError(
                f"SampleAdaptive: `n_samples` and `period` must be at least 1, got {n_samples} and {period}."
            )
        check_n_classes(n_classes, where="SampleAdaptive")
        check_margin(margin, where="SampleAdaptive")
        check_choice(penalty, PENALTIES, where="SampleAdaptive", name="penalty")
        check_over_classes(over_classes, where="SampleAdaptive")
        self.learner = Learner(network, recipe=recipe)
        self.margin, self.over_classes = margin, over_classes
        self.penalty: PenaltyName = penalty
        self.growth, self.patience, self.period, self.rho_max = growth, patience, period, rho_max
        visited = torch.arange(n_samples) if rows is None else rows
        place = torch.full((n_samples,), -1, dtype=torch.int64)
        place[visited] = torch.arange(len(visited))
        shape = (len(visited), n_classes)
        self.register_buffer("place", place, persistent=False)
        self.register_buffer("multipliers", torch.full(shape, _LEAST))
        self.register_buffer("rho", torch.ones(shape))
        self.register_buffer("latest", torch.zeros(shape))
        self.register_buffer("previous", torch.full(shape, torch.inf))
        self.register_buffer("seen", torch.zeros(len(visited), dtype=torch.bool))
        self.register_buffer("epoch", torch.tensor(0))

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        *,
        margin: float = 10.0,
        penalty: PenaltyName = "phr",
        over_classes: OverClasses = "mean",
        growth: float = 1.2,
        patience: float = 0.9,
        period: int = 1,
        rho_max: float = 10.0,
    ) -> SampleAdaptive:
        """Build it from what an experiment has.

        Args:
            parts: Network, recipe and numbers of samples and classes.

        Raises:
            ValueError: If a loss is given, or the number of samples or classes is missing.

        Example:
            >>> parts = Parts(make_network=lambda: nn.Linear(2, 3), n_samples=9, n_classes=3)
            >>> SampleAdaptive.from_parts(parts).multipliers.shape
            torch.Size([9, 3])
        """
        if parts.make_loss is not None:
            raise ValueError(
                "sample_adaptive: it brings its own loss, but another is given. Leave the loss out."
            )
        if parts.n_samples is None or parts.n_classes is None:
            raise ValueError(
                "sample_adaptive: it stores values per sample and class. Give `n_samples` and `n_classes`."
            )
        return cls(
            parts.network("sample_adaptive"),
            n_samples=parts.n_samples,
            n_classes=parts.n_classes,
            margin=margin,
            penalty=penalty,
            over_classes=over_classes,
            growth=growth,
            patience=patience,
            period=period,
            rho_max=rho_max,
            rows=parts.rows,
            recipe=parts.recipe,
        )

    def step(self, batch: BatchLike) -> Step:
        """Descend on the penalized loss of a batch, and remember how far each constraint is broken."""
        logits = self.learner.logits(batch.inputs)
        if logits.ndim > 2:
            raise ValueError(
                f"SampleAdaptive: logits must be (n, k), got {tuple(logits.shape)}. Pixels have too many multipliers; "
                "use `cals_alm`."
            )
        everyone, targets, index = gather(logits, batch.targets, batch.index)
        at = self.place[index]
        h = constraints(everyone, margin=self.margin)
        cost = PENALTIES[self.penalty](h, self.multipliers[at].to(h), self.rho[at].to(h)).sum(-1)
        cost = (cost if self.over_classes == "sum" else cost / everyone.shape[-1]).mean()
        cross_entropy = nn.functional.cross_entropy(everyone, targets)
        self.learner.step(cross_entropy + cost, n_samples=len(targets))
        self.latest[at] = h.detach().to(self.latest)
        self.seen[at] = True
        terms = {"loss": cross_entropy + cost, "loss_cross_entropy": cross_entropy, "loss_penalty": cost}
        return Step(logits.detach(), {name: value.detach() for name, value in terms.items()})

    def network(self) -> nn.Module:
        """Return the network."""
        return self.learner.network

    @torch.no_grad()
    def end_epoch(self, held_out: HeldOut | None) -> None:
        """Move the multipliers to the penalty's slope and grow rho where a constraint stays broken, of samples seen."""
        self.epoch += 1
        if int(self.epoch) % self.period:
            return
        h, rho, chosen = self.latest, self.rho, self.seen[:, None]
        slopes = SLOPES[self.penalty](h, self.multipliers, rho).clamp(_LEAST, _MOST)
        self.multipliers.copy_(torch.where(chosen, slopes, self.multipliers))
        broken = chosen & (h > self.patience * self.previous.clamp(min=0))
        self.rho.copy_(torch.where(broken, self.growth * rho, rho).clamp(1.0, self.rho_max))
        self.previous.copy_(torch.where(chosen, h, self.previous))
        self.seen.zero_()
