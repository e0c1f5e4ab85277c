"""Predictions, the currency of the package: what a classifier said about some rows, and what was true."""

from equipoise.core.predictions.predictions import Kind, Predictions

__all__ = ["Kind", "Predictions"]
