"""Which losses of an objective adapt, and whether a checkpoint would hold all that they learn."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from torch import nn

from equipoise.core.arrays import as_tensor
from equipoise.core.predictions import Predictions
from equipoise.losses.adaptive import adapts, check_saved_state, is_adaptive, is_ours, terms_of
from equipoise.training.averaging import AveragedWeights
from equipoise.training.learner import Learner
from equipoise.training.objective import Objective

__all__ = ["adaptive_losses", "check_losses", "may_lose_state"]

# Modules that hold networks and no losses.
_NETWORKS = (Learner, AveragedWeights)
# Modules that only hold others.
_HOLDERS = (Objective, nn.ModuleList, nn.ModuleDict, nn.ParameterDict)


def adaptive_losses(objective: nn.Module) -> Iterator[nn.Module]:
    """Yield the losses of an objective that have ``update(logits, labels)``, those inside of others left out.

    Example:
        >>> from equipoise.losses import AdaFocalLoss
        >>> from equipoise.objectives import Supervised
        >>> [type(loss).__name__ for loss in adaptive_losses(Supervised(nn.Linear(2, 2), AdaFocalLoss()))]
        ['AdaFocalLoss']
    """
    for child in objective.children():
        if isinstance(child, _NETWORKS):
            continue
        if not isinstance(child, Objective) and is_adaptive(child):
            yield child
        else:
            yield from adaptive_losses(child)


def check_losses(objective: Objective, predictions: Predictions) -> None:
    """Raise if a checkpoint would not hold what a loss learns.

    Args:
        objective: What will be trained.
        predictions: A few held-out rows to try an update on.

    Raises:
        TypeError: If it keeps state outside of ``state_dict``.
    """
    logits, labels = as_tensor(predictions.logits), as_tensor(predictions.labels)
    for loss in adaptive_losses(objective):
        check_saved_state(loss, logits, labels, where="fit")


def may_lose_state(objective: Objective) -> bool:
    """Whether an objective has adaptive losses that are not of this package, whose updates must be tried first.

    Raises:
        TypeError: If a loss has no ``update`` but holds one that adapts, and would never be updated.

    Example:
        >>> from equipoise.objectives import Supervised
        >>> may_lose_state(Supervised(nn.Linear(2, 2), nn.CrossEntropyLoss()))
        False
    """
    for holder in _plain_holders(objective):
        update: Any = getattr(holder, "update", None)
        if callable(update):
            raise TypeError(
                f"fit: {type(holder).__name__}.update must take (logits, labels), got "
                f"{inspect.signature(update)}. It is called with all held-out predictions after every epoch."
            )
        for name, child in holder.named_children():
            if adapts(child):
                raise TypeError(
                    f"fit: {type(holder).__name__} holds {type(child).__name__}, which adapts, but has no "
                    f"update(logits, labels) itself, so that it would never be updated. Give it one that calls "
                    f"self.{name}.update(logits, labels), or one that does nothing."
                )
    return any(not is_ours(term) for loss in adaptive_losses(objective) for term in terms_of(loss))


def _plain_holders(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules beside networks that neither adapt nor only hold others."""
    for child in module.children():
        if isinstance(child, _NETWORKS) or (not isinstance(child, Objective) and is_adaptive(child)):
            continue
        if not isinstance(child, _HOLDERS):
            yield child
        yield from _plain_holders(child)
