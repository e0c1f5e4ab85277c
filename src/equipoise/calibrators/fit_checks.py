"""What a fit asks of its rows, and sentences about what it found."""

from __future__ import annotations

from collections.abc import Sequence
from sys import float_info

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError

__all__ = [
    "absent_classes",
    "check_enough_rows",
    "check_not_negative",
    "describe_offsets",
]

_MANY = 10_000
_MOST_PER_ROW = 100


def absent_classes(labels: Array, weights: Array | None, n_classes: int) -> tuple[str, ...]:
    """Warn about classes that no fit row has.

    Example:
        >>> absent_classes(np.array([0, 2]), None, 4)
        ('2 of 4 classes have no row to fit on (1, 3): their probabilities are driven towards zero',)
    """
    counts = np.bincount(labels, weights, n_classes)
    missing = np.flatnonzero(counts == 0)
    if not len(missing):
        return ()
    shown = ", ".join(map(str, missing[:5])) + (" ..." if len(missing) > 5 else "")
    return (
        f"{len(missing)} of {n_classes} classes have no row to fit on ({shown}): "
        "their probabilities are driven towards zero",
    )


def describe_offsets(offset: Array, class_names: Sequence[str] | None) -> str:
    """Say which class is raised and which lowered most.

    Example:
        >>> describe_offsets(np.array([0.5, -0.2, -0.3]), ["cat", "dog", "cow"])
        'raises cat most (+0.5) and lowers cow most (-0.3)'
    """
    if np.ptp(offset) < 0.01:
        return "treats all classes alike"
    names = [f"class {j}" for j in range(len(offset))] if class_names is None else class_names
    high, low = int(offset.argmax()), int(offset.argmin())
    return (
        f"raises {names[high]} most ({offset[high]:+.2g}) and lowers {names[low]} most ({offset[low]:+.2g})"
    )


def check_not_negative(value: float, *, where: str, name: str) -> None:
    """Raise unless a strength is a finite number of at least 0.

    Example:
        >>> check_not_negative(-1.0, where="doc", name="offset")
        Traceback (most recent call last):
        ...
        ValueError: doc: `offset` must be at least 0, got -1.0.
    """
    # Compared and not asked: NumPy knows nothing of whole numbers of more than 64 bits.
    if not 0 <= value <= float_info.max:
        raise ValueError(f"{where}: `{name}` must be at least 0, got {value}.")


def check_enough_rows(n_rows: int, n_parameters: int, *, where: str) -> None:
    """Raise for a large map of which so few rows say nothing, and which would take minutes to say it.

    Example:
        >>> check_enough_rows(50, 1_001_000, where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: doc.fit: 1001000 numbers cannot be learned from 50 rows; ...
    """
    if n_parameters > _MANY and n_parameters > _MOST_PER_ROW * n_rows:
        raise DataError(
            f"{where}.fit: {n_parameters} numbers cannot be learned from {n_rows} rows; at least "
            f"{-(-n_parameters // _MOST_PER_ROW)} are needed. Use StructuredMatrixScaling, which holds back where rows "
            "are few, or TemperatureScaling."
        )
