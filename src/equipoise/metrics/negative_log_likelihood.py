"""Negative log-likelihood: the proper score that training minimises."""

from __future__ import annotations

from typing import Any

from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.readings import read_state
from equipoise.metrics.state import CalibrationState

__all__ = ["negative_log_likelihood"]


def negative_log_likelihood(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    r"""Return the mean of minus the logarithm of the true class's probability, in nats.

    A proper score: only the true distribution minimises it, so no method can buy it by being vague.

    .. math:: -\frac{1}{n} \sum_i \log p_{i, y_i}

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 up. From logits it is exact and finite; a stored probability of exactly 0 counts as the
        smallest normal float32, 87.3 nats.

    Example:
        >>> round(negative_log_likelihood([[0.5, 0.5]], [0]), 6)
        0.693147
    """
    predictions = as_predictions(probs, labels, sample_weight, where="negative_log_likelihood")
    state = CalibrationState.of(predictions, n_bins=1)
    state._check_scores()
    return read_state(state)["nll"]
