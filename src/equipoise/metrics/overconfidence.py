"""Signed miscalibration: is the model too sure, or not sure enough?"""

from __future__ import annotations

from typing import Any

from equipoise.metrics.expected_calibration_error import reliability_curve

__all__ = ["confidence_gap", "over_confidence_error"]


def confidence_gap(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    """Return mean confidence minus accuracy: above zero is over-confident, below is under-confident.

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
    r"""Return the over-confidence error (OE), which punishes confident mistakes the more the surer they are.

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
