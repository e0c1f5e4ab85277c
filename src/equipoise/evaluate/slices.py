"""Where it goes wrong: calibration of one class or one group at a time, corrected for looking at many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from equipoise.core.arrays import Array
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.metrics.bins import check_bins, lower_edges
from equipoise.metrics.curve import ReliabilityCurve, calibration_errors
from equipoise.metrics.inputs import as_predictions

__all__ = ["Slice", "score_by_class", "score_by_group"]


class Slice(NamedTuple):
    """Calibration of some of the rows.

    Attributes:
        name: The class or group.
        n_samples: How many rows.
        accuracy: How often they are right.
        confidence: Their mean confidence.
        gap: Confidence minus accuracy; above zero is over-confident.
        low: Lower end of the gap's interval, the confidences taken as given.
        high: Upper end.
        ece: Expected calibration error.
        p_value: How often a calibrated model with the same confidences has a gap this wide, by Holm's rule for the
            number of slices looked at.
    """

    name: str
    n_samples: int
    accuracy: float
    confidence: float
    gap: float
    low: float
    high: float
    ece: float
    p_value: float


def score_by_class(
    predictions: Predictions,
    *,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
) -> tuple[Slice, ...]:
    """Score the rows of each predicted class apart: when it says this class, how sure is it and how often right?

    Args:
        predictions: Predictions of any form.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.

    Returns:
        One slice per class that was predicted at least once, the least believable first.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1]] * 40 + [[0.1, 0.9]] * 40, labels=[0] * 36 + [1] * 24 + [0] * 20)
        >>> [(part.name, round(abs(part.gap), 2)) for part in score_by_class(rows)]
        [('1', 0.4), ('0', 0.0)]
    """
    rows = as_predictions(predictions, None, where="score_by_class")
    known, which = np.unique(rows.predicted, return_inverse=True)
    names = [rows.class_names[number] if rows.class_names else str(number) for number in known.tolist()]
    return _score_parts(rows, names, which, n_bins, closed, level)


def score_by_group(
    predictions: Predictions,
    by: str,
    *,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
) -> tuple[Slice, ...]:
    """Score the rows of each group apart.

    Args:
        predictions: Predictions with groups.
        by: Name of the column of groups.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.

    Returns:
        One slice per value of the column, the least believable first.

    Raises:
        SpecError: If there is no such column.

    Example:
        >>> rows = Predictions(probs=[0.9, 0.8, 0.7], labels=[1, 1, 0], groups={"site": ["a", "a", "b"]})
        >>> [part.name for part in score_by_group(rows, "site")]
        ['b', 'a']
    """
    rows = as_predictions(predictions, None, where="score_by_group")
    column = look_up(by, rows.groups, what="column of groups", hint="the predictions have no groups.")
    known, which = np.unique(column, return_inverse=True)
    return _score_parts(rows, list(map(str, known.tolist())), which, n_bins, closed, level)


def _score_parts(
    rows: Predictions, names: list[str], which: Array, n_bins: int, closed: str, level: float
) -> tuple[Slice, ...]:
    """Score all slices at once, ``which`` telling the slice of each row."""
    check_bins(n_bins, closed, where="slices")
    confidence = np.minimum(rows.confidence.astype(np.float64), 1.0)
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    cell = which * n_bins + np.searchsorted(lower_edges(n_bins, closed)[1:-1], confidence, side="left")

    def table(values: Array) -> Array:
        return np.bincount(cell, weights * values, len(names) * n_bins).reshape(len(names), n_bins)

    mass, claimed, right = table(np.ones(len(rows))), table(confidence), table(rows.correct)
    squares = np.bincount(which, weights**2, len(names))
    kept = mass.sum(axis=1) > 0
    total = np.where(kept, mass.sum(axis=1), 1.0)
    # As many equally weighted rows as carry the same information: the interval of one bin that holds them all.
    n_rows = total**2 / np.where(kept, squares, 1.0)
    mean, accuracy = claimed.sum(axis=1) / total, right.sum(axis=1) / total
    low, high = ReliabilityCurve(n_rows, n_rows * mean, n_rows * accuracy).intervals(level=level)
    spread = np.sqrt(np.bincount(which, weights**2 * confidence * (1 - confidence), len(names)))
    columns = {
        "n_samples": np.bincount(which, minlength=len(names)),
        "accuracy": accuracy,
        "confidence": mean,
        "gap": mean - accuracy,
        "low": mean - high,
        "high": mean - low,
        "ece": calibration_errors(mass[kept], claimed[kept], right[kept])["ece"],
        "p_value": _holm(_gap_p_values(total * np.abs(mean - accuracy), spread, squares / total)[kept]),
    }
    lists = [
        column[kept].tolist() if len(column) == len(kept) else column.tolist() for column in columns.values()
    ]
    found = [
        Slice(*row) for row in zip([n for n, k in zip(names, kept, strict=True) if k], *lists, strict=True)
    ]
    # Worst is what is surely far off: the end of the interval that is nearer to zero decides.
    return tuple(sorted(found, key=lambda part: (-max(part.low, -part.high), -abs(part.gap), part.name)))


def _gap_p_values(excess: Array, spread: Array, one_row: Array) -> Array:
    """Test gaps against a calibrated model's: sums of independent right-or-wrong draws, nearly normal.

    Half a row is taken off, as for every sum of whole numbers, which keeps the test honest with few rows.
    """
    beyond = np.maximum(excess - 0.5 * one_row - 1e-12, 0)
    score = np.divide(beyond, spread, out=np.full(len(beyond), np.inf), where=spread > 0)
    return np.where(beyond > 0, 2 * ndtr(-score), 1.0)


def _holm(p_values: Array) -> Array:
    """Return p-values that may be compared with one level however many there are."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p_values[order]))
    return corrected
