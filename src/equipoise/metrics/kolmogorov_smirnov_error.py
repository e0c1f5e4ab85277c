"""KS calibration error: the largest gap between cumulative confidence and cumulative accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.metrics.inputs import sort_by_confidence, top_label

__all__ = ["kolmogorov_smirnov_error"]


def kolmogorov_smirnov_error(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    r"""Return the largest difference of the running sums of confidence and correctness, in order of confidence.

    It needs no bins. A model that is over-confident everywhere scores its mean gap.

    .. math:: \max_t \frac1n \Big| \sum_{i : c_i \le t} (c_i - a_i) \Big|

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(kolmogorov_smirnov_error([[0.9, 0.1], [0.6, 0.4]], [0, 1]), 6)
        0.3

    Reference:
        Gupta et al. (2021), Calibration of neural networks using splines.

    Differs from the authors' code:
        The running sum is read where the confidence changes, so rows of equal confidence may come in any order.
    """
    top = top_label(probs, labels, sample_weight, where="kolmogorov_smirnov_error")
    confidence, correct, weight = sort_by_confidence(top)
    gaps = confidence - correct if weight is None else weight * (confidence - correct)
    total = len(gaps) if weight is None else weight.sum()
    last = np.concatenate([confidence[1:] != confidence[:-1], [True]])
    return float(np.abs(np.cumsum(gaps)[last]).max() / total)
