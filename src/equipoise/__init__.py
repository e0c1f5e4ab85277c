"""Train neural classifiers whose confidence can be believed, and prove it."""

from equipoise.core import Predictions
from equipoise.evaluate import Comparison, Scorecard, compare, score

__all__ = ["Comparison", "Predictions", "Scorecard", "__version__", "compare", "score"]

__version__ = "0.1.0"
