"""Predictions from files: which files, which columns, and what their rows become."""

from typing import TYPE_CHECKING

from equipoise.core.lazy import lazy_names as _lazy_names

__all__ = ["Columns", "iter_predictions", "read_predictions"]

if TYPE_CHECKING:
    from equipoise.core.reading import columns as columns
    from equipoise.core.reading.columns import Columns
    from equipoise.core.reading.read import iter_predictions, read_predictions
else:
    # Options of commands need the names of columns, and nothing that reads them.
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "Columns": "equipoise.core.reading.columns",
            "iter_predictions": "equipoise.core.reading.read",
            "read_predictions": "equipoise.core.reading.read",
        },
        modules=("columns",),
    )
