"""Platt scaling: a logistic regression on the log-odds of every class."""

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
from equipoise.core.predictions import Predictions

__all__ = ["PlattScaling"]


@final
@dataclass(kw_only=True, eq=False)
class PlattScaling(Calibrator):
    r"""Refit the log-odds of each class by a line; with more than two classes one against the rest, then normalize.

    .. math::
        \mu_j = \sigma\left(a_j \log\tfrac{p_j}{1 - p_j} + b_j\right), \qquad
        p'_j = \mu_j / \textstyle\sum_i \mu_i

    The classic for binary classifiers. It works on log-odds, where the calibrator can be the identity, not on
    probabilities, where it cannot.

    Args:
        smooth_targets: Platt's targets, (n+ + 1)/(n+ + 2) and 1/(n- + 2), which keep rare classes and
            separable rows finite.

    Example:
        >>> calibrator = PlattScaling(smooth_targets=False).fit([3.0, 3.0, -3.0, -3.0], [1, 0, 0, 1])
        >>> calibrator([3.0]).round(6)  # worth nothing: the odds are even
        array([0.])

    Reference:
        Platt (1999), Probabilistic outputs for support vector machines.

    Differs from the authors' code:
        Newton steps to the optimum; weights; several classes.
    """

    smooth_targets: bool = True

    kind = "platt"

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions."""
        return True

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: slope and offset, shared by both classes of a binary problem."""
        return 2 if n_classes == 2 else 2 * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"slope": (n_classes,), "offset": (n_classes,)}

    def _learn(self, predictions: Predictions) -> FitResult:
        logits = predictions.logits.astype(np.float64, copy=False)
        weights = row_weights(predictions.weights, len(predictions))
        wanted = targets(predictions.labels, logits.shape[1])
        if self.smooth_targets:
            positive = weights @ wanted
            negative = weights.sum() - positive
            wanted = np.where(wanted > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
        log_probs, log_rest = log_odds(logits)
        start = np.tile([1.0, 0.0], (logits.shape[1], 1))
        found = fit_logistic(
            [log_probs - log_rest],
            wanted,
            weights / weights.sum(),
            free=np.ones(start.shape, bool),
            start=start,
        )
        slope, offset = found.coefficients.T
        return FitResult(
            parameters={"slope": slope, "offset": offset},
            words=f"slopes {float(slope.min()):.3g} to {float(slope.max()):.3g}; below 1 means overconfident",
            converged=found.converged,
            iterations=found.iterations,
            certificate={"gap": found.gap},
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        log_probs, log_rest = log_odds(logits)
        score = parameters["slope"] * (log_probs - log_rest) + parameters["offset"]
        return log_sigmoid(score)
