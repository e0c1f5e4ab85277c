"""Gamma-net: a small network learns the focal gamma of every sample from the calibration it leads to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, final

import torch
from torch import Tensor, nn

from equipoise.core.names import check_choice
from equipoise.losses.focal import focal_loss
from equipoise.losses.sece import SmoothECE
from equipoise.objectives.bilevel import (
    FeaturesAndLogits,
    held_out_logits,
    look_ahead,
    moved_there,
    pure_forward,
)
from equipoise.objectives.gamma_sight import GammaSight
from equipoise.objectives.parts import Parts
from equipoise.training import BatchLike, Cycle, Learner, Objective, Optimizer, Recipe, Source, Step, gather
from equipoise.training.network_call import as_logits

__all__ = ["GammaMap", "GammaNet"]

Positive = Literal["softplus", "abs", "exp"]


@final
class GammaMap(nn.Module):
    r"""From features to one gamma per sample: :math:`\gamma = \mathrm{softplus}(\mathrm{MLP}(h) / \tau)`.

    Args:
        n_features: Numbers per sample that the head sees.
        hidden: Width of the hidden layer.
        temperature: Larger keeps gammas closer together (*τ*).
        positive: What makes gammas positive.
        start: Every sample's gamma before the first step.

    Example:
        >>> GammaMap(4)(torch.randn(2, 4))
        tensor([1., 1.], grad_fn=...)
    """

    def __init__(
        self,
        n_features: int,
        *,
        hidden: int = 128,
        temperature: float = 1.0,
        positive: Positive = "softplus",
        start: float = 1.0,
    ) -> None:
        super().__init__()
        check_choice(positive, ("softplus", "abs", "exp"), where="GammaMap", name="positive")
        for name, value in (("temperature", temperature), ("start", start)):
            if not value > 0:
                raise ValueError(f"GammaMap: `{name}` must be above 0, got {value}. 1 is the default.")
        last = nn.Linear(hidden, 1)
        nn.init.zeros_(last.weight)
        inverse = {"softplus": math.log(math.expm1(start)), "abs": start, "exp": math.log(start)}
        nn.init.constant_(last.bias, temperature * inverse[positive])
        self.layers = nn.Sequential(nn.Linear(n_features, hidden), nn.ReLU(), last)
        self.temperature = temperature
        self.positive = positive

    def forward(self, features: Tensor) -> Tensor:
        """Return one gamma per sample."""
        raw: Tensor = self.layers(features).squeeze(-1) / self.temperature
        if self.positive == "softplus":
            return nn.functional.softplus(raw)
        return raw.abs() if self.positive == "abs" else raw.exp()


@final
class GammaNet(Objective):
    r"""Train a network with a focal loss whose gamma, sample by sample, is learned for calibration.

    The network takes its step with the current gammas held constant. Then the smooth calibration error of the
    network as it now is, measured on held-out samples, moves the gamma-network, by the gradient through that step.

    .. math::
        \min_\phi \mathrm{SECE}(\theta'(\phi)), \qquad
        \theta'(\phi) = \theta - \eta \nabla_\theta \frac{1}{n} \sum_i -(1 - p_{y_i})^{\gamma_\phi(h_i)} \log p_{y_i}

    Args:
        network: With a body and a head, as ``equipoise.models.Network``.
        held_out: Batches to measure calibration on; of ``tune``, or better of a part of it that does not also
            choose the best epoch.
        hidden: Width of the gamma-network's hidden layer.
        temperature: Of the gamma-network (*τ*); larger keeps gammas closer together.
        positive: What makes gammas positive.
        start: Every gamma before the first step.
        sees: What the gamma-network sees of a sample: ``"features"``, those of the last layer but one, as in the
            paper; the name of another layer, such as ``"body.layer2"``, averaged over places; ``"random"``, what the
            network made of the sample before it was trained; or ``"noise"``, nothing of it at all.
        outer_loss: What the gamma-network is trained on; smooth calibration error with bandwidth 0.01 by default.
        ce_weight: Weight of the cross-entropy on held-out samples beside it.
        order: ``"network_first"`` as in the paper; ``"gammas_first"`` looks a step ahead, improves the gammas by it,
            and only then takes the step with them, as bilevel loops in general do.
        inner: Whether the step that is differentiated moves the ``"head"`` only, or ``"all"`` weights,
            which costs a second pass.
        inner_reduction: Whether that step is on the mean or the sum of the focal losses.
        recipe: How the network is moved.
        gamma_recipe: How the gamma-network is moved.

    Example:
        >>> from equipoise.models import mlp
        >>> from equipoise.training import Loader
        >>> tune = Loader([(torch.zeros(2, 3), torch.tensor([0, 1]))])
        >>> GammaNet(mlp(2, 3, hidden=(4,)), tune).network().n_features
        4

    Reference:
        Wang and Golebiowski (2024), Towards unbiased calibration using meta-regularization.

    Reconstruction:
        No code is public, and layer sizes, positivity map, temperature, optimizer and the weight of the
        cross-entropy are not known; the loop follows Bohdal et al. (2021), whose code the authors extend. The
        held-out samples leave no trace in the network: no gradient, no running statistics.
    """

    def __init__(
        self,
        network: nn.Module,
        held_out: Source,
        *,
        hidden: int = 128,
        temperature: float = 1.0,
        positive: Positive = "softplus",
        start: float = 1.0,
        sees: str = "features",
        outer_loss: nn.Module | None = None,
        ce_weight: float = 0.0,
        order: Literal["network_first", "gammas_first"] = "network_first",
        inner: Literal["head", "all"] = "head",
        inner_reduction: Literal["mean", "sum"] = "mean",
        recipe: Recipe | None = None,
        gamma_recipe: Recipe | None = None,
    ) -> None:
        super().__init__()
        check_choice(order, ("network_first", "gammas_first"), where="GammaNet", name="order")
        check_choice(inner, ("head", "all"), where="GammaNet", name="inner")
        check_choice(inner_reduction, ("mean", "sum"), where="GammaNet", name="inner_reduction")
        parts = FeaturesAndLogits(network)
        self.sight = GammaSight(sees, parts, held_out)
        gammas = GammaMap(
            self.sight.n_features,
            hidden=hidden,
            temperature=temperature,
            positive=positive,
            start=start,
        )
        self.learner = Learner(parts, recipe=recipe)
        self.gammas = Learner(gammas, recipe=gamma_recipe or Recipe(optimizer=Optimizer("Adam", lr=1e-3)))
        self.held_out = Cycle(held_out)
        self.outer_loss = SmoothECE() if outer_loss is None else outer_loss
        self.ce_weight = ce_weight
        self.order = order
        self.inner = inner
        self.inner_reduction = inner_reduction

    @classmethod
    def from_parts(
        cls,
        parts: Parts,
        *,
        hidden: int = 128,
        temperature: float = 1.0,
        positive: Positive = "softplus",
        start: float = 1.0,
        sees: str = "features",
        bandwidth: float = 0.01,
        ce_weight: float = 0.0,
        order: Literal["network_first", "gammas_first"] = "network_first",
        inner: Literal["head", "all"] = "head",
        inner_reduction: Literal["mean", "sum"] = "mean",
        gamma_lr: float = 1e-3,
    ) -> GammaNet:
        """Build it from what an experiment has.

        Args:
            parts: Networks, recipe and held-out batches.
            bandwidth: Bandwidth of the smooth calibration error that the gamma-network is trained on.
            gamma_lr: Learning rate of the gamma-network, which Adam trains.

        Example:
            >>> from equipoise.models import mlp
            >>> from equipoise.training import Loader
            >>> held_out = Loader([(torch.eye(2), torch.tensor([0, 1]))])
            >>> parts = Parts(make_network=lambda: mlp(n_classes=2, n_inputs=2), held_out=held_out)
            >>> GammaNet.from_parts(parts, bandwidth=0.05).outer_loss.bandwidth
            0.05
        """
        return cls(
            parts.network("gamma_net"),
            parts.only_held_out("gamma_net"),
            hidden=hidden,
            temperature=temperature,
            positive=positive,
            start=start,
            sees=sees,
            outer_loss=SmoothECE(bandwidth=bandwidth),
            ce_weight=ce_weight,
            order=order,
            inner=inner,
            inner_reduction=inner_reduction,
            recipe=parts.recipe,
            gamma_recipe=Recipe(optimizer=Optimizer("Adam", lr=gamma_lr)),
        )

    def step(self, batch: BatchLike) -> Step:
        """Step the network with its gammas, and the gamma-network with what came of it."""
        features, logits = self.learner(batch.inputs)
        features = features.detach()
        seen = self.sight(batch.inputs, features, self.learner.fabric)
        gamma = self.gammas(seen)
        ahead = self._look_ahead(batch, features, gamma)
        if self.order == "gammas_first":
            outer = self._improve_gammas(ahead)
            with torch.no_grad():
                gamma = self.gammas(seen)
        loss, gamma = self._step_network(logits, batch, gamma.detach())
        if self.order == "network_first":
            outer = self._improve_gammas(moved_there(self._moved(), ahead))
        scalars = {"loss": loss, "outer_loss": outer}
        scalars |= {"gamma_mean": gamma.mean(), "gamma_min": gamma.min(), "gamma_max": gamma.max()}
        return Step(logits.detach(), scalars)

    def _step_network(self, logits: Tensor, batch: BatchLike, gamma: Tensor) -> tuple[Tensor, Tensor]:
        """Step the network; return its loss, and the gammas of all processes."""
        everyone, targets, gammas = gather(logits, batch.targets, gamma)
        loss = focal_loss(everyone, targets, gamma=gammas).mean()
        self.learner.step(loss, n_samples=len(targets))
        return loss.detach(), gammas

    def _moved(self) -> nn.Module:
        """What the differentiated step moves: the head, or the whole network."""
        return self.learner.network.head if self.inner == "head" else self.network()

    def _look_ahead(self, batch: BatchLike, features: Tensor, gamma: Tensor) -> dict[str, Tensor]:
        """Return the weights after a plain step, as a function of the gammas."""
        gammas, targets, seen = gather(gamma, batch.targets, features)

        def inner_loss(logits: Tensor) -> Tensor:
            values = focal_loss(as_logits(logits), targets, gamma=gammas)
            return values.mean() if self.inner_reduction == "mean" else values.sum()

        if self.inner == "all" and self.learner.fabric.world_size > 1:
            raise ValueError(
                "GammaNet: `inner` must be 'head' on several processes, got 'all'. The step ahead of all weights "
                "would need every process's inputs."
            )
        inputs = seen if self.inner == "head" else batch.inputs
        return look_ahead(self._moved(), inputs, inner_loss, lr=self.learner.lr)

    def _improve_gammas(self, weights: Mapping[str, Tensor]) -> Tensor:
        """Step the gamma-network on the held-out calibration error of the network with such weights."""
        if self.inner == "head":
            logits, labels = held_out_logits(self.learner, weights, self.held_out)
        else:
            meta = self.held_out.next_batch(self.learner.fabric)
            logits, labels = as_logits(pure_forward(self.network(), weights, meta.inputs)), meta.targets
        outer: Tensor = self.outer_loss(logits, labels)
        if self.ce_weight:
            outer = outer + self.ce_weight * nn.functional.cross_entropy(logits, labels)
        self.gammas.step(outer, n_samples=len(labels))
        return outer.detach()

    def network(self) -> nn.Module:
        """Return the network; the gamma-network is needed for training only."""
        return self.learner.network.network
