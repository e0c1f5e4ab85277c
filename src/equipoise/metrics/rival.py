"""The rival of the true class, at which the dual focal loss looks."""

from __future__ import annotations

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.predictions import Predictions
from equipoise.metrics.inputs import as_predictions

__all__ = ["rival_probability"]


def rival_probability(predictions: Predictions) -> Array:
    r"""Return the largest probability below that of the true class, per row.

    .. math:: q_i = \max \{p_{ij} : p_{ij} < p_{i y_i}\}

    Args:
        predictions: Predictions with logits or probabilities of every class.

    Returns:
        ``(n,)``; 0 where no class lies below the true one.

    Example:
        >>> rival_probability(Predictions(probs=[[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]], labels=[0, 0]))
        array([0.2, 0. ])

    Reference:
        Tao et al. (2023), Dual focal loss for calibration.
    """
    rows = as_predictions(predictions, None, where="rival_probability")
    probs = rows.probs
    true = probs[np.arange(len(rows)), rows.labels][:, None]
    rival: Array = np.where(probs < true, probs, 0).max(axis=1)
    return rival
