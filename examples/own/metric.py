"""A metric of one's own: a function of predictions that gives a number, and what tables should know about it."""

import numpy as np

from equipoise import Predictions


def worst_class(predictions: Predictions, least: int = 1) -> float:
    """Return the accuracy of the class that is predicted worst, among those with enough rows."""
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
