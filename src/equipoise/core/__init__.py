"""What everyone speaks: Predictions, split names, input checks, errors, atomic files, seeds."""

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
from equipoise.core.predictions import Predictions
from equipoise.core.reading import iter_predictions, read_predictions
from equipoise.core.rows import Rows
from equipoise.core.splits import SPLITS
from equipoise.core.writing import write_predictions

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
