"""Brier score: squared distance from the truth, and its split into calibration and refinement."""

from __future__ import annotations

from typing import Any, NamedTuple

from equipoise.core.names import check_choice
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.readings import read_state
from equipoise.metrics.state import CalibrationState

__all__ = ["BrierSplit", "brier_score", "brier_split", "root_brier_score"]


def brier_score(
    probs: Any, labels: Any = None, *, target: str = "canonical", sample_weight: Any = None
) -> float:
    r"""Return the mean squared distance between probabilities and the one-hot truth.

    A proper score, bounded, and gentler than the likelihood on confident mistakes.

    .. math:: \frac{1}{n} \sum_i \sum_k (p_{ik} - [y_i = k])^2

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        target: ``"canonical"``: summed over classes, from 0 to 2; ``"classwise"``: mean over classes;
            ``"top_label"``: (confidence - correct)^2; ``"positive"``: (p_1 - y)^2 of two classes.
        sample_weight: One weight per row.

    Returns:
        The score.

    Example:
        >>> round(brier_score([[0.75, 0.25]], [1]), 6)
        1.125

    Reference:
        Brier (1950), Verification of forecasts expressed in terms of probability.
    """
    where = "brier_score"
    check_choice(target, ("canonical", "classwise", "top_label", "positive"), where=where, name="target")
    predictions = as_predictions(probs, labels, sample_weight, where=where)
    state = CalibrationState.of(predictions, n_bins=1)
    if target == "top_label":
        wrong, right = state.sums.cells[0, 0].tolist(), state.sums.cells[0, 1].tolist()
        return float((wrong[2] + right[2] - 2 * right[1] + right[0]) / (wrong[0] + right[0]))
    state._check_scores()
    total = read_state(state)["brier"]
    if target == "canonical":
        return total
    if target == "positive" and state.n_classes != 2:
        raise ValueError(
            f"{where}: target='positive' is for two classes, got {state.n_classes}. Use 'classwise'."
        )
    return total / state.n_classes


class BrierSplit(NamedTuple):
    """The Brier score in two parts that add up to it.

    Attributes:
        calibration: What the gaps between probability and frequency cost; a post-hoc map can win this.
        refinement: The rest: what telling the rows apart better would win.
    """

    calibration: float
    refinement: float


def brier_split(
    probs: Any, labels: Any = None, *, n_bins: int = 15, closed: str = "right", sample_weight: Any = None
) -> BrierSplit:
    r"""Return the calibration and the refinement part of the Brier score, by classwise bins.

    .. math:: \sum_k \sum_b \frac{n_{kb}}{n} (\bar p_{kb} - \mathrm{freq}_{kb})^2

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        sample_weight: One weight per row.

    Returns:
        Two numbers that add up to the Brier score.

    Example:
        >>> split = brier_split([[0.75, 0.25], [0.75, 0.25]], [0, 0])
        >>> split.calibration, split.refinement
        (0.125, 0.0)

    Reference:
        Murphy (1973), A new vector partition of the probability score.
    """
    predictions = as_predictions(probs, labels, sample_weight, where="brier_split")
    state = CalibrationState.of(predictions, n_bins=n_bins, closed=closed)
    state._check_scores()
    found = read_state(state)
    return BrierSplit(found["brier_calibration"], found["brier_refinement"])


def root_brier_score(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    """Return the square root of the Brier score (RBS), an upper bound of the canonical calibration error.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        The root of the score summed over classes.

    Example:
        >>> round(root_brier_score([[0.75, 0.25]], [1]), 6)
        1.06066

    Reference:
        Gruber and Buettner (2022), Better uncertainty calibration via proper scores for classification and beyond.

    Differs from the authors' code:
        Their module, and the Dual Focal paper's table, report the square, that is the Brier score itself.
    """
    return float(brier_score(probs, labels, sample_weight=sample_weight) ** 0.5)
