"""Calibration errors with the part taken off that chance alone puts on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from equipoise.core.arrays import Array
from equipoise.core.names import check_choice
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState

__all__ = ["debiased_calibration_error", "debiased_from_curve"]


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
    predictions = as_predictions(probs, labels, sample_weight, where=where)
    state = CalibrationState.of(predictions, n_bins=n_bins, closed=closed)
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
