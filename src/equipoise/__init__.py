"""Train neural classifiers whose confidence can be believed, and prove it."""

from equipoise.core import Predictions, iter_predictions, read_predictions, write_predictions
from equipoise.evaluate import PairedDifferences, Scorecard, compare, score

__all__ = [
    "PairedDifferences",
    "Predictions",
    "Scorecard",
    "__version__",
    "compare",
    "iter_predictions",
    "read_predictions",
    "score",
    "write_predictions",
]

__version__ = "0.1.0"
