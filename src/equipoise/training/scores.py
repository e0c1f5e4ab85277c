"""The three numbers a run is followed by."""

from __future__ import annotations

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.predictions import Predictions

__all__ = ["tune_scores"]


def tune_scores(predictions: Predictions) -> dict[str, float]:
    """Return accuracy, negative log-likelihood and expected calibration error.

    Example:
        >>> tune_scores(Predictions(probs=[[0.75, 0.25], [0.25, 0.75]], labels=[0, 0]))
        {'tune_accuracy': 0.5, 'tune_nll': 0.8369..., 'tune_ece': 0.25}
    """
    true = predictions.log_probs[np.arange(len(predictions)), predictions.labels]
    return {
        "tune_accuracy": float(predictions.correct.mean()),
        "tune_nll": float(-true.mean(dtype=np.float64)),
        "tune_ece": _calibration_error(predictions.confidence, predictions.correct),
    }


def _calibration_error(confidence: Array, correct: Array, *, n_bins: int = 15) -> float:
    number = np.clip(np.ceil(confidence.astype(np.float64) * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    gaps = np.bincount(number, confidence.astype(np.float64) - correct, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(confidence))
