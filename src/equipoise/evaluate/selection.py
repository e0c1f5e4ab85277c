"""Selection of one of several candidates by their predictions on the same held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.core.predictions import Predictions
from equipoise.evaluate.comparison import compare
from equipoise.evaluate.scorecard import Score
from equipoise.evaluate.standard_error import one_run_error
from equipoise.metrics import expected_calibration_error, negative_log_likelihood

__all__ = ["CRITERIA", "select_candidate", "selection_value"]

#: Criteria that settings are chosen by, and the metric of each; ``nll_scaled`` is the NLL after temperature scaling.
CRITERIA = {"nll": "nll", "nll_scaled": "nll", "ece": "ece"}

_LEVEL = 0.95


def selection_value(
    predictions: Predictions, *, metric: str, n_bins: int = 15, closed: str = "right"
) -> float:
    """Return the value that a candidate is selected by, the lower the better.

    Args:
        predictions: The candidate's predictions on held-out rows.
        metric: ``"nll"`` or ``"ece"``.
        n_bins: Number of bins of the ECE.
        closed: Side of a bin that belongs to it.

    Example:
        >>> selection_value(Predictions(probs=[[0.5, 0.5]], labels=[0]), metric="nll")
        0.6931...
    """
    if metric == "ece":
        return expected_calibration_error(predictions, n_bins=n_bins, closed=closed)
    return negative_log_likelihood(predictions)


def select_candidate(
    candidates: Sequence[Predictions], *, metric: str, rule: str, n_bins: int = 15, closed: str = "right"
) -> int:
    """Return the index of the candidate to use.

    Args:
        candidates: Predictions on the same rows, those of the simplest candidate first.
        metric: ``"nll"`` or ``"ece"``.
        rule: ``"one_standard_error"`` takes the first candidate that is worse than the best by no more than one
            standard error of their difference; ``"best"`` takes the best.
        n_bins: Number of bins of the ECE.
        closed: Side of a bin that belongs to it.

    Example:
        >>> close = Predictions(probs=[[0.89, 0.11]] * 10, labels=[0] * 9 + [1])
        >>> best = close.with_scores(probs=[[0.9, 0.1]] * 10)
        >>> select_candidate([close, best], metric="nll", rule="one_standard_error")
        0
        >>> select_candidate([close, best], metric="nll", rule="best")
        1
    """
    values = [selection_value(one, metric=metric, n_bins=n_bins, closed=closed) for one in candidates]
    best = int(np.argmin(values))
    if rule == "best":
        return best
    for index, one in enumerate(candidates[:best]):
        difference = compare(
            candidates[best], one, metrics=[metric], n_bins=n_bins, closed=closed, level=_LEVEL
        ).of(metric)
        interval = Score(difference.difference, difference.low, difference.high)
        if difference.difference <= one_run_error(interval, _LEVEL):
            return index
    return best
