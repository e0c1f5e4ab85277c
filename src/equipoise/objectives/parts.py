"""Parts: networks, loss, recipe and data of an experiment, from which objectives are built by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from torch import Tensor, nn

from equipoise.training import Recipe, Source

__all__ = ["Parts"]


@final
@dataclass(frozen=True, kw_only=True)
class Parts:
    """What an experiment passes to ``from_parts`` of an objective.

    Attributes:
        make_network: Returns a freshly initialized network; called once per network.
        make_auxiliary: The same for networks that only help in training; None takes ``make_network``.
        make_loss: Returns a fresh loss; None takes cross-entropy. Objectives with a loss of their own raise if it is
            given.
        recipe: How networks are trained.
        train: Training batches, for objectives that go through them between epochs.
        epochs: Number of epochs, for objectives that change with time.
        held_out: Batches for objectives that measure calibration during training.
        n_samples: Length of the dataset, for objectives that store values per sample.
        rows: Indices of its training samples; None takes all.
        n_classes: Number of classes, for objectives that store values per class.

    Example:
        >>> from equipoise.objectives import MutualLearning
        >>> parts = Parts(make_network=lambda: nn.Linear(2, 3))
        >>> len(MutualLearning.from_parts(parts, n_networks=3).learners)
        3
    """

    make_network: Callable[[], nn.Module]
    make_auxiliary: Callable[[], nn.Module] | None = None
    make_loss: Callable[[], nn.Module] | None = None
    recipe: Recipe = field(default_factory=Recipe)
    train: Source | None = None
    epochs: int | None = None
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
