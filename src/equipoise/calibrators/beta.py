"""Beta calibration: a logistic regression on log p and log(1 - p) of every class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.one_vs_rest import LogisticFit, fit_logistic, log_odds, row_weights, targets
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, log_sigmoid
from equipoise.core.arrays import Array
from equipoise.core.predictions import Predictions

__all__ = ["BetaCalibration"]


@final
@dataclass(kw_only=True, eq=False)
class BetaCalibration(Calibrator):
    r"""Bend the probability of each class at both ends separately; more than two classes one against the rest.

    .. math::
        \operatorname{logit} \mu_j = a_j \log p_j - b_j \log(1 - p_j) + c_j, \quad a_j, b_j \ge 0, \qquad
        p'_j = \mu_j / \textstyle\sum_i \mu_i

    The right family if scores within each class follow a beta distribution; it contains the identity, which
    Platt's original on probabilities does not.

    Example:
        >>> calibrator = BetaCalibration().fit([3.0, 3.0, 3.0, 3.0, -3.0, -3.0], [1, 1, 1, 0, 0, 0])
        >>> calibrator.result.nll_after < calibrator.result.nll_before
        True

    Reference:
        Kull, Silva Filho, Flach (2017), Beyond sigmoids: how to obtain well-calibrated probabilities from binary
        classifiers with beta calibration.

    Differs from the authors' code:
        Probabilities are never clipped: log p and log(1 - p) come from the logits. As theirs: a negative
        coefficient is set to 0 (a before b) and the rest is fitted again.
    """

    kind = "beta"

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions."""
        return True

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: three per binary problem."""
        return 3 if n_classes == 2 else 3 * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"a": (n_classes,), "b": (n_classes,), "c": (n_classes,)}

    def _learn(self, predictions: Predictions) -> FitResult:
        logits = predictions.logits.astype(np.float64, copy=False)
        weights = row_weights(predictions.weights, len(predictions))
        log_probs, log_rest = log_odds(logits)
        found = _fit_within_signs(
            [log_probs, -log_rest],
            targets(predictions.labels, logits.shape[1]),
            weights / weights.sum(),
        )
        a, b, c = found.coefficients.T
        return FitResult(
            parameters={"a": a, "b": b, "c": c},
            words=f"a from {float(a.min()):.3g} to {float(a.max()):.3g}, b from {float(b.min()):.3g} to "
            f"{float(b.max()):.3g}; 1 and 1 change nothing",
            converged=found.converged,
            iterations=found.iterations,
            certificate={"gap": found.gap},
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        log_probs, log_rest = log_odds(logits)
        score = parameters["a"] * log_probs - parameters["b"] * log_rest + parameters["c"]
        return log_sigmoid(score)


def _fit_within_signs(features: list[Array], wanted: Array, weights: Array) -> LogisticFit:
    """Fit freely; where a is negative fit again without a, else where b is negative without b."""
    start = np.tile([1.0, 1.0, 0.0], (wanted.shape[1], 1))
    free = np.ones(start.shape, bool)
    for name in (0, 1):
        found = fit_logistic(features, wanted, weights, free=free, start=np.where(free, start, 0.0))
        negative = (found.coefficients[:, name] < 0) & free[:, 0]
        if name == 1 or negative.any():
            free[:, name] &= ~negative
    found = fit_logistic(features, wanted, weights, free=free, start=np.where(free, start, 0.0))
    # With a held at 0 the slope in b may still be negative; then only the offset is left.
    free[:, 1] &= found.coefficients[:, 1] >= 0
    free[:, 0] &= found.coefficients[:, 0] >= 0
    return fit_logistic(features, wanted, weights, free=free, start=np.where(free, start, 0.0))
