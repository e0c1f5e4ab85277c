"""Adaptive classwise errors: ACE, and TACE, which leaves tiny probabilities out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from equipoise.core.arrays import Array
from equipoise.core.bins import check_bins
from equipoise.metrics.inputs import as_predictions

__all__ = ["thresholded_adaptive_calibration_error"]

_WHERE = "thresholded_adaptive_calibration_error"
_ELEMENTS = 1 << 23


def thresholded_adaptive_calibration_error(
    probs: Any,
    labels: Any = None,
    *,
    n_bins: int = 15,
    threshold: float = 0.0,
    keep_minimum: bool = True,
) -> float:
    r"""Return the mean over classes of the calibration error over bins of equal mass (ACE; TACE with a threshold).

    With many classes nearly all probabilities are near zero and drown the rest; the threshold sets them to zero, so
    that they share one bin.

    .. math:: \frac{1}{K} \sum_k \sum_b \frac{n_{kb}}{n} \left| \bar p_{kb} - \mathrm{freq}_{kb} \right|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal mass per class.
        threshold: Probabilities below it count as zero: 0 gives ACE, 0.01 the TACE of the paper.
        keep_minimum: Count the rows with a class's lowest probability.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(thresholded_adaptive_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 0], n_bins=2), 6)
        0.25

    Reference:
        Nixon et al. (2019), Measuring calibration in deep learning; edges as in the MDCA repository's metric.

    Differs from the authors' code:
        Their lowest bin is open below and drops each class's minimum; ``keep_minimum=False`` does the same. Sample
        weights are refused: neither construction defines them.
    """
    check_bins(n_bins, "right", where=_WHERE)
    predictions = as_predictions(probs, labels, where=_WHERE)
    if predictions.weights is not None:
        raise ValueError(f"{_WHERE}: sample weights are not defined here. Use classwise_calibration_error.")
    table, n_classes = predictions.probs, predictions.probs.shape[1]
    step = max(1, _ELEMENTS // len(table))
    errors = [
        _class_errors(table[:, k : k + step], predictions.labels, k, n_bins, threshold, keep_minimum)
        for k in range(0, n_classes, step)
    ]
    return float(np.concatenate(errors).mean())


def _class_errors(
    block: Array, labels: Array, first: int, n_bins: int, threshold: float, keep_minimum: bool
) -> Array:
    """Return the errors of some classes at once, a class per row."""
    columns = np.array(block.T, dtype=np.float64, order="C")
    columns[columns < threshold] = 0.0
    hit = labels == first + np.arange(len(columns))[:, None]
    order = np.argsort(columns, axis=1, kind="stable")
    columns = np.take_along_axis(columns, order, axis=1)
    gaps = columns - np.take_along_axis(hit, order, axis=1)
    n = columns.shape[1]
    edges = np.ones((len(columns), n_bins + 1))
    edges[:, :-1] = columns[:, np.arange(n_bins) * (n // n_bins)]
    bounds = torch.searchsorted(torch.from_numpy(columns), torch.from_numpy(edges), right=True).numpy()
    if keep_minimum:
        bounds[:, 0] = 0
    running = np.concatenate([np.zeros((len(columns), 1)), np.cumsum(gaps, axis=1)], axis=1)
    pieces = np.diff(np.take_along_axis(running, bounds, axis=1), axis=1)
    result: Array = np.abs(pieces).sum(axis=1) / n
    return result
