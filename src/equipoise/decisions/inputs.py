"""Predictions, or arrays of probabilities with labels, as Predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions

__all__ = [
    "apply_calibrator",
    "as_predictions",
    "check_json_name",
    "check_share",
    "count_rows",
    "read_calibrator",
]


def as_predictions(values: Any, labels: Any = None, *, where: str) -> Predictions:
    """Return Predictions, made from probabilities and labels or passed through.

    Args:
        values: Predictions; or probabilities ``(n, k)`` or ``(n,)``, NumPy or torch.
        labels: True classes ``(n,)``, with probabilities only.
        where: The caller, for messages.

    Raises:
        TypeError: If labels are given twice.

    Example:
        >>> as_predictions([0.9, 0.2], [1, 0], where="doc")
        Predictions(probs, n=2, k=2)
    """
    if not isinstance(values, Predictions):
        return Predictions(probs=values, labels=labels)
    if labels is not None:
        raise TypeError(
            f"{where}: Predictions contain their labels, got `labels` too. Pass Predictions alone."
        )
    return values


def apply_calibrator(calibrator: Any, predictions: Predictions, *, where: str) -> Predictions:
    """Return predictions after the calibrator of a decision, or as they are if it has none.

    Args:
        calibrator: Fitted calibrator, or None.
        predictions: Predictions that no calibrator was applied to.
        where: The caller, for messages.

    Raises:
        DataError: If a calibrator was applied to the predictions before.

    Example:
        >>> rows = Predictions(probs=[0.9, 0.2])
        >>> apply_calibrator(None, rows, where="doc") is rows
        True
    """
    if calibrator is None:
        return predictions
    if not callable(calibrator):
        raise TypeError(
            f"{where}: `calibrator` must be a fitted calibrator, got {calibrator!r}. Fit or load one."
        )
    if predictions.fitted_on is not None:
        raise DataError(
            f"{where}: a calibrator was applied to these predictions already, and the decision applies its own. "
            "Pass the raw predictions, or certify without a calibrator."
        )
    calibrated: Predictions = calibrator(predictions)
    return calibrated


def count_rows(weights: Array) -> Array:
    """Return how many rows each row counts for.

    Weights that are whole numbers count rows. The unit of other weights means nothing: they are scaled so that they sum
    to the number of rows with a weight, and equal ones count once each.

    Example:
        >>> count_rows(np.array([2.0, 0.0, 1.0])).tolist(), count_rows(np.array([0.5, 0.0, 0.5])).tolist()
        ([2.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    """
    if (weights == np.floor(weights)).all():
        return weights.astype(np.float64)
    used = weights > 0
    if weights[used].max() == weights[used].min():
        return used.astype(np.float64)
    result: Array = weights * (np.count_nonzero(used) / weights.sum())
    return result


def check_share(value: Any, *, where: str, name: str, example: str, may_be_one: bool = False) -> None:
    """Raise unless a setting is a number between 0 and 1.

    Args:
        value: The setting.
        where: The caller, for messages.
        name: Its name.
        example: A share in percent and as a number, for messages.
        may_be_one: Whether 1 is allowed.

    Example:
        >>> check_share(80, where="doc", name="coverage", example="80% is 0.8")
        Traceback (most recent call last):
        ...
        ValueError: doc: `coverage` must be between 0 and 1, got 80. 80% is 0.8.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{where}: `{name}` must be a number, got {value!r}. {example}.")
    number = float(value)
    if not (0 < number < 1 or (may_be_one and number == 1)):
        wanted = "above 0 and at most 1" if may_be_one else "between 0 and 1"
        raise ValueError(f"{where}: `{name}` must be {wanted}, got {value}. {example}.")


def check_json_name(path: str | os.PathLike[str], *, where: str) -> None:
    """Raise if the name of a decision's file does not end in .json.

    Example:
        >>> check_json_name("decision.txt", where="doc")
        Traceback (most recent call last):
        ...
        ValueError: doc: the name must end in .json, got 'decision.txt'. Rename it.
    """
    if Path(path).suffix.lower() != ".json":
        raise ValueError(f"{where}: the name must end in .json, got {str(path)!r}. Rename it.")


def read_calibrator(saved: Mapping[str, Any] | None) -> Any:
    """Return the calibrator of a saved decision, or None."""
    if saved is None:
        return None
    from equipoise.calibrators import from_artifact  # loads calibrators only if there is one

    return from_artifact(saved)
