"""Maximum calibration error: the worst bin."""

from __future__ import annotations

from typing import Any

from equipoise.metrics.expected_calibration_error import reliability_curve

__all__ = ["maximum_calibration_error"]


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
