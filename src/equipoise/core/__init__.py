"""What everyone speaks: Predictions, split names, input checks, errors, atomic files, seeds."""

from typing import TYPE_CHECKING

from equipoise.core.errors import (
    DataError,
    DivergenceError,
    EquipoiseError,
    FileError,
    MissingExtraError,
    NotFittedError,
    SpecError,
    SplitError,
)
from equipoise.core.lazy import lazy_names as _lazy_names
from equipoise.core.splits import SPLITS

__all__ = [
    "SPLITS",
    "DataError",
    "DivergenceError",
    "EquipoiseError",
    "FileError",
    "MissingExtraError",
    "NotFittedError",
    "Predictions",
    "Rows",
    "SpecError",
    "SplitError",
    "iter_predictions",
    "read_predictions",
    "write_predictions",
]

if TYPE_CHECKING:
    from equipoise.core import predictions as predictions
    from equipoise.core import reading as reading
    from equipoise.core.predictions import Predictions
    from equipoise.core.reading import iter_predictions, read_predictions
    from equipoise.core.rows import Rows
    from equipoise.core.writing import write_predictions
else:
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "Predictions": "equipoise.core.predictions",
            "Rows": "equipoise.core.rows",
            "iter_predictions": "equipoise.core.reading",
            "read_predictions": "equipoise.core.reading",
            "write_predictions": "equipoise.core.writing",
        },
        modules=("predictions", "reading"),
    )
