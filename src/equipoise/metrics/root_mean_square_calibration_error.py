"""Root mean square calibration error: large gaps weigh more."""

from __future__ import annotations

from typing import Any

from equipoise.metrics.expected_calibration_error import reliability_curve

__all__ = ["root_mean_square_calibration_error"]


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
