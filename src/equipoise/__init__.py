"""Train neural classifiers whose confidence can be believed, and prove it."""

from equipoise.core import Predictions

__all__ = ["Predictions"]
