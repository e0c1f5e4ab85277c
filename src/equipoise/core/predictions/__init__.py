"""Predictions, the currency of the package: the scores that a classifier gave to some rows, and their true classes."""

from equipoise.core.predictions.predictions import Kind, Predictions

__all__ = ["Kind", "Predictions"]
