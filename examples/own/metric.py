"""Your own metric: a function of predictions that returns a number, and its facts for tables."""

import numpy as np

from equipoise import Predictions


def worst_class(predictions: Predictions, least: int = 1) -> float:
    """Return the lowest accuracy of a class, among classes with at least `least` rows."""
    right = np.bincount(predictions.labels, weights=predictions.correct)
    rows = np.bincount(predictions.labels)
    return float((right[rows >= least] / rows[rows >= least]).min())


worst_class.facts = {
    "title": "worst class",
    "better": "higher",
    "percent": True,
    "low": 0.0,
    "high": 1.0,
}
