"""Errors that are scored when asked for: their time grows with the square of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy.special import stdtrit

from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.scorecard import Score
from equipoise.metrics.gaussian_calibration_error import gaussian_calibration_error
from equipoise.metrics.kernel_calibration_error import kernel_calibration_error

__all__ = ["EXTRA", "score_extra"]

#: What can be asked for.
EXTRA: Mapping[str, Callable[[Predictions], float]] = MappingProxyType(
    {"kde_ece": kernel_calibration_error, "sece": gaussian_calibration_error}
)
#: Groups of rows that are left out in turn behind an interval.
_GROUPS = 10


def score_extra(predictions: Predictions, key: str, *, level: float = 0.95, seed: int = 0) -> Score:
    """Return an error with an interval from leaving out a tenth of the rows at a time (the grouped jackknife).

    A bootstrap would repeat rows, which then are their own neighbours and look calibrated.

    Args:
        predictions: What to score.
        key: ``"kde_ece"`` or ``"sece"``.
        level: Level of the interval.
        seed: Of the groups.

    Raises:
        SpecError: If there is no such error.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 30 + [1] * 10)
        >>> found = score_extra(rows, "sece")
        >>> round(found.value, 3), found.low <= found.value <= found.high
        (0.15, True)
    """
    measure = look_up(key, EXTRA, what="metric to ask for")
    value = float(measure(predictions))
    n_groups = min(_GROUPS, len(predictions) // 2)
    if n_groups < 2:
        return Score(value, value, value)
    group = numpy_generator(seed, "jackknife").permutation(len(predictions)) % n_groups
    without = np.array([measure(predictions.take(np.flatnonzero(group != one))) for one in range(n_groups)])
    error = np.sqrt((n_groups - 1) / n_groups * ((without - without.mean()) ** 2).sum())
    half = float(stdtrit(n_groups - 1, (1 + level) / 2) * error)
    return Score(value, max(0.0, value - half), value + half)
