"""How hard a loss pulls, by how sure the network already is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.core.errors import needs

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["GradientWeight", "gradient_weight"]


@dataclass(frozen=True, eq=False)
class GradientWeight:
    """The pull of a loss on the true class's logit.

    Attributes:
        confidence: Probability of the true class.
        weight: Minus the derivative of the loss by the true class's logit; cross-entropy's is ``1 - confidence``.
    """

    confidence: NDArray[np.float64]
    weight: NDArray[np.float64]


def gradient_weight(
    loss: Callable[[Tensor, Tensor], Tensor], *, confidence: ArrayLike | None = None, n_classes: int = 10
) -> GradientWeight:
    """Differentiate a loss where the true class has a given probability and the others share the rest evenly.

    Below zero the loss pushes confidence down: the sample is surer than the loss wants it.

    Args:
        loss: A function or module of (logits, labels), per sample, summed or averaged; it is asked one row at a time.
        confidence: Probabilities of the true class, between 0 and 1; by default 99 from 0.01 to 0.99.
        n_classes: How many classes.

    Returns:
        The pull at each confidence.

    Example:
        >>> import torch
        >>> gradient_weight(torch.nn.functional.cross_entropy, confidence=[0.25, 0.75]).weight.round(6).tolist()
        [0.75, 0.25]
    """
    values = np.linspace(0.01, 0.99, 99) if confidence is None else np.asarray(confidence, dtype=np.float64)
    if values.ndim != 1 or not ((values > 0) & (values < 1)).all():
        raise ValueError(
            f"gradient_weight: `confidence` must be numbers between 0 and 1, got {confidence!r}. "
            "At the ends the logits are infinite."
        )
    return GradientWeight(values, np.array([_pull(loss, value, n_classes) for value in values.tolist()]))


def _pull(loss: Callable[[Tensor, Tensor], Tensor], confidence: float, n_classes: int) -> float:
    with needs("torch", extra="torch", purpose="differentiate a loss"):
        import torch

    probs = torch.full((1, n_classes), (1 - confidence) / (n_classes - 1), dtype=torch.float64)
    probs[0, 0] = confidence
    # Losses that look at the size of logits are asked where a network's usually lie: around zero.
    logits = (probs.log() - probs.log().mean()).requires_grad_()
    (slope,) = torch.autograd.grad(loss(logits, torch.zeros(1, dtype=torch.int64)).sum(), logits)
    return -float(slope[0, 0])
