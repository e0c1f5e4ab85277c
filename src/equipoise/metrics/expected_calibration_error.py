"""Expected calibration error: how far confidence is from accuracy, on average over bins."""

from __future__ import annotations

from typing import Any

from equipoise.core.names import check_choice
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState

__all__ = ["expected_calibration_error", "reliability_curve"]

_TARGETS = ("top_label", "classwise", "positive")


def expected_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    closed: str = "right",
    target: str = "top_label",
    sample_weight: Any = None,
) -> float:
    r"""Return the weighted mean over bins of |confidence - accuracy|.

    A model that says 80 % and is right 80 % of the time scores 0. The number depends on the bins and, for few rows,
    is biased upwards: see it beside its interval (:func:`equipoise.score`) and a proper score.

    .. math:: \sum_b \frac{n_b}{n} \left| \mathrm{conf}_b - \mathrm{acc}_b \right|

    Args:
        probs: Probabilities ``(n, k)``, or one column ``(n,)`` of the positive class; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width; 15 in the papers.
        closed: Bins (low, high] (``"right"``, as in all authors' codes) or [low, high) (``"left"``). Confidence 0
            and 1 are counted either way.
        target: ``"top_label"``: confidence of the predicted class against accuracy; ``"classwise"``: probability of
            each class against its frequency, mean over classes; ``"positive"``: the same for class 1 of two.
        sample_weight: One weight per row; 2 counts as two rows.

    Returns:
        A number from 0 to 1.

    Example:
        >>> expected_calibration_error([[0.95, 0.05], [1.0, 0.0]], [0, 1], n_bins=10)
        0.475

    Reference:
        Naeini et al. (2015), Obtaining well calibrated probabilities using Bayesian binning; Guo et al. (2017).

    Differs from the authors' code:
        Confidence exactly 0 is in the first bin, where theirs is in none; sums are float64.
    """
    where = "expected_calibration_error"
    check_choice(target, _TARGETS, where=where, name="target")
    state = CalibrationState.of(
        as_predictions(probs, labels, sample_weight, where=where), n_bins=n_bins, closed=closed
    )
    if target == "classwise":
        return float(state.class_errors("ece").mean())
    return state.curve(target).expected_error()


def reliability_curve(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    closed: str = "right",
    target: str = "top_label",
    sample_weight: Any = None,
) -> ReliabilityCurve:
    """Return the bins behind the expected calibration error, empty ones included.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        target: ``"top_label"`` or ``"positive"``.
        sample_weight: One weight per row.

    Returns:
        A record of bins with weight, mean confidence and frequency.

    Example:
        >>> reliability_curve([[0.9, 0.1], [0.4, 0.6]], [0, 0], n_bins=2).frequency
        array([nan, 0.5])
    """
    where = "reliability_curve"
    check_choice(target, ("top_label", "positive"), where=where, name="target")
    predictions = as_predictions(probs, labels, sample_weight, where=where)
    return CalibrationState.of(predictions, n_bins=n_bins, closed=closed).curve(target)
