"""Errors over bins of equal width: how far confidence is from accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from equipoise.core.arrays import Array
from equipoise.core.choices import ScoreSettings
from equipoise.core.names import check_choice
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState

__all__ = [
    "average_calibration_error",
    "classwise_calibration_error",
    "classwise_calibration_errors",
    "confidence_gap",
    "debiased_calibration_error",
    "debiased_from_curve",
    "expected_calibration_error",
    "maximum_calibration_error",
    "over_confidence_error",
    "reliability_curve",
    "root_mean_square_calibration_error",
    "state_of",
]

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

    A model that says 80% and is right 80% of the time scores 0. The number depends on the bins and, for few rows,
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
    state = state_of(probs, labels, sample_weight, ScoreSettings(n_bins, closed), where=where)
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
    return state_of(probs, labels, sample_weight, ScoreSettings(n_bins, closed), where=where).curve(target)


def maximum_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    closed: str = "right",
    target: str = "top_label",
    sample_weight: Any = None,
) -> float:
    r"""Return the largest |confidence - accuracy| over bins that hold rows.

    The worst bin is often the one with the fewest rows: read it beside the counts.

    .. math:: \max_b \left| \mathrm{conf}_b - \mathrm{acc}_b \right|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        target: ``"top_label"`` or ``"positive"``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(maximum_calibration_error([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]], [0, 1, 0], n_bins=10), 6)
        0.4

    Reference:
        Naeini et al. (2015), Obtaining well calibrated probabilities using Bayesian binning.

    Differs from the authors' code:
        Their helper indexes bins by ``ceil`` and fails for confidence 0; ours counts it.
    """
    curve = reliability_curve(
        probs, labels, n_bins=n_bins, closed=closed, target=target, sample_weight=sample_weight
    )
    return curve.errors()["mce"]


def average_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    closed: str = "right",
    target: str = "top_label",
    sample_weight: Any = None,
) -> float:
    r"""Return the plain mean over bins that hold rows of |confidence - accuracy|.

    Bins count alike however few rows they hold, so it shows errors in rarely used ranges, and more noise.

    .. math:: \frac{1}{|\{b : n_b > 0\}|} \sum_{b : n_b > 0} \left| \mathrm{conf}_b - \mathrm{acc}_b \right|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        target: ``"top_label"`` or ``"positive"``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(average_calibration_error([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]], [0, 1, 0], n_bins=10), 6)
        0.4

    Reference:
        Neumann et al. (2018), Relaxed softmax: efficient confidence auto-calibration for safe pedestrian detection.

    Differs from the authors' code:
        Nothing known.
    """
    curve = reliability_curve(
        probs, labels, n_bins=n_bins, closed=closed, target=target, sample_weight=sample_weight
    )
    return curve.errors()["avg_ce"]


def root_mean_square_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    closed: str = "right",
    target: str = "top_label",
    sample_weight: Any = None,
) -> float:
    r"""Return the root of the weighted mean over bins of the squared gap.

    Like the expected calibration error, but one large gap costs more than two small ones.

    .. math:: \sqrt{\sum_b \frac{n_b}{n} \left( \mathrm{conf}_b - \mathrm{acc}_b \right)^2}

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        target: ``"top_label"`` or ``"positive"``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(root_mean_square_calibration_error([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]], [0, 1, 0], n_bins=10), 6)
        0.4

    Reference:
        Hendrycks et al. (2019), Deep anomaly detection with outlier exposure.

    Differs from the authors' code:
        Theirs uses bins of equal mass; ours of equal width, as for the expected calibration error.
    """
    curve = reliability_curve(
        probs, labels, n_bins=n_bins, closed=closed, target=target, sample_weight=sample_weight
    )
    return curve.errors()["rms_ce"]


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
    settings, where = ScoreSettings(n_bins, closed), "classwise_calibration_error"
    return state_of(probs, labels, sample_weight, settings, where=where).class_errors("ece")


def debiased_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    closed: str = "right",
    norm: str = "l2",
    sample_weight: Any = None,
) -> float:
    r"""Return a calibration error less the bias that few rows per bin cause.

    .. math:: \sqrt{\max\Big(0, \sum_b \frac{n_b}{n} \Big[ (\mathrm{conf}_b - \mathrm{acc}_b)^2 -
        \frac{\mathrm{acc}_b (1 - \mathrm{acc}_b)}{n_b - 1} \Big]\Big)}

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        norm: ``"l2"``: the root mean square error, debiased as above; ``"l1"``: the expected calibration error less
            the excess that Gaussian noise of each bin's accuracy adds to its absolute gap.
        sample_weight: One weight per row; counts are scaled to the effective number of rows.

    Returns:
        A number from 0 to 1; 0 where chance explains everything.

    Example:
        >>> debiased_calibration_error([[0.6, 0.4]] * 5, [0, 0, 0, 1, 1])
        0.0

    Reference:
        Kumar, Liang and Ma (2019), Verified uncertainty calibration.

    Differs from the authors' code:
        Bins of equal width by default conventions here, theirs of equal mass; bins of fewer than two rows contribute
        nothing; the l1 excess is the closed form of what they simulate.
    """
    where = "debiased_calibration_error"
    check_choice(norm, ("l1", "l2"), where=where, name="norm")
    state = state_of(probs, labels, sample_weight, ScoreSettings(n_bins, closed), where=where)
    return debiased_from_curve(state.curve(), state.effective_samples, norm=norm)


def debiased_from_curve(curve: ReliabilityCurve, n_effective: float, *, norm: str = "l1") -> float:
    """Return the debiased error of a reliability curve over ``n_effective`` rows.

    Example:
        >>> debiased_from_curve(ReliabilityCurve(np.array([5.0]), np.array([3.0]), np.array([3.0])), 5.0)
        0.0
    """
    share = curve.weight / curve.weight.sum()
    count = share * n_effective
    usable = count >= 2
    share, count = share[usable], count[usable]
    gap = (curve.confidence - curve.frequency)[usable]
    variance = (curve.frequency * (1 - curve.frequency))[usable] / (count - 1)
    if norm == "l2":
        return float(np.sqrt(max(0.0, float((share * (gap**2 - variance)).sum()))))
    return float(max(0.0, float((share * (2 * np.abs(gap) - _folded_mean(gap, np.sqrt(variance)))).sum())))


@np.errstate(under="ignore")
def _folded_mean(mean: Array, deviation: Array) -> Array:
    """Return the mean of |x| for a Gaussian x."""
    ratio = np.divide(mean, deviation, out=np.full_like(mean, np.inf), where=deviation > 0)
    spread = deviation * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2)
    result: Array = spread + np.abs(mean) * (1 - 2 * ndtr(-np.abs(ratio)))
    return result


def confidence_gap(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    """Return mean confidence minus accuracy: above zero is overconfident, below is underconfident.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from -1 to 1. Zero may hide gaps that cancel; the expected calibration error shows them.

    Example:
        >>> round(confidence_gap([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 6)
        0.4
    """
    return reliability_curve(probs, labels, n_bins=1, sample_weight=sample_weight).errors()["confidence_gap"]


def over_confidence_error(
    probs: Any, labels: Any = None, *, n_bins: int = 15, closed: str = "right", sample_weight: Any = None
) -> float:
    r"""Return the overconfidence error (OE), which punishes confident mistakes the more the surer they are.

    .. math:: \sum_b \frac{n_b}{n} \, \mathrm{conf}_b \max(\mathrm{conf}_b - \mathrm{acc}_b, 0)

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(over_confidence_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 6)
        0.36

    Reference:
        Thulasidasan et al. (2019), On mixup training.
    """
    curve = reliability_curve(probs, labels, n_bins=n_bins, closed=closed, sample_weight=sample_weight)
    return curve.errors()["over_confidence_error"]


def state_of(
    probs: Any, labels: Any, sample_weight: Any, settings: ScoreSettings, *, where: str
) -> CalibrationState:
    """Return the state of arrays or Predictions, for metrics that are read from one.

    Example:
        >>> state_of([0.9, 0.2], [1, 0], None, ScoreSettings(), where="doc").n_samples
        2
    """
    predictions = as_predictions(probs, labels, sample_weight, where=where)
    return CalibrationState.of_checked(predictions, settings)
