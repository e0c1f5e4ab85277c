"""A calibrator of a user's own: two methods; its parameters are checked, saved and loaded as those of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

import numpy as np

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, asarray_like
from equipoise.core.arrays import Array, as_numpy, as_tensor, is_tensor
from equipoise.core.errors import SpecError, needs
from equipoise.core.predictions import Predictions

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["OwnCalibrator", "UserCalibrator", "as_calibrator"]

#: Parameters that a sentence can hold.
_FEW = 4


@runtime_checkable
class UserCalibrator(Protocol):
    """What a user's own calibrator must do.

    Two attributes may be added: ``gives = "probs"`` if probabilities come out and not logits, and
    ``arrays = "numpy"`` if both methods take NumPy arrays instead of tensors, so that torch is not needed.

    Example:
        >>> class Halved:
        ...     def learn(self, logits, labels):
        ...         return {"factor": 0.5}
        ...
        ...     def map(self, logits, parameters):
        ...         return logits * parameters["factor"]
        >>> isinstance(Halved(), UserCalibrator)
        True
    """

    def learn(self, logits: Tensor, labels: Tensor) -> Mapping[str, Any]:
        """Return what held-out logits ``(n, k)`` and labels ``(n,)`` teach: finite numbers or arrays, by name."""

    def map(self, logits: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return better logits ``(n, k)``; parameters are those learned, as tensors."""


@final
@dataclass(kw_only=True, eq=False)
class OwnCalibrator(Calibrator):
    """A user's own calibrator, with everything that ours have: checks, files, split rules.

    Like ours it is given up, and says so, if it raises the NLL of the rows that it was fitted on. A file keeps what
    it learned, never its code: ``load(path, own=...)``.

    Args:
        own: An :class:`UserCalibrator`.
        name: What files and sentences call it.

    Example:
        >>> class Halved:
        ...     arrays = "numpy"
        ...
        ...     def learn(self, logits, labels):
        ...         return {"factor": 0.5}
        ...
        ...     def map(self, logits, parameters):
        ...         return logits * parameters["factor"]
        >>> calibrator = OwnCalibrator(own=Halved(), name="halved").fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> calibrator([[4.0, 0.0]]), calibrator.result.words
        (array([[2., 0.]]), 'halved: factor = 0.5')
    """

    own: InitVar[UserCalibrator]
    name: str = "own"

    kind = "own"

    def __post_init__(self, own: UserCalibrator) -> None:
        gives: Any = getattr(own, "gives", "logits")
        arrays: Any = getattr(own, "arrays", "torch")
        if (
            not isinstance(own, UserCalibrator)
            or gives not in ("logits", "probs")
            or arrays not in ("torch", "numpy")
        ):
            raise SpecError(
                f"{self.name}: expected a calibrator with the methods learn(logits, labels) and map(logits, "
                "parameters), which may say gives = 'logits' or 'probs' and arrays = 'torch' or 'numpy', got "
                f"{type(own).__name__}."
            )
        self._own, self.gives, self._arrays = own, gives, arrays

    def n_parameters(self, n_classes: int) -> int:
        """Count the numbers that were learned; none before the fit."""
        return sum(value.size for value in self.result.parameters.values()) if self.fitted else 0

    def _learn(self, predictions: Predictions) -> FitResult:
        if predictions.weights is not None:
            raise SpecError(f"{self.name}: a user's own calibrator takes no sample weights. Leave them out.")
        logits = predictions.logits.astype(np.float64, copy=False)
        found = self._own.learn(self._given(logits), self._given(predictions.labels))
        if not isinstance(found, Mapping):
            raise SpecError(
                f"{self.name}: `learn` must return what it learned by name, such as {{'scale': 0.5}}, got "
                f"{type(found).__name__}."
            )
        parameters = {str(name): _numbers(value, f"{self.name}: `{name}`") for name, value in found.items()}
        parts = [f"{name} = {float(value):.4g}" for name, value in parameters.items() if value.ndim == 0]
        words = f"{self.name}: {', '.join(parts[:_FEW])}" if parts else f"fitted by {self.name}"
        return FitResult(parameters=parameters, words=words)

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        given = self._given(logits)
        found: Any = self._own.map(given, {name: self._given(value) for name, value in parameters.items()})
        if not isinstance(found, type(given)) or found.shape != logits.shape:
            got = tuple(found.shape) if isinstance(found, type(given)) else type(found).__name__
            raise SpecError(
                f"{self.name}: `map` must return {'a tensor' if is_tensor(given) else 'an array'} of the logits' shape "
                f"{tuple(logits.shape)}, got {got}."
            )
        return as_numpy(found) if isinstance(logits, np.ndarray) else asarray_like(found, logits)

    def _given(self, values: AnyArray) -> Any:
        """Return an array as the calibrator takes it."""
        if self._arrays == "numpy":
            return as_numpy(values)
        with needs("torch", extra="torch", purpose=f"run {self.name}, which takes tensors"):
            return values if is_tensor(values) else as_tensor(values)


def _numbers(value: Any, where: str) -> Array:
    try:
        array = np.asarray(as_numpy(value), np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 2 or not np.isfinite(array).all():
        raise SpecError(f"{where} must be a finite number, or an array of them with at most two axes.")
    return array


def as_calibrator(made: Any, *, name: str) -> Calibrator:
    """Return a calibrator as it is, and a user's own object as a calibrator.

    Args:
        made: A :class:`Calibrator`, or an :class:`UserCalibrator`.
        name: What files and sentences call it.

    Raises:
        SpecError: If it is neither.

    Example:
        >>> as_calibrator(3, name="mine")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: mine: expected a calibrator with the methods ... got int.
    """
    return made if isinstance(made, Calibrator) else OwnCalibrator(own=made, name=name)
