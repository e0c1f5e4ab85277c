"""Classwise calibration error: every class's probability against its own frequency."""

from __future__ import annotations

from typing import Any

from equipoise.core.arrays import Array
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState

__all__ = ["classwise_calibration_error", "classwise_calibration_errors"]


def classwise_calibration_error(
    probs: Any, labels: Any = None, *, n_bins: int = 15, closed: str = "right", sample_weight: Any = None
) -> float:
    r"""Return the mean over classes of each class's own expected calibration error.

    It sees what the top label hides: classes that are always given too much or too little, even when they never win.
    With many classes most probabilities are near zero, and so is the number.

    .. math:: \frac{1}{K} \sum_k \sum_b \frac{n_{kb}}{n} \left| \bar p_{kb} - \mathrm{freq}_{kb} \right|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1. Some papers print the sum over classes, or thousandths.

    Example:
        >>> classwise_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 0])
        0.25

    Reference:
        Kull et al. (2019), Beyond temperature scaling; Nixon et al. (2019), Measuring calibration in deep learning
        (there: static calibration error).

    Differs from the authors' code:
        Classes are the columns of ``probs``; the focal repository counts them by the largest label, which is wrong if
        the last class is absent. A probability of exactly 0 is in the first bin.
    """
    errors = classwise_calibration_errors(
        probs, labels, n_bins=n_bins, closed=closed, sample_weight=sample_weight
    )
    return float(errors.mean())


def classwise_calibration_errors(
    probs: Any, labels: Any = None, *, n_bins: int = 15, closed: str = "right", sample_weight: Any = None
) -> Array:
    """Return the expected calibration error of each class, ``(k,)``; the arguments are those of the mean above.

    Example:
        >>> classwise_calibration_errors([[0.75, 0.25], [0.75, 0.25]], [0, 0])
        array([0.25, 0.25])
    """
    predictions = as_predictions(probs, labels, sample_weight, where="classwise_calibration_error")
    return CalibrationState.of(predictions, n_bins=n_bins, closed=closed).class_errors("ece")
