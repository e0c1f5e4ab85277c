"""The knobs of one network's training, as small frozen records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, final

import torch
from torch import nn

from equipoise.core.names import check_choice
from equipoise.training.schedules import Constant, MultiStep, Schedule

__all__ = ["FOCAL_RECIPE", "SGD", "Adam", "AdamW", "Optimizer", "Recipe"]


@dataclass(frozen=True, kw_only=True)
class Optimizer(ABC):
    """Which optimizer moves the weights.

    Attributes:
        rate: The first learning rate.
        weight_decay: Pull of every weight towards zero.

    Example:
        >>> isinstance(AdamW(), Optimizer)
        True
    """

    rate: float
    weight_decay: float

    @abstractmethod
    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's optimizer for some weights."""


@final
@dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """Stochastic gradient descent; the defaults are those of the CIFAR recipes of the calibration papers.

    Attributes:
        rate: The first learning rate.
        weight_decay: Pull of every weight towards zero.
        momentum: Share of the last step that is kept.
        nesterov: Look ahead along the momentum.

    Example:
        >>> SGD(rate=0.01).make([nn.Parameter(torch.zeros(1))]).defaults["momentum"]
        0.9
    """

    rate: float = 0.1
    weight_decay: float = 5e-4
    momentum: float = 0.9
    nesterov: bool = False

    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's SGD."""
        return torch.optim.SGD(
            parameters,
            lr=self.rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.nesterov,
        )


@final
@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """Adam, with the L2 penalty in the gradient if there is one.

    Attributes:
        rate: The first learning rate.
        weight_decay: Strength of the L2 penalty.
        betas: Memory of the two running means.

    Example:
        >>> Adam().make([nn.Parameter(torch.zeros(1))]).defaults["lr"]
        0.001
    """

    rate: float = 1e-3
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)

    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's Adam."""
        return torch.optim.Adam(parameters, lr=self.rate, betas=self.betas, weight_decay=self.weight_decay)


@final
@dataclass(frozen=True, kw_only=True)
class AdamW(Optimizer):
    """Adam with the weight decay apart from the gradient; the defaults are those of the transformers' recipes.

    Attributes:
        rate: The first learning rate.
        weight_decay: Pull of every weight towards zero.
        betas: Memory of the two running means.

    Example:
        >>> AdamW().make([nn.Parameter(torch.zeros(1))]).defaults["weight_decay"]
        0.05
    """

    rate: float = 1e-3
    weight_decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.999)

    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's AdamW."""
        return torch.optim.AdamW(parameters, lr=self.rate, betas=self.betas, weight_decay=self.weight_decay)


@final
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one network is moved, whatever the loss.

    Published recipes differ in the last two knobs, and with them in the method: a summed loss whose gradient
    is clipped takes steps of nearly constant length, a mean loss without clipping does not.

    Attributes:
        optimizer: What turns gradients into steps.
        schedule: How its rate moves.
        clip_norm: Largest norm of the whole gradient; None does not clip.
        reduction: ``"mean"`` descends on the loss as it is, which by convention is a mean over the batch;
            ``"sum"`` on the loss times the size of the batch.
        accumulate: Batches whose gradients make one step: their mean, or their sum under ``"sum"``.

    Example:
        >>> Recipe(optimizer=Adam(), clip_norm=2.0).reduction
        'mean'
    """

    optimizer: Optimizer = field(default_factory=SGD)
    schedule: Schedule = field(default_factory=Constant)
    clip_norm: float | None = None
    reduction: Literal["mean", "sum"] = "mean"
    accumulate: int = 1

    def __post_init__(self) -> None:
        check_choice(self.reduction, ("mean", "sum"), where="Recipe", name="reduction")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(
                f"Recipe: `clip_norm` must be above 0, got {self.clip_norm}. Pass None to leave gradients alone."
            )
        if self.accumulate < 1:
            raise ValueError(
                f"Recipe: `accumulate` must be at least 1, got {self.accumulate}. 1 steps every batch."
            )


#: The recipe of the focal-calibration repository and of all that follow it, for CIFAR: 350 epochs of batch 128
#: on summed losses, clipped.
FOCAL_RECIPE = Recipe(schedule=MultiStep((150, 250)), clip_norm=2.0, reduction="sum")
