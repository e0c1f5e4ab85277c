"""Accuracy, and the proper scores: negative log-likelihood and Brier score."""

from __future__ import annotations

from typing import Any, NamedTuple

from equipoise.core.choices import ScoreSettings
from equipoise.core.names import check_choice
from equipoise.metrics.binned import state_of
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.values import state_metrics, top_k_from_state

__all__ = [
    "BrierSplit",
    "accuracy",
    "brier_score",
    "brier_split",
    "negative_log_likelihood",
    "root_brier_score",
    "top_k_accuracy",
]


def accuracy(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    """Return the share of rows whose most probable class is the true one; the first of equals counts.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> accuracy([[0.9, 0.1], [0.4, 0.6]], [0, 0])
        0.5
    """
    predictions = as_predictions(probs, labels, sample_weight, where="accuracy")
    if predictions.weights is None:
        return float(predictions.correct.mean())
    return float(predictions.weights @ predictions.correct / predictions.weights.sum())


def top_k_accuracy(probs: Any, labels: Any = None, *, k: int = 5, sample_weight: Any = None) -> float:
    """Return the share of rows whose true class is among the ``k`` most probable.

    Args:
        probs: Probabilities ``(n, classes)``; or Predictions alone.
        labels: True classes ``(n,)``.
        k: How many guesses count.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> top_k_accuracy([[0.5, 0.3, 0.2]], [1], k=2)
        1.0
    """
    if k < 1:
        raise ValueError(f"top_k_accuracy: `k` must be at least 1, got {k}.")
    predictions = as_predictions(probs, labels, sample_weight, where="top_k_accuracy")
    state = CalibrationState(predictions.n_classes or 0 if predictions.has_scores else 0, n_bins=1, n_ranks=k)
    state.update(predictions)
    state._check_scores()
    return top_k_from_state(state, k)


def negative_log_likelihood(probs: Any, labels: Any = None, *, sample_weight: Any = None) -> float:
    r"""Return the mean of minus the logarithm of the true class's probability, in nats.

    A proper score: only the true distribution minimizes it, so no method can buy it by being vague.

    .. math:: -\frac{1}{n} \sum_i \log p_{i, y_i}

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.

    Returns:
        A number from 0 up. From logits it is exact and finite; a stored probability of exactly 0 counts as the
        smallest normal float32, 87.3 nats.

    Example:
        >>> round(negative_log_likelihood([[0.5, 0.5]], [0]), 6)
        0.693147
    """
    state = state_of(probs, labels, sample_weight, ScoreSettings(1), where="negative_log_likelihood")
    state._check_scores()
    return state_metrics(state)["nll"]


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
    state = state_of(probs, labels, sample_weight, ScoreSettings(1), where=where)
    if target == "top_label":
        wrong, right = state.arrays.cells[0].tolist()
        return float((wrong[2] + right[2] - 2 * right[1] + right[0]) / (wrong[0] + right[0]))
    state._check_scores()
    total = state_metrics(state)["brier"]
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
    state = state_of(probs, labels, sample_weight, ScoreSettings(n_bins, closed), where="brier_split")
    state._check_scores()
    found = state_metrics(state)
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
