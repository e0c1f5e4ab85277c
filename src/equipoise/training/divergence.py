"""When the loss is no number any more: a sentence that says when, where and why."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from equipoise.core.errors import DivergenceError
from equipoise.training.batch_source import BatchLike
from equipoise.training.learner import Learner

__all__ = ["divergence_error"]


def divergence_error(
    *, epoch: int, number: int, batch: BatchLike | None, learner: Learner[Any] | None
) -> DivergenceError:
    """Return the error for a loss that is not finite.

    Args:
        epoch: The epoch, from 0.
        number: The batch in which it happened, from 0.
        batch: That batch, if it is still at hand.
        learner: What moved the network.

    Example:
        >>> print(divergence_error(epoch=2, number=7, batch=None, learner=None))
        fit: the loss stopped being finite in epoch 2, batch 7 (counted from 0). ...
    """
    return DivergenceError(
        f"fit: the loss stopped being finite in epoch {epoch}, batch {number} (counted from 0). "
        f"{_cause(epoch, number, batch, learner)} The last checkpoint is from before."
    )


def _cause(epoch: int, number: int, batch: BatchLike | None, learner: Learner[Any] | None) -> str:
    if batch is not None and isinstance(batch.inputs, Tensor) and not torch.isfinite(batch.inputs).all():
        return "The inputs of this batch hold NaN or infinity: repair or drop those samples."
    if learner is None:
        return "Likely cause: too large steps. Lower the learning rate."
    if learner.fabric.strategy.precision.precision == "16-mixed":
        return 'Likely cause: float16 overflowed. Use precision="bf16-mixed" or "32-true".'
    if epoch == number == 0:
        return (
            "It is the first batch, so no step is to blame: look at the scale of the inputs and at the loss."
        )
    if learner.recipe.clip_norm is None:
        return (
            f"Likely cause: steps too large at learning rate {learner.lr:g} without clipping. Lower the rate, "
            "warm it up, or set clip_norm=2."
        )
    return f"Likely cause: steps too large at learning rate {learner.lr:g}. Lower the rate, or warm it up."
