"""Quadratic scaling: a logistic regression on the log-odds of every class and their square."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.one_vs_rest import fit_logistic, log_odds, row_weights, targets
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, log_sigmoid
from equipoise.core.arrays import array_namespace
from equipoise.core.predictions import Predictions

__all__ = ["QuadraticScaling"]


@final
@dataclass(kw_only=True, eq=False)
class QuadraticScaling(Calibrator):
    r"""Refit the log-odds of each class by a parabola; more than two classes one against the rest, then normalized.

    .. math::
        \operatorname{logit} \mu_j = a_j x_j + b_j x_j^2 + c_j, \quad x_j = \log\tfrac{p_j}{1 - p_j}, \qquad
        p'_j = \mu_j / \textstyle\sum_i \mu_i

    Beyond the fit rows the parabola goes on along its tangent.

    The right family if the log-odds within each class are normal with unequal variances, which Platt scaling's straight
    line assumes to be equal. With few rows *b* is uncertain: Platt scaling is then the safer choice.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.integers(0, 2, 2000)
        >>> x = np.where(labels == 1, rng.normal(1.0, 2.0, 2000), rng.normal(-1.0, 1.0, 2000))
        >>> calibrator = QuadraticScaling().fit(x, labels)
        >>> bool(calibrator.result.parameters["coefficients"][1, 1] > 0)  # the log of a ratio of two normal densities
        True

    Reference:
        Berta, Holzmüller, Jordan, Bach (2026), Structured matrix scaling for multi-class calibration, which discusses
        quadratic scores; the tangents are ours.

    Differs from the authors' code:
        Not compared. Linear beyond the range of the fit rows, where their parabola would turn.
    """

    kind = "quadratic"

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions."""
        return True

    def n_parameters(self, n_classes: int) -> int:
        """Count the parameters: slope, curvature and offset of every binary problem."""
        return 3 if n_classes == 2 else 3 * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"coefficients": (n_classes, 3), "range": (n_classes, 2)}

    def _learn(self, predictions: Predictions) -> FitResult:
        log_probs, log_rest = log_odds(predictions.logits.astype(np.float64, copy=False))
        x = log_probs - log_rest
        # A typical size of one keeps the two features on one scale.
        scale = np.maximum(np.abs(x).mean(axis=0), 1e-12)
        weights = row_weights(predictions.weights, len(predictions))
        start = np.stack([scale, np.zeros_like(scale), np.zeros_like(scale)], axis=1)
        found = fit_logistic(
            [x / scale, (x / scale) ** 2],
            targets(predictions.labels, x.shape[1]),
            weights / weights.sum(),
            free=np.ones(start.shape, bool),
            start=start,
        )
        sizes = np.stack([scale, scale**2, np.ones_like(scale)], axis=1)
        coefficients = found.coefficients / sizes
        bend = np.abs(coefficients[:, 1]).max()
        return FitResult(
            parameters={
                "coefficients": coefficients,
                "range": np.stack([x.min(axis=0), x.max(axis=0)], axis=1),
            },
            words=f"slopes {coefficients[:, 0].min():.3g} to {coefficients[:, 0].max():.3g}, curvature up to "
            f"{bend:.3g}; a slope of 1 and no curvature change nothing",
            converged=found.converged,
            iterations=found.iterations,
            certificate={"gap": found.gap},
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        xp = array_namespace(logits)
        a, b, c = (parameters["coefficients"][:, j] for j in range(3))
        low, high = parameters["range"][:, 0], parameters["range"][:, 1]
        log_probs, log_rest = log_odds(logits)
        x = log_probs - log_rest
        inside = xp.where(x < low, low, xp.where(x > high, high, x))
        slope = a + 2 * b * inside
        # Where the parabola has turned, the tangent would lead back across it.
        beyond = xp.where(slope > 0, slope, 0.0) * (x - inside)
        return log_sigmoid(a * inside + b * inside**2 + c + beyond)
