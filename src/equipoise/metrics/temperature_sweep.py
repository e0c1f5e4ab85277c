"""What dividing the logits by a temperature would do, over a range of temperatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.grid import grid_of
from equipoise.core.predictions import Predictions
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.values import state_metrics

__all__ = ["TemperatureSweep", "sweep_temperatures"]


@final
@dataclass(frozen=True, eq=False)
class TemperatureSweep:
    """Errors at each of several temperatures.

    Attributes:
        temperature: The temperatures.
        ece: Expected calibration error at each.
        nll: Negative log-likelihood at each.
    """

    temperature: Array
    ece: Array
    nll: Array


def sweep_temperatures(
    predictions: Predictions, *, temperatures: Sequence[float] | None = None, n_bins: int = 15
) -> TemperatureSweep:
    """Return ECE and NLL of the predictions at each of several temperatures.

    For looking, not for choosing: the lowest point on these rows flatters itself. Fit a calibrator on the split
    ``calib`` instead. A probability of exactly 0 counts as half of the least step between the probabilities.

    Args:
        predictions: Predictions with logits or probabilities of every class.
        temperatures: Numbers above 0; by default 33 from 1/4 to 8, evenly spaced in their logarithm.
        n_bins: Bins of equal width.

    Returns:
        Both errors by temperature.

    Example:
        >>> sweep = sweep_temperatures(Predictions(logits=[[4.0, 0.0]] * 3, labels=[0, 0, 1]), temperatures=[1, 5.77])
        >>> bool(sweep.nll[1] < sweep.nll[0])
        True
    """
    where = "sweep_temperatures"
    rows = as_predictions(predictions, None, where=where)
    values = np.geomspace(0.25, 8.0, 33) if temperatures is None else np.asarray(temperatures, float)
    if values.ndim != 1 or not len(values) or not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(
            f"{where}: `temperatures` must be numbers above 0, got {temperatures!r}. Try [0.5, 1, 2]."
        )
    logits = rows.logits
    if rows.kind == "probs" and rows.scores is not None and (rows.probs <= 0).any():
        half = grid_of(rows.scores, rows.precision).half_steps
        logits = np.log(np.maximum(rows.probs, half))
    found = [
        state_metrics(CalibrationState.of(rows.with_scores(logits=logits / value), n_bins=n_bins))
        for value in values
    ]
    return TemperatureSweep(
        values, np.array([row["ece"] for row in found]), np.array([row["nll"] for row in found])
    )
