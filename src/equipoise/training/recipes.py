"""How one network is trained, as small immutable records: optimizer, schedule, clipping."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

import torch
from torch import nn

from equipoise.core.names import check_choice, nearest
from equipoise.core.read_only import ReadOnly
from equipoise.training.schedules import Constant, MultiStep, Schedule

__all__ = ["FOCAL_RECIPE", "Optimizer", "Recipe"]


@final
@dataclass(frozen=True)
class Optimizer:
    """An optimizer of ``torch.optim`` by name, with its options.

    Attributes:
        name: Name of the class, such as ``"SGD"``, ``"AdamW"`` or ``"NAdam"``.
        lr: Initial learning rate; the schedule multiplies it.
        options: Other keyword arguments of the class, such as ``{"momentum": 0.9, "weight_decay": 5e-4}``.

    Raises:
        ValueError: If there is no such class or option, or the class needs a closure.

    Example:
        >>> Optimizer("SGD", lr=0.1, options={"momentum": 0.9}).make([nn.Parameter(torch.zeros(1))]).defaults["lr"]
        0.1
        >>> Optimizer("adam", lr=1e-3)
        Traceback (most recent call last):
        ...
        ValueError: Optimizer: torch.optim has no optimizer 'adam'. Did you mean 'Adam'?
    """

    name: str
    lr: float = field(kw_only=True)
    options: Mapping[str, Any] = field(default_factory=ReadOnly, kw_only=True)

    def __post_init__(self) -> None:
        optimizers = {
            name: value
            for name, value in vars(torch.optim).items()
            if isinstance(value, type) and issubclass(value, torch.optim.Optimizer) and name != "Optimizer"
        }
        if self.name not in optimizers:
            guess = nearest(self.name, optimizers)
            remedy = f"Did you mean {guess!r}?" if guess else f"It has {', '.join(sorted(optimizers))}."
            raise ValueError(f"Optimizer: torch.optim has no optimizer {self.name!r}. {remedy}")
        made = optimizers[self.name]
        if inspect.signature(made.step).parameters["closure"].default is inspect.Parameter.empty:
            raise ValueError(
                f"Optimizer: {self.name} evaluates the loss several times per step. Use another one."
            )
        known = [key for key in inspect.signature(made).parameters if key not in ("params", "lr")]
        for key in self.options:
            if key not in known:
                guess = nearest(key, known)
                remedy = f"Did you mean {guess!r}?" if guess else f"It has {', '.join(known)}."
                raise ValueError(f"Optimizer: {self.name} has no option {key!r}. {remedy}")

    def make(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's optimizer for some weights."""
        made: torch.optim.Optimizer = getattr(torch.optim, self.name)(parameters, lr=self.lr, **self.options)
        return made


def _default_optimizer() -> Optimizer:
    """Return the SGD of the calibration papers' CIFAR recipes."""
    return Optimizer("SGD", lr=0.1, options={"momentum": 0.9, "weight_decay": 5e-4})


@final
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one network is trained, whatever the loss.

    Published recipes differ in clipping and reduction, and with them in the method: a summed loss whose gradient
    is clipped takes steps of nearly constant length, a mean loss without clipping does not.

    Attributes:
        optimizer: The optimizer; SGD with the momentum and weight decay of the CIFAR recipes by default.
        schedule: The learning rate over time.
        clip_norm: Largest norm of the whole gradient; None does not clip.
        reduction: ``"mean"`` descends on the loss as it is, which by convention is a mean over the batch;
            ``"sum"`` on the loss times the size of the batch.
        accumulate: Batches whose gradients make one step: their mean, or their sum under ``"sum"``.
        sam: Distance of sharpness-aware minimization, 0.05 in the paper; 0 takes plain steps. It doubles the cost of
            a step. Formula in :func:`~equipoise.training.sam_perturbation`.
        sam_adaptive: Measure that distance relative to each weight: ASAM, with ``sam`` about 2.

    Example:
        >>> Recipe(optimizer=Optimizer("Adam", lr=1e-3), clip_norm=2.0).reduction
        'mean'
    """

    optimizer: Optimizer = field(default_factory=_default_optimizer)
    schedule: Schedule = field(default_factory=Constant)
    clip_norm: float | None = None
    reduction: Literal["mean", "sum"] = "mean"
    accumulate: int = 1
    sam: float = 0.0
    sam_adaptive: bool = False

    def __post_init__(self) -> None:
        check_choice(self.reduction, ("mean", "sum"), where="Recipe", name="reduction")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(
                f"Recipe: `clip_norm` must be above 0, got {self.clip_norm}. Pass None to leave gradients alone."
            )
        if not self.sam >= 0:
            raise ValueError(
                f"Recipe: `sam` must be at least 0, got {self.sam}. The paper uses 0.05; 0 is off."
            )
        if self.sam and self.accumulate > 1:
            raise ValueError(
                "Recipe: `sam` needs the gradient of a whole step before its second pass, so it cannot be combined "
                "with `accumulate`. Use larger batches."
            )
        if self.accumulate < 1:
            raise ValueError(
                f"Recipe: `accumulate` must be at least 1, got {self.accumulate}. 1 steps every batch."
            )


#: The recipe of the focal-calibration repository and of all that follow it, for CIFAR: 350 epochs of batch 128
#: on summed losses, clipped.
FOCAL_RECIPE = Recipe(schedule=MultiStep((150, 250)), clip_norm=2.0, reduction="sum")
