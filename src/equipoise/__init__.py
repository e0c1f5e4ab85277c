"""Train neural classifiers whose confidence can be believed, and prove it."""

from equipoise.core import Predictions, iter_predictions, read_predictions, write_predictions

__all__ = ["Predictions", "iter_predictions", "read_predictions", "write_predictions"]
