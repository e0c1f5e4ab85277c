"""Predictions from files: which files, which columns, and what their rows become."""

from equipoise.core.reading.columns import Columns
from equipoise.core.reading.read import iter_predictions, read_predictions

__all__ = ["Columns", "iter_predictions", "read_predictions"]
