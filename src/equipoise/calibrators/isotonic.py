"""Isotonic regression: the best non-decreasing curve from score to frequency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from scipy.optimize import isotonic_regression

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.curves import interpolate, normalized, padded
from equipoise.calibrators.one_vs_rest import row_weights, targets
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, softmax
from equipoise.core.arrays import Array
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions

__all__ = ["IsotonicCalibration", "fit_isotonic"]

_EQUAL = 1e-12


def fit_isotonic(scores: Array, wanted: Array, weights: Array) -> tuple[Array, Array]:
    """Fit the non-decreasing curve with the least weighted squared error.

    Args:
        scores: ``(n,)``.
        wanted: ``(n,)``, what the curve should give.
        weights: ``(n,)``; rows of weight 0 are left out.

    Returns:
        Knots and values; straight lines between, level beyond.

    Example:
        >>> fit_isotonic(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4))
        (array([0.1, 0.4, 0.6, 0.9]), array([0. , 0.5, 0.5, 1. ]))
    """
    kept = weights > 0
    knots, place = np.unique(scores[kept], return_inverse=True)
    # Equal scores may differ in their last digits, by the order in which their row was summed.
    apart = np.concatenate([[True], np.diff(knots) > _EQUAL * knots[1:]])
    knots, place = knots[apart], (np.cumsum(apart) - 1)[place]
    mass = np.bincount(place, weights[kept])
    values = isotonic_regression(np.bincount(place, weights[kept] * wanted[kept]) / mass, weights=mass).x
    flat = values[1:] == values[:-1]
    inner = np.concatenate([[False], flat]) & np.concatenate([flat, [False]])
    return knots[~inner], values[~inner]


@final
@dataclass(kw_only=True, eq=False)
class IsotonicCalibration(Calibrator):
    r"""Replace scores by the frequency found at them, as a non-decreasing curve.

    .. math:: p'_j \propto f_j(p_j), \qquad f_j = \arg\min_{f \text{ non-decreasing}} \sum_i (f(p_{ij}) - 1[y_i = j])^2

    No family is assumed, so it needs thousands of rows; it may answer exactly 0, which log-loss punishes
    without bound on a surprise.

    Args:
        share: ``"classwise"``: a curve per class, one against the rest. ``"pooled"``: one curve for all, which
            keeps the order of classes within a row.

    Example:
        >>> logits, labels = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [0, 1, 1, 0]
        >>> IsotonicCalibration().fit(logits, labels)([[2.0, 0.0]])
        array([[0.5, 0.5]])

    Reference:
        Zadrozny, Elkan (2002), Transforming classifier scores into accurate multiclass probability estimates;
        pooled: Zhang, Kailkhura, Han (2020), Mix-n-Match.

    Differs from the authors' code:
        Rows whose curves all give 0 keep their probabilities. The pooled form is normalized too.
    """

    share: Literal["classwise", "pooled"] = "classwise"

    kind = "isotonic"
    gives = "probs"

    def __post_init__(self) -> None:
        check_choice(self.share, ("classwise", "pooled"), where="IsotonicCalibration", name="share")
        self.preserves_order = self.preserves_accuracy = self.share == "pooled"

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions."""
        return self.share == "classwise"

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: about a dozen steps per curve."""
        return 12 if self.share == "pooled" else 12 * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return dict.fromkeys(("knots", "values"), (1 if self.share == "pooled" else n_classes, "p"))

    def _learn(self, predictions: Predictions) -> FitResult:
        probs = predictions.probs.astype(np.float64)
        wanted = targets(predictions.labels, probs.shape[1])
        weights = row_weights(predictions.weights, len(probs))
        if self.share == "pooled":
            curves = [fit_isotonic(probs.ravel(), wanted.ravel(), np.repeat(weights, probs.shape[1]))]
        else:
            columns = zip(np.ascontiguousarray(probs.T), np.ascontiguousarray(wanted.T), strict=True)
            curves = [fit_isotonic(*column, weights) for column in columns]
        knots, values = zip(*curves, strict=True)
        return FitResult(
            parameters={"knots": padded(knots, width=2), "values": padded(values, width=2)},
            words=f"{sum(map(len, knots))} knots on {len(curves)} curve{'s' * (len(curves) > 1)}",
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        probs = softmax(logits)
        if self.share == "classwise":
            return normalized(interpolate(probs, parameters["knots"], parameters["values"]), probs)
        curve = interpolate(probs.reshape(-1, 1), parameters["knots"], parameters["values"])
        # A trace of the input parts what the curve ties, as the authors do.
        return normalized(curve.reshape(probs.shape) + 1e-9 * probs, probs)
