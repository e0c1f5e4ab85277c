"""A post-hoc map of someone else's: two methods, and what it learnt is kept as our own maps' numbers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from torch import Tensor

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.result import FitResult
from equipoise.core.arrays import Array, as_numpy, as_tensor
from equipoise.core.errors import SpecError
from equipoise.core.predictions import Predictions

__all__ = ["OwnCalibrator", "OwnMap", "as_calibrator"]

#: Parameters that a sentence can hold.
_FEW = 4


@runtime_checkable
class OwnMap(Protocol):
    """What a map of someone's own must do; ``gives = "probs"`` says that probabilities come out and not logits.

    Example:
        >>> class Halved:
        ...     def learn(self, logits, labels):
        ...         return {"factor": 0.5}
        ...
        ...     def map(self, logits, parameters):
        ...         return logits * parameters["factor"]
        >>> isinstance(Halved(), OwnMap)
        True
    """

    def learn(self, logits: Tensor, labels: Tensor) -> Mapping[str, Any]:
        """Return what held-out logits ``(n, k)`` and labels ``(n,)`` teach: finite numbers or arrays, by name."""

    def map(self, logits: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return better logits ``(n, k)``; parameters are those learnt, as tensors."""


@final
@dataclass(kw_only=True, eq=False)
class OwnCalibrator(Calibrator):
    """A calibrator made of a map of someone's own, with everything that ours have: checks, files, split rules.

    Like ours it is given up, and says so, if it raises the NLL of the rows that it was fitted on. A file keeps what
    it learnt, never its code: ``load(path, own=...)``.

    Args:
        own: An :class:`OwnMap`.
        name: What files and sentences call it.

    Example:
        >>> class Halved:
        ...     def learn(self, logits, labels):
        ...         return {"factor": 0.5}
        ...
        ...     def map(self, logits, parameters):
        ...         return logits * parameters["factor"]
        >>> calibrator = OwnCalibrator(own=Halved(), name="halved").fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> calibrator([[4.0, 0.0]]), calibrator.result.words
        (array([[2., 0.]]), 'halved: factor = 0.5')
    """

    own: InitVar[OwnMap]
    name: str = "own"

    kind = "own"

    def __post_init__(self, own: OwnMap) -> None:
        gives: Any = getattr(own, "gives", "logits")
        if not isinstance(own, OwnMap) or gives not in ("logits", "probs"):
            raise SpecError(
                f"{self.name}: a map with the methods learn(logits, labels) and map(logits, parameters) was wanted, "
                f"which may say gives = 'logits' or 'probs', got {type(own).__name__}."
            )
        self._own, self.gives = own, gives

    def n_parameters(self, n_classes: int) -> int:
        """Count the numbers that were learnt; none before the fit."""
        return sum(value.size for value in self.result.parameters.values()) if self.fitted else 0

    def _learn(self, predictions: Predictions) -> FitResult:
        if predictions.weights is not None:
            raise SpecError(f"{self.name}: a map of someone's own knows no sample weights. Leave them out.")
        found = self._own.learn(as_tensor(predictions.logits).double(), as_tensor(predictions.labels))
        if not isinstance(found, Mapping):
            raise SpecError(
                f"{self.name}: `learn` must return what it learnt by name, such as {{'scale': 0.5}}, got "
                f"{type(found).__name__}."
            )
        parameters = {str(name): _numbers(value, f"{self.name}: `{name}`") for name, value in found.items()}
        told = [f"{name} = {float(value):.4g}" for name, value in parameters.items() if value.ndim == 0]
        words = f"{self.name}: {', '.join(told[:_FEW])}" if told else f"fitted by {self.name}"
        return FitResult(parameters=parameters, words=words)

    def _map(self, logits: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        found = self._own.map(logits, parameters)
        if not isinstance(found, Tensor) or found.shape != logits.shape:
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise SpecError(
                f"{self.name}: `map` must return a tensor of the logits' shape {tuple(logits.shape)}, got {got}."
            )
        return found


def _numbers(value: Any, where: str) -> Array:
    try:
        array = np.asarray(as_numpy(value), np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 2 or not np.isfinite(array).all():
        raise SpecError(f"{where} must be a finite number, or an array of them with at most two axes.")
    return array


def as_calibrator(made: Any, *, name: str) -> Calibrator:
    """Return a calibrator as it is, and a map of someone's own as one.

    Args:
        made: A :class:`Calibrator`, or an :class:`OwnMap`.
        name: What files and sentences call it.

    Raises:
        SpecError: If it is neither.

    Example:
        >>> as_calibrator(3, name="mine")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: mine: a map with the methods learn(logits, labels) and ... got int.
    """
    return made if isinstance(made, Calibrator) else OwnCalibrator(own=made, name=name)
