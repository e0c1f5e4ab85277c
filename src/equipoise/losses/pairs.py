"""Losses and terms out of their factories: the papers' pairs, and free sums with a strength for each part.

In Python a sum is one line, ``DualFocalLoss() + 0.5 * SmoothECE(bandwidth=0.05)``. What is here serves those who
hold names and parameters instead: the catalogue, specs and the command line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from torch import Tensor, nn

from equipoise.core.errors import SpecError
from equipoise.core.names import nearest
from equipoise.core.read_only import ReadOnly
from equipoise.losses.base import Penalty, Reduction
from equipoise.losses.sum import Scaled, Sum

__all__ = ["Pair", "Part", "make_sum"]

Factory = Callable[..., nn.Module]

#: What every part of a sum receives, as far as it takes it.
_SHARED = ("weight", "ignore_index", "reduction", "gather", "n_classes")


class Part(NamedTuple):
    """A term of a sum that is yet to be built.

    Attributes:
        factory: A loss or a penalty: its class, or a function that gives one.
        parameters: What it is called with.
        strength: What its value is multiplied with; None leaves it as it is.

    Example:
        >>> from equipoise.losses import FocalLoss
        >>> Part(FocalLoss, {"gamma": 1.0}).strength is None
        True
    """

    factory: Factory
    parameters: Mapping[str, Any] = ReadOnly()
    strength: float | None = None


def make_sum(
    *parts: Part,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    gather: bool = False,
    n_classes: int | None = None,
) -> Sum:
    """Build a weighted sum of losses and terms, each with parameters of its own.

    Args:
        parts: The terms, in order.
        weight: Weight of each class, for every part.
        ignore_index: Label of samples that do not count, for every part.
        reduction: ``"mean"``, ``"sum"`` or, if no part is a batch-level term, ``"none"``.
        gather: For the parts that can gather the batch of all processes.
        n_classes: For the parts that want to know it.

    Returns:
        The sum.

    Raises:
        SpecError: If a part does not know one of its parameters.

    Example:
        >>> from equipoise.losses import FocalLoss, MDCA
        >>> make_sum(Part(FocalLoss, {"gamma": 1.0}), Part(MDCA, strength=0.5)).terms[1]
        Scaled(
          factor=0.5
          (term): MDCA()
        )
    """
    shared = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction, "gather": gather}
    if n_classes is not None:
        shared["n_classes"] = n_classes
    return Sum(*(_made(part, shared) for part in parts))


def _made(part: Part, shared: Mapping[str, Any]) -> nn.Module:
    known = inspect.signature(part.factory).parameters
    for name in part.parameters:
        _check_known(name, known, where=part.factory.__name__)
    given = {name: value for name, value in shared.items() if name in known}
    made = part.factory(**{**given, **part.parameters})
    return made if part.strength is None else Scaled(made, factor=part.strength)


def _check_known(name: str, known: Mapping[str, Any], *, where: str) -> None:
    if name in known:
        return
    guess = nearest(name, known)
    remedy = f"Did you mean {guess!r}?" if guess else f"It knows {', '.join(known)}."
    raise SpecError(f"{where}: no parameter {name!r}. {remedy}")


@final
@dataclass(frozen=True)
class Pair:
    """A loss and a batch-level term as one method, whose parameters are those of both and the strength between.

    Called with any of them by keyword it gives the sum, and its signature lists them all.

    Attributes:
        loss: The loss's class.
        term: The penalty's class.

    Raises:
        ValueError: If both have a parameter of the same name; build such a sum with :func:`make_sum`.

    Example:
        >>> from equipoise.losses import FocalLoss, MDCA
        >>> Pair(FocalLoss, MDCA)(gamma=1.0, strength=0.5)
        Sum(
          (terms): ModuleList(
            (0): FocalLoss(gamma=1, schedule={}, detach_weight=False)
            (1): Scaled(
              factor=0.5
              (term): MDCA()
            )
          )
        )
    """

    loss: Factory
    term: Callable[..., Penalty]

    def __post_init__(self) -> None:
        both = [dict(inspect.signature(factory).parameters) for factory in (self.loss, self.term)]
        twice = (set(both[0]) & set(both[1])) - set(_SHARED)
        if twice or "strength" in both[0] | both[1]:
            raise ValueError(
                f"Pair: {self.loss.__name__} and {self.term.__name__} must not share a parameter, got "
                f"{', '.join(sorted(twice or {'strength'}))}. Build this sum with make_sum, or as loss + 0.5 * term."
            )
        strength = inspect.Parameter(
            "strength", inspect.Parameter.KEYWORD_ONLY, default=1.0, annotation="float"
        )
        names = {"strength": strength, **both[0], **both[1]}
        ordered = [name for name in names if name not in _SHARED] + [
            name for name in _SHARED if name in names
        ]
        # What validation, listings and help read; a plain attribute, so that the class keeps its own signature.
        object.__setattr__(self, "__signature__", inspect.Signature([names[name] for name in ordered]))

    @property
    def __name__(self) -> str:
        return f"Pair({self.loss.__name__}, {self.term.__name__})"

    def __call__(self, **parameters: Any) -> Sum:
        """Build the sum of the loss and ``strength`` times the term.

        Raises:
            SpecError: For a parameter that neither knows.
        """
        known = inspect.signature(self).parameters
        for name in parameters:
            _check_known(name, known, where=self.__name__)
        strength = float(parameters.pop("strength", 1.0))
        shared = {name: parameters.pop(name) for name in _SHARED if name in parameters}
        of_loss = inspect.signature(self.loss).parameters
        mine = {name: value for name, value in parameters.items() if name in of_loss}
        rest = {name: value for name, value in parameters.items() if name not in of_loss}
        return make_sum(Part(self.loss, mine), Part(self.term, rest, strength), **shared)
