"""SECE: calibration error with accuracy smoothed over neighbouring confidences by a Gaussian kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.metrics.inputs import check_bandwidth, top_label

__all__ = ["gaussian_calibration_error"]

_ELEMENTS = 1 << 22


@np.errstate(under="ignore")
def gaussian_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    bandwidth: float = 0.01,
    include_self: bool = True,
    power: int = 1,
    sample_weight: Any = None,
) -> float:
    r"""Return the mean distance between confidence and the accuracy of rows with similar confidence.

    .. math:: \frac1n \sum_i \Big| \frac{\sum_j K_h(c_i - c_j) a_j}{\sum_j K_h(c_i - c_j)} - c_i \Big|^q, \quad
        K_h(u) = e^{-u^2 / 2 h^2}

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        bandwidth: Width *h*; the paper uses 0.01.
        include_self: Let a row be its own neighbour. Where neighbours are few this pulls every accuracy to 0 or 1 and
            the error up; without it, the nearest other row decides.
        power: The power *q*; no root is taken.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(gaussian_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 6)
        0.4

    Reference:
        Wang and Golebiowski (2024), Towards unbiased calibration using meta-regularization. Reconstruction: no code is
        public, and whether a row counts itself is not said.
    """
    where = "gaussian_calibration_error"
    check_bandwidth(bandwidth, where=where)
    top = top_label(probs, labels, sample_weight, where=where)
    confidence, correct = top.confidence.astype(np.float64), top.correct.astype(np.float64)
    weight = np.ones(len(correct)) if top.weight is None else top.weight
    if not include_self and len(correct) < 2:
        raise ValueError(f"{where}: include_self=False needs at least two rows, got {len(correct)}.")
    total, step = 0.0, max(1, _ELEMENTS // len(correct))
    for start in range(0, len(correct), step):
        rows = np.arange(start, min(start + step, len(correct)))
        log_kernel = -0.5 * ((confidence[rows, None] - confidence) / bandwidth) ** 2
        if not include_self:
            log_kernel[np.arange(len(rows)), rows] = -np.inf
        # Shifting by the nearest neighbour keeps isolated rows from dividing zero by zero.
        kernel = np.exp(log_kernel - log_kernel.max(axis=1, keepdims=True)) * weight
        smooth = kernel @ correct / kernel.sum(axis=1)
        total += float(weight[rows] @ np.abs(smooth - confidence[rows]) ** power)
    return total / float(weight.sum())
