"""Objectives from parts: what an experiment knows (networks, a loss, a recipe, data) put together by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, final

from torch import Tensor, nn

from equipoise.core.names import look_up
from equipoise.losses.cals_alm import PenaltyName
from equipoise.losses.options import OverClasses
from equipoise.losses.sece import SmoothECE
from equipoise.objectives.deep_ensemble import DeepEnsemble
from equipoise.objectives.differentiated_mutual_learning import DifferentiatedMutualLearning
from equipoise.objectives.gamma_net import GammaNet, Positive
from equipoise.objectives.meta_label_smoothing import Form, MetaLabelSmoothing
from equipoise.objectives.mutual_learning import MutualLearning
from equipoise.objectives.pruned import Pruned
from equipoise.objectives.sample_adaptive import SampleAdaptive
from equipoise.objectives.supervised import Supervised
from equipoise.objectives.views import VIEWS
from equipoise.training import SGD, Adam, Inputs, Recipe, Source

__all__ = [
    "Parts",
    "make_deep_ensemble",
    "make_differentiated_mutual_learning",
    "make_gamma_net",
    "make_meta_label_smoothing",
    "make_mutual_learning",
    "make_pruned",
    "make_sample_adaptive",
    "make_supervised",
]


@final
@dataclass(frozen=True, kw_only=True)
class Parts:
    """What an experiment hands to the factory of an objective.

    Attributes:
        make_network: Gives a freshly initialised network; called once per network wanted.
        make_auxiliary: The same for networks that only help; None takes ``make_network``.
        make_loss: Gives a fresh loss; None takes cross-entropy. Objectives that bring their own loss refuse it.
        recipe: How networks are moved.
        held_out: Batches for objectives that measure calibration as they train.
        n_samples: Length of the dataset, for objectives that remember samples.
        rows: Numbers of its training samples; None takes all.
        n_classes: Number of classes, for objectives that keep numbers for each.

    Example:
        >>> parts = Parts(make_network=lambda: nn.Linear(2, 3))
        >>> type(make_mutual_learning(parts, n_networks=3)).__name__
        'MutualLearning'
    """

    make_network: Callable[[], nn.Module]
    make_auxiliary: Callable[[], nn.Module] | None = None
    make_loss: Callable[[], nn.Module] | None = None
    recipe: Recipe = field(default_factory=Recipe)
    held_out: Source | None = None
    n_samples: int | None = None
    rows: Tensor | None = None
    n_classes: int | None = None

    def loss(self) -> nn.Module:
        """Return a fresh loss."""
        return nn.CrossEntropyLoss() if self.make_loss is None else self.make_loss()

    def network(self, where: str) -> nn.Module:
        """Return the one network of an objective that has no use for another.

        Raises:
            ValueError: If an auxiliary is given, which would be ignored.
        """
        if self.make_auxiliary is not None:
            raise ValueError(
                f"{where}: it has no auxiliary network, but one is given. Leave the auxiliary out."
            )
        return self.make_network()

    def only_held_out(self, where: str) -> Source:
        """Return the held-out batches of an objective that has a loss of its own.

        Raises:
            ValueError: If there are none, or another loss is given.
        """
        if self.make_loss is not None:
            raise ValueError(f"{where}: it brings its own loss, but another is given. Leave the loss out.")
        if self.held_out is None:
            raise ValueError(f"{where}: it measures calibration on held-out batches. Give a `tune` split.")
        return self.held_out


def make_supervised(parts: Parts) -> Supervised:
    """Return one network with one loss.

    Args:
        parts: What the experiment brings: networks, loss, recipe, held-out batches.

    Example:
        >>> objective = make_supervised(Parts(make_network=lambda: nn.Linear(2, 3)))
        >>> type(objective).__name__
        'Supervised'
    """
    return Supervised(parts.network("supervised"), parts.loss(), recipe=parts.recipe)


def make_mutual_learning(
    parts: Parts,
    *,
    n_networks: int = 2,
    weight: float = 1.0,
    peers: Literal["mean", "sum"] = "mean",
    refresh: bool = True,
) -> MutualLearning:
    """Return several networks that teach each other: of one kind, or the first beside auxiliaries of another.

    Args:
        parts: What the experiment brings: networks, loss, recipe, held-out batches.
        n_networks: How many learn together.
        weight: As in :class:`MutualLearning`.
        peers: As in :class:`MutualLearning`.
        refresh: As in :class:`MutualLearning`.

    Example:
        >>> objective = make_mutual_learning(Parts(make_network=lambda: nn.Linear(2, 3)), n_networks=3)
        >>> type(objective).__name__
        'MutualLearning'
    """
    make_other = parts.make_auxiliary or parts.make_network
    networks = [parts.make_network(), *(make_other() for _ in range(n_networks - 1))]
    return MutualLearning(
        networks, loss=parts.loss(), weight=weight, peers=peers, refresh=refresh, recipe=parts.recipe
    )


def make_differentiated_mutual_learning(
    parts: Parts,
    *,
    n_auxiliaries: int = 1,
    auxiliary_rate: float = 0.01,
    weight: float = 1.0,
    beta: float | None = None,
    peers: Literal["mean", "sum"] = "mean",
    augment: str | Callable[[Inputs], Inputs] | None = None,
) -> DifferentiatedMutualLearning:
    """Return a primary with auxiliaries that learn from it at a constant rate.

    Args:
        parts: What the experiment brings: networks, loss, recipe, held-out batches.
        n_auxiliaries: How many follow the primary.
        auxiliary_rate: Their constant learning rate.
        weight: As in :class:`DifferentiatedMutualLearning`.
        beta: As in :class:`DifferentiatedMutualLearning`.
        peers: As in :class:`DifferentiatedMutualLearning`.
        augment: A function of inputs, or the name of one: ``"flip"``, ``"shift"``, ``"noise"``.

    Example:
        >>> objective = make_differentiated_mutual_learning(Parts(make_network=lambda: nn.Linear(2, 3)))
        >>> type(objective).__name__
        'DifferentiatedMutualLearning'
    """
    make_auxiliary = parts.make_auxiliary or parts.make_network
    return DifferentiatedMutualLearning(
        parts.make_network(),
        [make_auxiliary() for _ in range(n_auxiliaries)],
        loss=parts.loss(),
        weight=weight,
        beta=beta,
        peers=peers,
        augment=look_up(augment, VIEWS, what="augmentation") if isinstance(augment, str) else augment,
        recipe=parts.recipe,
        auxiliary_recipe=Recipe(optimizer=SGD(rate=auxiliary_rate), clip_norm=parts.recipe.clip_norm),
    )


def make_deep_ensemble(parts: Parts, *, n_members: int = 5, subset: float | None = None) -> DeepEnsemble:
    """Return members of one kind, initialised apart.

    Args:
        parts: What the experiment brings: networks, loss, recipe, held-out batches.
        n_members: How many networks are averaged.
        subset: As in :class:`DeepEnsemble`.

    Example:
        >>> objective = make_deep_ensemble(Parts(make_network=lambda: nn.Linear(2, 3)), n_members=3)
        >>> type(objective).__name__
        'DeepEnsemble'
    """
    members = [make_supervised(parts) for _ in range(n_members)]
    return DeepEnsemble(members, subset=subset, n_samples=parts.n_samples, rows=parts.rows)


def make_gamma_net(
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
    gamma_rate: float = 1e-3,
) -> GammaNet:
    """Return a network whose focal gammas are learnt.

    Args:
        parts: What the experiment brings: networks, loss, recipe, held-out batches.
        hidden: As in :class:`GammaNet`.
        temperature: As in :class:`GammaNet`.
        positive: As in :class:`GammaNet`.
        start: As in :class:`GammaNet`.
        sees: As in :class:`GammaNet`.
        ce_weight: As in :class:`GammaNet`.
        order: As in :class:`GammaNet`.
        inner: As in :class:`GammaNet`.
        inner_reduction: As in :class:`GammaNet`.
        bandwidth: Of the smooth calibration error that gammas are trained on.
        gamma_rate: Learning rate of the gamma-network.

    Example:
        >>> import torch
        >>> from equipoise.models import mlp
        >>> from equipoise.training import Loader
        >>> held_out = Loader([(torch.eye(2), torch.tensor([0, 1]))])
        >>> parts = Parts(make_network=lambda: mlp(n_classes=2, n_inputs=2), held_out=held_out)
        >>> type(make_gamma_net(parts)).__name__
        'GammaNet'
    """
    return GammaNet(
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
        gamma_recipe=Recipe(optimizer=Adam(rate=gamma_rate)),
    )


def make_meta_label_smoothing(
    parts: Parts,
    *,
    form: Form = "class",
    maximum: float = 0.5,
    outer_weight: float = 0.5,
    inner_reduction: Literal["mean", "sum"] = "mean",
    smoothing_rate: float = 1e-3,
) -> MetaLabelSmoothing:
    """Return a network whose label smoothing is learnt.

    Args:
        parts: What the experiment brings: networks, loss, recipe, held-out batches.
        form: As in :class:`MetaLabelSmoothing`.
        maximum: As in :class:`MetaLabelSmoothing`.
        outer_weight: As in :class:`MetaLabelSmoothing`.
        inner_reduction: As in :class:`MetaLabelSmoothing`.
        smoothing_rate: Learning rate of the amounts of smoothing.

    Example:
        >>> import torch
        >>> from equipoise.models import mlp
        >>> from equipoise.training import Loader
        >>> held_out = Loader([(torch.eye(2), torch.tensor([0, 1]))])
        >>> parts = Parts(make_network=lambda: mlp(n_classes=2, n_inputs=2), held_out=held_out)
        >>> type(make_meta_label_smoothing(parts)).__name__
        'MetaLabelSmoothing'
    """
    return MetaLabelSmoothing(
        parts.network("meta_label_smoothing"),
        parts.only_held_out("meta_label_smoothing"),
        form=form,
        maximum=maximum,
        outer_weight=outer_weight,
        inner_reduction=inner_reduction,
        recipe=parts.recipe,
        smoothing_recipe=Recipe(optimizer=Adam(rate=smoothing_rate)),
    )


def make_pruned(parts: Parts, *, period: int, fraction: float, momentum: float) -> Pruned:
    """Return one network with one loss, on samples that grow fewer.

    Args:
        parts: What the experiment brings: networks, loss, recipe, held-out batches.
        period: As in :class:`Pruned`.
        fraction: As in :class:`Pruned`.
        momentum: As in :class:`Pruned`.

    Example:
        >>> objective = make_pruned(
        ...     Parts(make_network=lambda: nn.Linear(2, 3), n_samples=9), period=2, fraction=0.1, momentum=0.3
        ... )
        >>> type(objective).__name__
        'Pruned'
    """
    if parts.n_samples is None:
        raise ValueError("pruned: it remembers every sample. Give the length of the dataset as `n_samples`.")
    return Pruned(
        make_supervised(parts),
        n_samples=parts.n_samples,
        period=period,
        fraction=fraction,
        momentum=momentum,
        rows=parts.rows,
    )


def make_sample_adaptive(
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
    """Return one network whose margin penalty has a multiplier for every sample and class.

    Args:
        parts: What the experiment brings: networks, recipe, numbers of samples and classes.
        margin: As in :class:`SampleAdaptive`.
        penalty: As in :class:`SampleAdaptive`.
        over_classes: As in :class:`SampleAdaptive`.
        growth: As in :class:`SampleAdaptive`.
        patience: As in :class:`SampleAdaptive`.
        period: As in :class:`SampleAdaptive`.
        rho_max: As in :class:`SampleAdaptive`.

    Example:
        >>> parts = Parts(make_network=lambda: nn.Linear(2, 3), n_samples=9, n_classes=3)
        >>> type(make_sample_adaptive(parts)).__name__
        'SampleAdaptive'
    """
    if parts.make_loss is not None:
        raise ValueError("sample_adaptive: it brings its own loss, but another is given. Leave the loss out.")
    if parts.n_samples is None or parts.n_classes is None:
        raise ValueError(
            "sample_adaptive: it keeps numbers for every sample and class. Give `n_samples` and `n_classes`."
        )
    return SampleAdaptive(
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
