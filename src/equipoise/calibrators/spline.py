"""Spline calibration: the slope of a smooth cumulative error is the correction of the confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.interpolate import CubicSpline

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.curves import interpolate, normalized, padded, with_top
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, softmax
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions

__all__ = ["SplineCalibration", "fit_spline"]


def fit_spline(confidence: Array, correct: Array, *, n_knots: int) -> tuple[Array, Array]:
    r"""Fit the recalibrated confidence at every confidence seen.

    With rows sorted by confidence, :math:`d_i = \frac1N \sum_{j \le i} (a_j - c_j)` is fitted at
    :math:`t_i = \frac{i-1}{N-1}` by a natural cubic spline *s*; the new confidence is :math:`c_i + s'(t_i)`.

    Args:
        confidence: ``(n,)``.
        correct: ``(n,)``, 0 or 1.
        n_knots: Knots of the spline, evenly spaced on [0, 1].

    Returns:
        Distinct confidences, ascending, and what they become, clipped to [0, 1].

    Example:
        >>> confidence, correct = np.linspace(0.5, 1.0, 101), np.tile([1.0, 0.0], 51)[:101]
        >>> knots, values = fit_spline(confidence, correct, n_knots=6)
        >>> bool(np.abs(values - 0.5).max() < 0.05)  # right every other time, whatever it says
        True
    """
    distinct, place, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    # Equal confidences share their accuracy, so that the order of rows does not matter.
    accuracy = (np.bincount(place, correct) / counts)[place[order]]
    error = np.cumsum(accuracy - confidence[order]) / len(confidence)
    t = np.linspace(0.0, 1.0, len(confidence)) if len(confidence) > 1 else np.array([0.5])
    basis = CubicSpline(np.linspace(0.0, 1.0, n_knots), np.eye(n_knots), bc_type="natural")
    heights = np.linalg.lstsq(basis(t), error, rcond=None)[0]
    slope = basis(t, 1) @ heights
    moved = np.bincount(place[order], slope) / counts
    return distinct, np.clip(distinct + moved, 0.0, 1.0)


@final
@dataclass(kw_only=True, eq=False)
class SplineCalibration(Calibrator):
    """Correct the confidence by the slope of a smoothed cumulative error; see :func:`fit_spline`.

    No bins, and smooth. Only the confidence is corrected: the other classes share the rest as before. Of top-1
    predictions the confidence of the class named is corrected, also below one half.

    Args:
        n_knots: Knots of the spline.

    Example:
        >>> logits, labels = [[3.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, 2.5]], [0, 1, 0, 0]
        >>> calibrator = SplineCalibration().fit(logits, labels)
        >>> calibrator.result.nll_after <= calibrator.result.nll_before
        True

    Reference:
        Gupta et al. (2021), Calibration of neural networks using splines.

    Differs from the authors' code:
        Theirs swaps the weights when it interpolates between two confidences; ours does not. Weights must be
        whole numbers.
    """

    n_knots: int = 6

    kind = "spline"
    gives = "probs"

    def __post_init__(self) -> None:
        if self.n_knots < 2:
            raise ValueError(f"SplineCalibration: `n_knots` must be at least 2, got {self.n_knots}.")

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: one per knot."""
        return self.n_knots

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"knots": (1, "p"), "values": (1, "p")}

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions."""
        return True

    def _claim_axes(self) -> Mapping[str, Axes]:
        return {"knots": (2, "p"), "values": (2, "p")}

    def _learn(self, predictions: Predictions) -> FitResult:
        knots, values, words = self._curve(predictions, predictions.confidence, predictions.correct)
        return FitResult(
            parameters={"knots": padded([knots], width=2), "values": padded([values], width=2)}, words=words
        )

    def _learn_claims(self, claims: Predictions) -> FitResult:
        knots, values, words = self._curve(claims, claims.probs[:, 1], claims.labels)
        # To be wrong is the rest of being right: the same curve, seen from the other end.
        mirrored = [(1 - knots)[::-1], knots], [(1 - values)[::-1], values]
        return FitResult(
            parameters=dict(
                zip(("knots", "values"), (padded(rows, width=2) for rows in mirrored), strict=True)
            ),
            words=words,
        )

    def _curve(self, predictions: Predictions, sure: Array, right: Array) -> tuple[Array, Array, str]:
        repeats = row_weights(predictions.weights, len(predictions))
        if (repeats != np.round(repeats)).any():
            raise DataError(
                "SplineCalibration.fit: `weights` must be whole numbers, since the curve counts rows. "
                "Round them, or use another calibrator."
            )
        confidence = np.repeat(sure.astype(np.float64), repeats.astype(np.int64))
        correct = np.repeat(right.astype(np.float64), repeats.astype(np.int64))
        knots, values = fit_spline(confidence, correct, n_knots=self.n_knots)
        change = float(np.mean(np.interp(confidence, knots, values) - confidence))
        direction = "lowers" if change < 0 else "raises"
        return knots, values, f"{direction} the confidence by {abs(change):.3g} on average"

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        probs = softmax(logits)
        if len(parameters["knots"]) == 2:
            return normalized(interpolate(probs, parameters["knots"], parameters["values"]), probs)
        confidence = array_namespace(probs).max(probs, axis=-1, keepdims=True)
        return with_top(probs, interpolate(confidence, parameters["knots"], parameters["values"])[:, 0])
