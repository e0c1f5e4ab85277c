"""Expected calibration error with as many bins as keep accuracy rising with confidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.names import check_choice
from equipoise.metrics.inputs import sort_by_confidence, top_label

__all__ = ["sweep_calibration_error"]


def sweep_calibration_error(
    probs: Any, labels: Any = None, *, norm: str = "l1", max_bins: int | None = None
) -> float:
    """Return the calibration error over bins of equal mass, their number chosen by the monotonic sweep.

    Bins are added as long as accuracy does not fall from one bin to the next; too many bins show noise, which breaks
    the order. This lowers the bias of a fixed number of bins.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        norm: ``"l1"`` for mean absolute, ``"l2"`` for root mean square gaps.
        max_bins: Stop at this many bins; by default at one per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(sweep_calibration_error([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 6)
        0.35

    Reference:
        Roelofs et al. (2022), Mitigating bias in calibration error estimation.

    Differs from the authors' code:
        Rows of equal confidence are put in order of correctness, so the result does not depend on their order. Sample
        weights are refused: the sweep is defined by counting rows.
    """
    where = "sweep_calibration_error"
    check_choice(norm, ("l1", "l2"), where=where, name="norm")
    top = top_label(probs, labels, where=where)
    if top.weight is not None:
        raise ValueError(f"{where}: sample weights are not defined here. Use expected_calibration_error.")
    confidence, correct, _ = sort_by_confidence(top)
    sums = np.concatenate([[[0.0, 0.0]], np.cumsum(np.stack([confidence, correct], axis=1), axis=0)])
    n, best = len(correct), 0.0
    most = min(n, max_bins or n)
    # If no right prediction stands below a wrong one, accuracy rises whatever the bins.
    fewest = most if (np.diff(correct) >= 0).all() else 1
    for n_bins in range(fewest, most + 1):
        bounds = np.linspace(0, n, n_bins + 1).round().astype(np.int64)
        count = np.diff(bounds)
        pieces = np.diff(sums[bounds], axis=0)
        if (np.diff(pieces[:, 1] / count) < 0).any():
            break
        best = _error(pieces, count, norm)
    return best


def _error(pieces: Array, count: Array, norm: str) -> float:
    gap = (pieces[:, 0] - pieces[:, 1]) / count
    share = count / count.sum()
    return float((share * np.abs(gap)).sum() if norm == "l1" else np.sqrt((share * gap**2).sum()))
