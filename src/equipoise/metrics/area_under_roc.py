"""AUROC: does confidence tell right from wrong, or known from unknown data?"""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.core.arrays import Array, as_floats, as_numpy
from equipoise.core.checks import check_weights
from equipoise.core.errors import DataError
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions
from equipoise.metrics.inputs import top_label

__all__ = ["area_under_roc", "error_auroc", "out_of_distribution_auroc"]


def area_under_roc(scores: Any, positives: Any, *, sample_weight: Any = None) -> float:
    """Return the probability that a positive row scores above a negative one; ties count one half.

    Args:
        scores: ``(n,)`` numbers.
        positives: ``(n,)`` truth values.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1; NaN if one kind is missing.

    Raises:
        ValueError: If the lengths differ, or a score is no number.

    Example:
        >>> area_under_roc([0.9, 0.5, 0.5], [True, True, False])
        0.75
    """
    where = "area_under_roc"
    values = as_floats(scores, where=where, name="scores").astype(np.float64)
    positive = as_numpy(positives).astype(bool)
    weight = np.ones(len(values)) if sample_weight is None else as_numpy(sample_weight).astype(np.float64)
    if values.ndim != 1 or len(values) == 0 or not values.shape == positive.shape == weight.shape:
        raise ValueError(
            f"{where}: `scores`, `positives` and weights must be as long as each other, one value per row, got "
            f"{values.shape}, {positive.shape} and {weight.shape}."
        )
    if np.isnan(values).any():
        raise DataError(
            f"{where}: `scores` must be numbers, got nan in row {int(np.isnan(values).argmax())}."
        )
    check_weights(weight, where=where)
    order = np.argsort(values)
    values, positive, weight = values[order], positive[order], weight[order]
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    up = np.add.reduceat(weight * positive, starts)
    down = np.add.reduceat(weight * ~positive, starts)
    return float(auroc_of_cells(up, down))


def auroc_of_cells(up: Array, down: Array) -> Array:
    """Return the area from the weights of positives and negatives in ascending cells, ``(..., m)``.

    Example:
        >>> float(auroc_of_cells(np.array([0.0, 1.0]), np.array([1.0, 0.0])))
        1.0
    """
    below = np.cumsum(down, axis=-1) - 0.5 * down
    pairs = up.sum(axis=-1) * down.sum(axis=-1)
    found = (up * below).sum(axis=-1)
    result: Array = np.divide(found, pairs, out=np.full(np.shape(pairs), np.nan), where=pairs > 0)
    return result


def error_auroc(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    """Return how well confidence separates right from wrong predictions.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1; 0.5 is no separation. NaN if all predictions are right, or all wrong.

    Example:
        >>> error_auroc([[0.9, 0.1], [0.6, 0.4]], [0, 1])
        1.0
    """
    top = top_label(probs, labels, sample_weight, where="error_auroc")
    return area_under_roc(top.confidence, top.correct, sample_weight=top.weight)


def out_of_distribution_auroc(
    known: Predictions, unknown: Predictions, *, score: str = "confidence"
) -> float:
    """Return how well confidence separates rows like the training data from rows unlike it.

    Args:
        known: Predictions on data of the training distribution.
        unknown: Predictions on other data; their labels are not used.
        score: ``"confidence"``, or ``"entropy"`` (its negative), which looks at all classes.

    Returns:
        A number from 0 to 1: the probability that a known row looks surer than an unknown one.

    Example:
        >>> known = Predictions(probs=[[0.9, 0.1]], labels=[0])
        >>> unknown = Predictions(probs=[[0.5, 0.5]], labels=[0])
        >>> out_of_distribution_auroc(known, unknown)
        1.0
    """
    check_choice(score, ("confidence", "entropy"), where="out_of_distribution_auroc", name="score")
    scores = [
        part.confidence if score == "confidence" else (part.probs * part.log_probs).sum(axis=1)
        for part in (known, unknown)
    ]
    weights = [np.ones(len(part)) if part.weights is None else part.weights for part in (known, unknown)]
    return area_under_roc(
        np.concatenate(scores),
        np.arange(len(known) + len(unknown)) < len(known),
        sample_weight=np.concatenate(weights),
    )
