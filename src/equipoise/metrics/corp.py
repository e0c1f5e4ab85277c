"""CORP: a score split into miscalibration, discrimination and uncertainty by isotonic recalibration."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, final

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from equipoise.core.arrays import Array
from equipoise.core.names import check_choice
from equipoise.metrics.inputs import as_predictions

__all__ = ["CorpCurve", "CorpSplit", "corp_curve", "corp_split"]


@final
class CorpSplit(NamedTuple):
    """Parts of a mean score: ``score = miscalibration - discrimination + uncertainty``.

    Attributes:
        score: Mean score of the given probabilities.
        miscalibration: What isotonic recalibration gains; 0 if the probabilities are calibrated.
        discrimination: What the recalibrated probabilities gain over the base rate.
        uncertainty: Score of the base rate.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float

    @property
    def refinement(self) -> float:
        """Score after recalibration, ``uncertainty - discrimination``."""
        return self.uncertainty - self.discrimination


@final
class CorpCurve(NamedTuple):
    """A reliability diagram without bins: steps of the isotonic fit.

    Attributes:
        low: Smallest forecast of every step, ascending.
        high: Largest forecast.
        forecast: Mean forecast.
        frequency: Frequency of the event, never decreasing.
        weight: Number of rows, or sum of their weights.
    """

    low: Array
    high: Array
    forecast: Array
    frequency: Array
    weight: Array


def corp_split(
    probs: Any,
    labels: Any = None,
    *,
    sample_weight: Any = None,
    event: Literal["top", "positive"] = "top",
    score: Literal["brier", "log"] = "brier",
) -> CorpSplit:
    r"""Split a score of the probability of an event into miscalibration, discrimination and uncertainty.

    .. math:: S(p) = \underbrace{S(p) - S(\tilde p)}_{MCB} - \underbrace{(S(\bar y) - S(\tilde p))}_{DSC}
        + \underbrace{S(\bar y)}_{UNC}

    Here :math:`\tilde p` is the isotonic fit of the outcomes on the forecasts, and :math:`\bar y` the base rate.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.
        event: ``"top"``: the predicted class is right, and the forecast is its confidence. ``"positive"``: class 1 of
            two classes.
        score: ``"brier"``, the squared error of the one probability; or ``"log"``, the log-loss, which is infinite if
            a certain forecast is wrong.

    Returns:
        The score and its parts.

    Example:
        >>> [round(part, 3) for part in corp_split([0.9, 0.8, 0.3, 0.2], [1, 0, 1, 0], event="positive")]
        [0.295, 0.17, 0.125, 0.25]

    Reference:
        Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for probabilistic classifiers.
    """
    check_choice(score, ("brier", "log"), where="corp_split", name="score")
    forecast, outcome, weight = _event(probs, labels, sample_weight, event, where="corp_split")
    curve = _curve(forecast, outcome, weight)
    share = curve.weight / curve.weight.sum()
    base = float(share @ curve.frequency)
    if score == "brier":
        given = float(np.average((forecast - outcome) ** 2, weights=weight))
        recalibrated = float(share @ (curve.frequency * (1 - curve.frequency)))
        uncertainty = base * (1 - base)
    else:
        losses = -xlogy(outcome, forecast) - xlogy(1 - outcome, 1 - forecast)
        given = float(np.average(losses, weights=weight))
        recalibrated = float(share @ _entropy(curve.frequency))
        uncertainty = float(_entropy(np.array([base]))[0])
    return CorpSplit(given, max(0.0, given - recalibrated), max(0.0, uncertainty - recalibrated), uncertainty)


def corp_curve(
    probs: Any,
    labels: Any = None,
    *,
    sample_weight: Any = None,
    event: Literal["top", "positive"] = "top",
) -> CorpCurve:
    """Return the numbers of the CORP reliability diagram: frequency of an event against its forecast.

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        sample_weight: One weight per row.
        event: ``"top"`` or ``"positive"``, as in :func:`corp_split`.

    Returns:
        One entry per step of the isotonic fit.

    Example:
        >>> corp_curve([0.9, 0.8, 0.3, 0.2], [1, 0, 1, 0], event="positive").frequency
        array([0. , 0.5, 1. ])
    """
    return _curve(*_event(probs, labels, sample_weight, event, where="corp_curve"))


def _event(
    probs: Any, labels: Any, sample_weight: Any, event: str, *, where: str
) -> tuple[Array, Array, Array]:
    """Return forecasts, outcomes and weights of an event; rows of weight zero are left out."""
    check_choice(event, ("top", "positive"), where=where, name="event")
    predictions = as_predictions(probs, labels, sample_weight, where=where)
    if event == "top":
        forecast, outcome = predictions.confidence, predictions.correct
    elif predictions.probs.shape[1] == 2:
        forecast, outcome = predictions.probs[:, 1], predictions.labels == 1
    else:
        raise ValueError(
            f"{where}: `event` 'positive' requires two classes, got {predictions.probs.shape[1]}. Use 'top'."
        )
    weight = np.ones(len(predictions)) if predictions.weights is None else predictions.weights
    kept = weight > 0
    return (
        np.clip(forecast[kept].astype(np.float64), 0.0, 1.0),
        outcome[kept].astype(np.float64),
        weight[kept].astype(np.float64),
    )


def _curve(forecast: Array, outcome: Array, weight: Array) -> CorpCurve:
    values, place = np.unique(forecast, return_inverse=True)
    mass = np.bincount(place, weight)
    fitted = isotonic_regression(np.bincount(place, weight * outcome) / mass, weights=mass)
    starts, ends = fitted.blocks[:-1], fitted.blocks[1:]
    total = np.add.reduceat(mass, starts)
    return CorpCurve(
        low=values[starts],
        high=values[ends - 1],
        forecast=np.add.reduceat(mass * values, starts) / total,
        frequency=np.clip(fitted.x[starts], 0.0, 1.0),
        weight=total,
    )


def _entropy(rate: Array) -> Array:
    result: Array = -xlogy(rate, rate) - xlogy(1 - rate, 1 - rate)
    return result
