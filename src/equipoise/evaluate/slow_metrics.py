"""Errors that are scored when asked for: their time grows with the square of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import stdtrit

from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.scorecard import Score
from equipoise.metrics.clusters import find_clusters
from equipoise.metrics.kernel import gaussian_calibration_error, kernel_calibration_error

__all__ = ["EXTRA", "score_extra"]

#: What can be asked for.
EXTRA: Mapping[str, Callable[[Predictions], float]] = MappingProxyType(
    {"kde_ece": kernel_calibration_error, "sece": gaussian_calibration_error}
)
#: Groups of rows that are left out in turn behind an interval.
_GROUPS = 10


def score_extra(
    predictions: Predictions,
    metric: str | Callable[[Predictions], float],
    *,
    level: float = 0.95,
    seed: int = 0,
    within: tuple[float, float] = (0.0, math.inf),
    clusters: Any = None,
) -> Score:
    """Return an error with an interval from leaving out a tenth of the rows at a time (the grouped jackknife).

    A bootstrap would repeat rows, which then are their own neighbors and look calibrated.

    Args:
        predictions: What to score.
        metric: ``"kde_ece"``, ``"sece"``, or a function of one's own.
        level: Level of the interval.
        seed: Of the groups.
        within: What the metric can be, which the interval does not leave.
        clusters: Where rows depend on each other: one value per row, or the name of a column of groups. Clusters are
            then left out as wholes.

    Raises:
        SpecError: If there is no such error.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 30 + [1] * 10)
        >>> found = score_extra(rows, "sece")
        >>> round(found.value, 3), found.low <= found.value <= found.high
        (0.15, True)
    """
    measure = metric if callable(metric) else look_up(metric, EXTRA, what="metric to ask for")
    value = float(measure(predictions))
    n_units, unit = len(predictions), np.arange(len(predictions))
    if clusters is not None:
        unit = find_clusters(clusters, predictions, where="score_extra").codes
        n_units = int(unit.max()) + 1
    n_groups = min(_GROUPS, n_units if clusters is not None else n_units // 2)
    if n_groups < 2:
        return Score(value, value, value)
    group = (numpy_generator(seed, "jackknife").permutation(n_units) % n_groups)[unit]
    without = np.array([measure(predictions.take(np.flatnonzero(group != one))) for one in range(n_groups)])
    error = np.sqrt((n_groups - 1) / n_groups * ((without - without.mean()) ** 2).sum())
    half = float(stdtrit(n_groups - 1, (1 + level) / 2) * error)
    return Score(value, max(within[0], value - half), min(within[1], value + half))
