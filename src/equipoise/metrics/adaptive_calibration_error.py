"""Adaptive calibration error: bins that hold equally many rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.bins import check_bins
from equipoise.core.names import check_choice
from equipoise.metrics.inputs import sort_by_confidence, top_label

__all__ = ["adaptive_calibration_error", "adaptive_edges"]

_WHERE = "adaptive_calibration_error"


def adaptive_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    construction: str = "interpolated",
    keep_minimum: bool = True,
    sample_weight: Any = None,
) -> float:
    r"""Return the expected calibration error over bins of equal mass of the top-label confidence.

    Where most confidences lie in the last equal-width bin, equal mass still resolves them.

    .. math:: \sum_b \frac{n_b}{n} \left| \mathrm{conf}_b - \mathrm{acc}_b \right|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal mass.
        construction: ``"interpolated"``: edges interpolated between sorted confidences, as in the focal, AdaFocal,
            MbLS and CALS repositories; ties make bins unequal. ``"chunks"``: sorted rows cut into pieces of
            ``ceil(n / n_bins)``, as in Kumar et al. (2019); rows of equal confidence are shared out evenly.
        keep_minimum: Count the rows of lowest confidence (interpolated edges only).
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> adaptive_calibration_error([[0.9, 0.1], [0.6, 0.4]], [0, 1], n_bins=1)
        0.25

    Reference:
        Mukhoti et al. (2020), Calibrating deep neural networks using focal loss; Nguyen and O'Connor (2015).

    Differs from the authors' code:
        Their first bin is open below, so every row of the lowest confidence is dropped; ``keep_minimum=False`` does
        the same.
    """
    check_bins(n_bins, "right", where=_WHERE)
    check_choice(construction, ("interpolated", "chunks"), where=_WHERE, name="construction")
    confidence, correct, weight = sort_by_confidence(top_label(probs, labels, sample_weight, where=_WHERE))
    gaps = confidence - correct if weight is None else weight * (confidence - correct)
    if construction == "interpolated":
        edges = _interpolated_edges(confidence, weight, n_bins)
        bounds = np.searchsorted(confidence, edges, side="right")
        if keep_minimum:
            bounds[0] = 0
        total = len(gaps) if weight is None else weight.sum()
        # Bins without rows begin where the next one does, and a sum from there would not be theirs.
        starts = bounds[:-1][np.diff(bounds) > 0]
        sums = np.add.reduceat(gaps[: bounds[-1]], starts) if len(starts) else np.zeros(1)
        return float(np.abs(sums).sum() / total)
    return _chunked(confidence, gaps, weight, n_bins)


def adaptive_edges(probs: Any, labels: Any = None, *, n_bins: int = 15, sample_weight: Any = None) -> Array:
    """Return the interpolated edges of the bins of equal mass, ``(n_bins + 1,)``.

    Example:
        >>> adaptive_edges([[0.9, 0.1], [0.6, 0.4]], [0, 1], n_bins=2)
        array([0.6, 0.9, 0.9])
    """
    check_bins(n_bins, "right", where="adaptive_edges")
    confidence, _, weight = sort_by_confidence(
        top_label(probs, labels, sample_weight, where="adaptive_edges")
    )
    return _interpolated_edges(confidence, weight, n_bins)


def _interpolated_edges(confidence: Array, weight: Array | None, n_bins: int) -> Array:
    edges: Array
    if weight is None:
        n = len(confidence)
        position = np.linspace(0, n, n_bins + 1)
        left = np.minimum(position.astype(np.int64), n - 1)
        right = np.minimum(left + 1, n - 1)
        share = np.minimum(position, n - 1) - left
        # This form gives equal neighbours back exactly, so no edge falls just below the rows it should hold.
        edges = confidence[left] + (confidence[right] - confidence[left]) * share
        return edges
    # A row of weight w fills the positions from the weight before it to one less than the weight up to it.
    end = np.cumsum(weight)
    knots = np.stack([end - weight, np.maximum(end - weight, end - 1)], axis=1).reshape(-1)
    edges = np.interp(np.linspace(0, end[-1], n_bins + 1), knots, np.repeat(confidence, 2))
    return edges


def _chunked(confidence: Array, gaps: Array, weight: Array | None, n_bins: int) -> float:
    """Cut the running sum of gaps, straight between ties, at equal steps of weight."""
    starts = np.flatnonzero(np.concatenate([[True], confidence[1:] != confidence[:-1]]))
    mass = np.diff(np.append(starts, len(gaps))) if weight is None else np.add.reduceat(weight, starts)
    position = np.concatenate([[0.0], np.cumsum(mass)])
    running = np.concatenate([[0.0], np.cumsum(np.add.reduceat(gaps, starts))])
    total = position[-1]
    step = np.ceil(total / n_bins)
    cuts = np.minimum(step * np.arange(n_bins + 1), total)
    return float(np.abs(np.diff(np.interp(cuts, position, running))).sum() / total)
