"""Average calibration error: every bin with rows counts the same."""

from __future__ import annotations

from typing import Any

from equipoise.metrics.expected_calibration_error import reliability_curve

__all__ = ["average_calibration_error"]


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
