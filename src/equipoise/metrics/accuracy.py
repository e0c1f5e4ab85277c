"""Accuracy: how often the most probable class, or one of the k most probable, is right."""

from __future__ import annotations

from typing import Any

from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.readings import top_k_from_state
from equipoise.metrics.state import CalibrationState

__all__ = ["accuracy", "top_k_accuracy"]


def accuracy(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    """Return the share of rows whose most probable class is the true one; the first of equals counts.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> accuracy([[0.9, 0.1], [0.4, 0.6]], [0, 0])
        0.5
    """
    predictions = as_predictions(probs, labels, sample_weight, where="accuracy")
    if predictions.weights is None:
        return float(predictions.correct.mean())
    return float(predictions.weights @ predictions.correct / predictions.weights.sum())


def top_k_accuracy(probs: Any, labels: Any = None, *, k: int = 5, sample_weight: Any = None) -> float:
    """Return the share of rows whose true class is among the ``k`` most probable.

    Args:
        probs: Probabilities ``(n, classes)``; or Predictions alone.
        labels: True classes ``(n,)``.
        k: How many guesses count.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> top_k_accuracy([[0.5, 0.3, 0.2]], [1], k=2)
        1.0
    """
    if k < 1:
        raise ValueError(f"top_k_accuracy: `k` must be at least 1, got {k}.")
    predictions = as_predictions(probs, labels, sample_weight, where="top_k_accuracy")
    state = CalibrationState(predictions.n_classes or 0 if predictions.has_scores else 0, n_bins=1, n_ranks=k)
    state.update(predictions)
    state._check_scores()
    return top_k_from_state(state, k)
