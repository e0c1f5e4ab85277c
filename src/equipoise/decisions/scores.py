"""Scores that order predictions from the most certain to the least."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.core.arrays import Array, as_numpy
from equipoise.core.errors import DataError
from equipoise.core.names import nearest
from equipoise.core.predictions import Predictions

__all__ = ["SCORES", "score_rows"]

#: Scores that follow from the predictions; any other name is that of a column.
SCORES = ("confidence", "margin", "entropy")


def score_rows(predictions: Predictions, score: Any, *, where: str) -> Array:
    """Return one number per row; a higher one is more certain.

    Args:
        predictions: Predictions.
        score: ``"confidence"``; ``"margin"``, the highest minus the second highest probability; ``"entropy"``, one
            minus the entropy divided by its maximum; the name of a numeric column of ``groups``; or an array ``(n,)``.
        where: The caller, for messages.

    Raises:
        DataError: If there is no such column, or a score is not a finite number.

    Example:
        >>> rows = Predictions(probs=[[0.7, 0.2, 0.1], [0.4, 0.4, 0.2]])
        >>> score_rows(rows, "margin", where="doc").round(2)
        array([0.5, 0. ])
    """
    if not isinstance(score, str):
        values, name = as_numpy(score), "score"
    elif score == "confidence":
        return predictions.confidence.astype(np.float64)
    elif score == "margin":
        top = np.partition(predictions.probs.astype(np.float64), -2, axis=1)
        return np.maximum(top[:, -1] - top[:, -2], 0.0)
    elif score == "entropy":
        log_probs = predictions.log_probs.astype(np.float64)
        entropy = -(predictions.probs * np.where(predictions.probs > 0, log_probs, 0.0)).sum(axis=1)
        certainty: Array = 1.0 - entropy / np.log(log_probs.shape[1])
        return certainty
    else:
        values, name = _column(predictions, score, where), score
    if values.shape != (len(predictions),):
        raise DataError(
            f"{where}: `{name}` must have shape ({len(predictions)},), got {values.shape}. Give one score per row."
        )
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        raise DataError(
            f"{where}: `{name}` must be numbers, got {values.dtype}. Give a numeric column."
        ) from None
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{where}: `{name}` must be finite, got {numbers[row]} in row {row}. Drop that row.")
    return numbers


def _column(predictions: Predictions, name: str, where: str) -> Array:
    if name in predictions.groups:
        return predictions.groups[name]
    guess = nearest(name, [*SCORES, *predictions.groups])
    remedy = f"Did you mean {guess!r}?" if guess else f"Known: {', '.join([*SCORES, *predictions.groups])}."
    raise DataError(f"{where}: `score` must be a known score or a column, got {name!r}. {remedy}")
