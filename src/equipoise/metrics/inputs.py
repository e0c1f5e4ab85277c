"""What metrics are asked about: arrays or Predictions, as the one or the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.checks import check_weights
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint

__all__ = ["TopLabel", "as_predictions", "check_bandwidth", "sort_by_confidence", "top_label"]


def as_predictions(probs: Any, labels: Any, sample_weight: Any = None, *, where: str) -> Predictions:
    """Return Predictions, made from probabilities and labels or passed through.

    Args:
        probs: Probabilities ``(n, k)`` or one column ``(n,)``; or Predictions, which know their labels and weights.
        labels: True classes; None with Predictions.
        sample_weight: One weight per row; None with Predictions.
        where: The caller, for messages.

    Raises:
        TypeError: If labels are missing, or given twice.
        SplitError: If the rows were used to fit the calibrator that made these predictions.

    Example:
        >>> as_predictions([0.9, 0.2], [1, 0], where="doc")
        Predictions(probs, n=2, k=2)
    """
    if isinstance(probs, Predictions):
        if labels is not None or sample_weight is not None:
            raise TypeError(
                f"{where}: Predictions hold their labels and weights already; pass nothing beside them."
            )
        if probs.fitted_on is not None:
            check_disjoint(probs.rows, probs.fitted_on, where=where)
        return probs
    if labels is None:
        raise TypeError(f"{where}: `labels` are missing. Pass (probs, labels), or Predictions alone.")
    return Predictions(probs=probs, labels=labels, weights=sample_weight)


def check_bandwidth(bandwidth: float, *, where: str) -> None:
    """Raise unless the width of a kernel is a finite number above zero.

    Example:
        >>> check_bandwidth(0.0, where="doc")
        Traceback (most recent call last):
        ...
        ValueError: doc: `bandwidth` must be a finite number above 0, got 0.0. The papers use 0.01 to 0.1.
    """
    if not 0 < bandwidth < float("inf"):
        raise ValueError(
            f"{where}: `bandwidth` must be a finite number above 0, got {bandwidth}. The papers use 0.01 to 0.1."
        )


class TopLabel(NamedTuple):
    """Confidence and correctness, all that top-label metrics need.

    Attributes:
        confidence: ``(n,)`` in the precision of the scores.
        correct: ``(n,)`` bool.
        weight: ``(n,)`` float64, none of them zero, or None.
    """

    confidence: Array
    correct: Array
    weight: Array | None


def top_label(probs: Any, labels: Any, sample_weight: Any = None, *, where: str) -> TopLabel:
    """Return confidence, correctness and weights; rows of weight zero are left out.

    Weights count rows. Where they add up to less than the rows there are, as weights that sum to one do, they are
    scaled to average one, so that what depends on the number of rows has the right number.

    Example:
        >>> top_label([[0.9, 0.1]], [0], where="doc").confidence
        array([0.9])
        >>> top_label([[0.9, 0.1], [0.2, 0.8]], [0, 1], [0.5, 0.5], where="doc").weight
        array([1., 1.])
    """
    predictions = as_predictions(probs, labels, sample_weight, where=where)
    confidence, correct, weight = predictions.confidence, predictions.correct, predictions.weights
    if weight is None:
        return TopLabel(confidence, correct, None)
    check_weights(weight, where=where)
    if not weight.all():
        kept = weight > 0
        confidence, correct, weight = confidence[kept], correct[kept], weight[kept]
    return TopLabel(confidence, correct, weight * max(1.0, len(weight) / weight.sum()))


def sort_by_confidence(top: TopLabel) -> tuple[Array, Array, Array | None]:
    """Return confidence, correctness and weight in ascending order of confidence.

    Without weights, confidence and correctness are packed into one integer, which NumPy sorts many at a time;
    nothing is rounded, because confidences in [0, 1] leave their highest bits unused.

    Example:
        >>> sort_by_confidence(TopLabel(np.array([0.9, 0.5]), np.array([True, False]), None))[0]
        array([0.5, 0.9])
    """
    if top.weight is not None:
        order = np.lexsort((top.correct, top.confidence))
        return (
            top.confidence[order].astype(np.float64),
            top.correct[order].astype(np.float64),
            top.weight[order],
        )
    bits = np.dtype(f"u{top.confidence.dtype.itemsize}")
    packed = np.abs(top.confidence).view(bits) << 1
    packed |= top.correct
    packed.sort()
    correct = (packed & 1).astype(np.float64)
    packed >>= 1
    return packed.view(top.confidence.dtype).astype(np.float64), correct, None
