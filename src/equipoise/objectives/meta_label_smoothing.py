"""Meta-learned label smoothing: the amount of smoothing follows the calibration it leads to."""

from __future__ import annotations

from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from equipoise.core.names import check_choice
from equipoise.losses.dece import DifferentiableECE
from equipoise.objectives.bilevel import FeaturesAndLogits, head_ahead
from equipoise.objectives.parts import Parts
from equipoise.training import BatchLike, Cycle, Learner, Objective, Optimizer, Recipe, Source, Step, gather

__all__ = ["MetaLabelSmoothing", "Smoothing"]

Form = Literal["scalar", "class", "matrix"]

_EPSILON = 1e-6


@final
class Smoothing(nn.Module):
    """From class numbers to soft targets, by amounts that can be learned; it starts with none.

    Args:
        n_classes: Number of classes.
        form: ``"scalar"`` has one amount, spread evenly over all classes; ``"class"`` one per true class, spread the
            same way; ``"matrix"`` one per true class, spread over the other classes as a learned row says.
        maximum: Largest amount.

    Example:
        >>> smoothing = Smoothing(4, form="scalar")
        >>> with torch.no_grad():
        ...     _ = smoothing.amount.fill_(0.4)
        >>> smoothing(torch.tensor([1]))
        tensor([[0.1000, 0.7000, 0.1000, 0.1000]], grad_fn=...)
    """

    def __init__(self, n_classes: int, *, form: Form = "class", maximum: float = 0.5) -> None:
        super().__init__()
        check_choice(form, ("scalar", "class", "matrix"), where="Smoothing", name="form")
        if not 0 < maximum <= 1:
            raise ValueError(f"Smoothing: `maximum` must lie in (0, 1], got {maximum}. The paper takes 0.5.")
        self.n_classes = n_classes
        self.form = form
        self.maximum = maximum
        self.amount = nn.Parameter(torch.zeros(1 if form == "scalar" else n_classes))
        if form == "matrix":
            self.spread = nn.Parameter(torch.zeros(n_classes, n_classes))

    def forward(self, labels: Tensor) -> Tensor:
        """Return soft targets ``(n, k)``."""
        amount = self.amount[labels if self.form != "scalar" else torch.zeros_like(labels)][:, None]
        hard = one_hot(labels, self.n_classes).to(self.amount.dtype)
        return (1 - amount) * hard + amount * self._elsewhere(labels)

    def _elsewhere(self, labels: Tensor) -> Tensor:
        """Where the amount goes: one row per label that sums to one."""
        if self.form != "matrix":
            return self.amount.new_full((len(labels), self.n_classes), 1 / self.n_classes)
        others = 1 - torch.eye(self.n_classes).to(self.spread)
        rows = (self.spread + _EPSILON) * others
        return (rows / rows.sum(1, keepdim=True))[labels]

    @torch.no_grad()
    def project(self) -> None:
        """Put amounts back into ``[0, maximum]``, and the matrix above zero."""
        self.amount.clamp_(0, self.maximum)
        if self.form == "matrix":
            self.spread.clamp_(min=0)


@final
class MetaLabelSmoothing(Objective):
    r"""Train a network with label smoothing whose amounts are learned for calibration.

    Each step looks one step ahead: it moves a copy of the head with the current amounts, measures a differentiable
    calibration error of the moved head on held-out samples, and improves the amounts by the gradient through that
    step. Then the network takes its own step with the improved amounts.

    .. math::
        \min_\omega \mathrm{CE}(\theta'(\omega)) + w \, \mathrm{DECE}(\theta'(\omega)), \qquad
        \theta'(\omega) = \theta - \eta \nabla_\theta \mathrm{CE}(p_\theta, t_\omega(y))

    Args:
        network: With a body and a head, as ``equipoise.models.Network``.
        held_out: Batches to measure calibration on; of ``tune``, or better of a part of it that does not also
            choose the best epoch.
        form: One amount (``"scalar"``), one per class (``"class"``), or a matrix of classes (``"matrix"``).
        maximum: Largest amount.
        outer_loss: The calibration error; the paper's DECE with 15 bins by default.
        outer_weight: Its weight *w* beside the cross-entropy.
        inner_reduction: Whether the step ahead is on the sum of the losses, as in the authors' code, or the mean.
        recipe: How the network is moved.
        smoothing_recipe: How the amounts are moved.

    Example:
        >>> from equipoise.models import mlp
        >>> from equipoise.training import Loader
        >>> tune = Loader([(torch.zeros(2, 3), torch.tensor([0, 1]))])
        >>> MetaLabelSmoothing(mlp(2, 3, hidden=(4,)), tune).network().n_classes
        2

    Reference:
        Bohdal, Yang and Hospedales (2021), Meta-calibration: learning of model calibration using differentiable
        expected calibration error.

    Differs from the authors' code:
        Their outer backward pass leaves gradients in the network that its next step adds to its own, so the network
        is trained on the held-out samples too; here none reaches it, nor do running statistics. Elementwise L2 on
        the head, their fourth hyper-parameter, is not offered.
    """

    def __init__(
        self,
        network: nn.Module,
        held_out: Source,
        *,
        form: Form = "class",
        maximum: float = 0.5,
        outer_loss: nn.Module | None = None,
        outer_weight: float = 0.5,
        inner_reduction: Literal["mean", "sum"] = "sum",
        recipe: Recipe | None = None,
        smoothing_recipe: Recipe | None = None,
    ) -> None:
        super().__init__()
        check_choice(inner_reduction, ("mean", "sum"), where="MetaLabelSmoothing", name="inner_reduction")
        parts = FeaturesAndLogits(network)
        n_classes = max(2, int(parts.head.out_features))  # type: ignore[arg-type]
        smoothing = Smoothing(n_classes, form=form, maximum=maximum)
        self.learner = Learner(parts, recipe=recipe)
        self.smoothing = Learner(
            smoothing, recipe=smoothing_recipe or Recipe(optimizer=Optimizer("Adam", lr=1e-3))
        )
        self.held_out = Cycle(held_out)
        self.outer_loss = DifferentiableECE() if outer_loss is None else outer_loss
        self.outer_weight = outer_weight
        self.inner_reduction = inner_reduction

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        *,
        form: Form = "class",
        maximum: float = 0.5,
        outer_weight: float = 0.5,
        inner_reduction: Literal["mean", "sum"] = "mean",
        smoothing_lr: float = 1e-3,
    ) -> MetaLabelSmoothing:
        """Build it from what an experiment has.

        Args:
            parts: Networks, recipe and held-out batches.
            smoothing_lr: Learning rate of the amounts of smoothing, which Adam trains.

        Example:
            >>> from equipoise.models import mlp
            >>> from equipoise.training import Loader
            >>> held_out = Loader([(torch.eye(2), torch.tensor([0, 1]))])
            >>> parts = Parts(make_network=lambda: mlp(n_classes=2, n_inputs=2), held_out=held_out)
            >>> MetaLabelSmoothing.from_parts(parts, smoothing_lr=0.01).smoothing.lr
            0.01
        """
        return cls(
            parts.network("meta_label_smoothing"),
            parts.only_held_out("meta_label_smoothing"),
            form=form,
            maximum=maximum,
            outer_weight=outer_weight,
            inner_reduction=inner_reduction,
            recipe=parts.recipe,
            smoothing_recipe=Recipe(optimizer=Optimizer("Adam", lr=smoothing_lr)),
        )

    def step(self, batch: BatchLike) -> Step:
        """Improve the amounts, then descend with them on the same logits."""
        features, logits = self.learner(batch.inputs)
        outer = self._improve_amounts(batch, features.detach())
        everyone, labels = gather(logits, batch.targets)
        smoothing = self.smoothing.network
        with torch.no_grad():
            targets = smoothing(labels)
        loss = cross_entropy(everyone, targets.to(everyone))
        self.learner.step(loss, n_samples=len(labels))
        amount = smoothing.amount.detach()
        scalars = {"loss": loss.detach(), "outer_loss": outer}
        scalars |= {"smoothing_mean": amount.mean(), "smoothing_max": amount.max()}
        return Step(logits.detach(), scalars)

    def _improve_amounts(self, batch: BatchLike, features: Tensor) -> Tensor:
        targets, seen = gather(self.smoothing(batch.targets), features)

        def inner_loss(logits: Tensor) -> Tensor:
            return cross_entropy(logits, targets.to(logits), reduction=self.inner_reduction)

        logits, labels = head_ahead(self.learner, seen, inner_loss, self.held_out)
        outer: Tensor = cross_entropy(logits, labels) + self.outer_weight * self.outer_loss(logits, labels)
        self.smoothing.step(outer, n_samples=len(labels))
        self.smoothing.network.project()
        return outer.detach()

    def network(self) -> nn.Module:
        """Return the network; the amounts are needed for training only."""
        return self.learner.network.network
