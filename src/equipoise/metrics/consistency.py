"""The consistency test: could a calibrated model look this bad?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.choices import ScoreSettings
from equipoise.core.names import look_up
from equipoise.metrics.binned import state_of
from equipoise.metrics.intervals import check_settings, tail_probability
from equipoise.metrics.resample import Resampler
from equipoise.metrics.values import state_metrics

__all__ = ["ConsistencyTest", "consistency_test"]


class ConsistencyTest(NamedTuple):
    """The outcome of a consistency test.

    Attributes:
        metric: Which error was tested.
        value: What the model scored.
        expected: What a calibrated model with the same confidences scores on average.
        highest: What it exceeds in one of twenty samples.
        p_value: How often it scores at least as high as this model.
    """

    metric: str
    value: float
    expected: float
    highest: float
    p_value: float

    @classmethod
    def of(cls, metric: str, value: float, draws: Array) -> ConsistencyTest:
        """Return the test of a value against draws of a calibrated model.

        Example:
            >>> ConsistencyTest.of("ece", 0.5, np.array([0.1, 0.2, 0.9])).p_value
            0.5
        """
        highest = float(np.quantile(draws, 0.95))
        return cls(metric, value, float(draws.mean()), highest, tail_probability(value, draws))


def consistency_test(
    probs: Any,
    labels: Any = None,
    *,
    metric: str = "ece",
    n_bins: int = 15,
    closed: str = "right",
    n_resamples: int = 1000,
    seed: int = 0,
    sample_weight: Any = None,
) -> ConsistencyTest:
    """Test whether a calibrated model with the same confidences could score this calibration error by chance.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        metric: ``"ece"``, ``"mce"``, ``"rms_ce"``, ``"avg_ce"`` or ``"classwise_ece"``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        n_resamples: How many calibrated models to draw.
        seed: The same seed gives the same answer.
        sample_weight: One weight per row.

    Returns:
        The error, what chance explains of it, and a p-value.

    Example:
        >>> consistency_test([[0.9, 0.1]] * 50, [0] * 25 + [1] * 25).p_value < 0.01
        True
        >>> consistency_test([[0.9, 0.1]] * 50, [0] * 45 + [1] * 5).p_value > 0.5
        True

    Reference:
        Broecker and Smith (2007), Increasing the reliability of reliability diagrams.
    """
    settings = ScoreSettings(n_bins, closed, n_resamples=n_resamples, seed=seed)
    check_settings(settings, where="consistency_test")
    state = state_of(probs, labels, sample_weight, settings, where="consistency_test")
    names = ("ece", "mce", "rms_ce", "avg_ce", "classwise_ece")
    value = look_up(
        metric, {k: v for k, v in state_metrics(state).items() if k in names}, what="testable error"
    )
    draws = Resampler(state, settings).calibrated()[metric]
    return ConsistencyTest.of(metric, value, draws)
