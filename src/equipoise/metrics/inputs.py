"""Inputs of metrics: arrays or Predictions as Predictions, and their confidences in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.checks import check_weights
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint
from equipoise.metrics.sums import running_sums

__all__ = [
    "ConfidenceCells",
    "TopLabel",
    "as_predictions",
    "check_bandwidth",
    "sorted_top_label",
    "top_label",
]


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


@final
@dataclass(frozen=True, eq=False)
class ConfidenceCells:
    """Rows of equal confidence together, in ascending order of confidence.

    Attributes:
        confidence: ``(m,)``, each value once.
        mass: Weight of the rows with this confidence.
        right: Weight of those that are right.
    """

    confidence: Array
    mass: Array
    right: Array

    @cached_property
    def wrong(self) -> Array:
        """Weight of the rows that are wrong."""
        return self.mass - self.right

    @cached_property
    def accepted(self) -> Array:
        """Weight of the rows that are at least so confident, in descending order of confidence ``(m,)``."""
        if (self.mass == 1).all():
            return np.arange(1.0, len(self.mass) + 1)
        return np.cumsum(self.mass[::-1])

    @cached_property
    def mistakes(self) -> Array:
        """Weight of the wrong ones among them, in the same order."""
        return running_sums(self.wrong[::-1], float(self.accepted[-1]))


@final
@dataclass(frozen=True, eq=False)
class TopLabel:
    """Confidence and correctness in ascending order of confidence: all that metrics of the predicted class need.

    Attributes:
        confidence: ``(n,)`` float64, ascending; rows of equal confidence in order of correctness.
        correct: ``(n,)`` float64, 1 if right.
        weight: ``(n,)`` float64, none of them zero; None if rows have no weights.
    """

    confidence: Array
    correct: Array
    weight: Array | None

    @cached_property
    def gaps(self) -> Array:
        """Confidence minus correctness of each row, times its weight."""
        gaps: Array = self.confidence - self.correct
        return gaps if self.weight is None else self.weight * gaps

    @cached_property
    def total(self) -> float:
        """Weight of all rows; their number if they have no weights."""
        return float(len(self.correct) if self.weight is None else self.weight.sum())

    @cached_property
    def cells(self) -> ConfidenceCells:
        """Rows of equal confidence together."""
        starts = np.flatnonzero(self.confidence[1:] != self.confidence[:-1]) + 1
        starts = np.concatenate([[0], starts])
        weight = np.ones(len(self.correct)) if self.weight is None else self.weight
        right = self.correct if self.weight is None else weight * self.correct
        if len(starts) == len(right):
            return ConfidenceCells(self.confidence, weight, right)
        mass, right = (np.add.reduceat(part, starts) for part in (weight, right))
        return ConfidenceCells(self.confidence[starts], mass, right)


def top_label(probs: Any, labels: Any, sample_weight: Any = None, *, where: str) -> TopLabel:
    """Return confidence, correctness and weights of arrays or Predictions; rows of weight zero are left out.

    Example:
        >>> top_label([[0.9, 0.1], [0.2, 0.8]], [0, 1], where="doc").confidence
        array([0.8, 0.9])
    """
    return sorted_top_label(as_predictions(probs, labels, sample_weight, where=where), where=where)


def sorted_top_label(predictions: Predictions, *, where: str) -> TopLabel:
    """Return confidence, correctness and weights of Predictions, sorted once for every metric that needs them.

    Weights count rows. Where they add up to less than the rows there are, as weights that sum to one do, they are
    scaled to average one, so that what depends on the number of rows has the right number.

    Without weights, confidence and correctness are packed into one integer, which NumPy sorts many at a time; nothing
    is rounded, because confidences in [0, 1] leave their highest bits unused.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 1], weights=[0.5, 0.5])
        >>> sorted_top_label(rows, where="doc").weight
        array([1., 1.])
    """
    confidence, correct, weight = predictions.confidence, predictions.correct, predictions.weights
    if weight is not None:
        check_weights(weight, where=where)
        order = np.lexsort((correct, confidence))
        order = order if weight.all() else order[weight[order] > 0]
        weight = weight[order] * max(1.0, len(order) / weight.sum())
        return TopLabel(confidence[order].astype(np.float64), correct[order].astype(np.float64), weight)
    packed = np.abs(confidence).view(np.dtype(f"u{confidence.dtype.itemsize}")) << 1
    packed |= correct
    packed.sort()
    hits = (packed & 1).astype(np.float64)
    packed >>= 1
    return TopLabel(packed.view(confidence.dtype).astype(np.float64), hits, None)
