"""Where it goes wrong: calibration of one class or one group at a time, corrected for looking at many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from equipoise.core.arrays import Array
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState

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
    names = rows.class_names
    parts = (
        (names[number] if names else str(number), rows.predicted == number)
        for number in np.unique(rows.predicted).tolist()
    )
    return _score_parts(rows, parts, n_bins, closed, level)


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
    parts = ((str(value), column == value) for value in np.unique(column).tolist())
    return _score_parts(rows, parts, n_bins, closed, level)


def _score_parts(
    rows: Predictions,
    parts: Iterable[tuple[str, Array]],
    n_bins: int,
    closed: str,
    level: float,
) -> tuple[Slice, ...]:
    found = []
    for name, mask in parts:
        top = Predictions(
            labels=rows.labels[mask],
            predicted=rows.predicted[mask],
            confidence=rows.confidence[mask],
            weights=None if rows.weights is None or not rows.weights[mask].any() else rows.weights[mask],
        )
        curve = CalibrationState.of(top, n_bins=n_bins, closed=closed).curve()
        found.append(_slice(name, top, curve, level))
    corrected = _holm([part.p_value for part in found])
    slices = [part._replace(p_value=p) for part, p in zip(found, corrected, strict=True)]
    # Worst is what is surely far off: the end of the interval that is nearer to zero decides.
    return tuple(sorted(slices, key=lambda part: (-max(part.low, -part.high), -abs(part.gap), part.name)))


def _slice(name: str, top: Predictions, curve: ReliabilityCurve, level: float) -> Slice:
    weight = np.ones(len(top)) if top.weights is None else top.weights
    total = float(weight.sum())
    accuracy, confidence = (float(part.sum()) / total for part in (curve.outcome_sum, curve.confidence_sum))
    # One bin of as many equally weighted rows: its interval stays honest for few rows that are all right.
    n_rows = np.array([total**2 / float(weight @ weight)])
    low, high = ReliabilityCurve(n_rows, n_rows * confidence, n_rows * accuracy).intervals(level=level)
    return Slice(
        name,
        len(top),
        accuracy,
        confidence,
        confidence - accuracy,
        confidence - float(high[0]),
        confidence - float(low[0]),
        curve.expected_error(),
        _gap_p_value(top),
    )


def _gap_p_value(top: Predictions) -> float:
    """Test the gap against a calibrated model's: a sum of independent right-or-wrong draws, nearly normal.

    Half a row is taken off, as for every sum of whole numbers, which keeps the test honest with few rows.
    """
    confidence = top.confidence.astype(np.float64)
    weight = np.ones(len(top)) if top.weights is None else top.weights
    excess = abs(float(weight @ (confidence - top.correct)))
    spread = float(np.sqrt(weight**2 @ (confidence * (1 - confidence))))
    beyond = max(0.0, excess - 0.5 * float(weight @ weight / weight.sum()))
    if beyond == 0:
        return 1.0
    return float(2 * ndtr(-beyond / spread)) if spread > 0 else 0.0


def _holm(p_values: list[float]) -> list[float]:
    """Return p-values that may be compared with one level however many there are."""
    corrected = [1.0] * len(p_values)
    running = 0.0
    for place, which in enumerate(np.argsort(p_values, kind="stable").tolist()):
        running = max(running, min(1.0, (len(p_values) - place) * p_values[which]))
        corrected[which] = running
    return corrected
