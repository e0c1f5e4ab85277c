"""Dirichlet calibration: a penalized linear map of the log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.fit_checks import (
    absent_classes,
    check_enough_rows,
    check_not_negative,
    describe_offsets,
)
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.softmax_regression import Full, QuadraticPenalty, fit_softmax
from equipoise.core.array_functions import AnyArray, log_softmax
from equipoise.core.predictions import Predictions

__all__ = ["DirichletCalibration"]


@final
@dataclass(kw_only=True, eq=False)
class DirichletCalibration(Calibrator):
    r"""Map log-probabilities by a matrix and an offset, with the off-diagonal and offsets held small (ODIR).

    .. math::
        p' = \operatorname{softmax}(W \log p + b), \qquad
        \text{NLL} + \frac{\lambda}{k(k-1)} \sum_{i \ne j} W_{ij}^2 + \frac{\mu}{k} \sum_i b_i^2

    The natural map if scores within each class follow a Dirichlet distribution. The penalty does not grow
    with the number of classes, so many classes still need many rows; far too few are refused.

    Args:
        off_diagonal: Strength on the off-diagonal of *W* (lambda).
        offset: Strength on *b* (mu).

    Example:
        >>> logits, labels = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [0, 1, 1, 0]
        >>> calibrator = DirichletCalibration().fit(logits, labels)
        >>> calibrator.result.nll_after < calibrator.result.nll_before
        True

    Reference:
        Kull et al. (2019), Beyond temperature scaling: obtaining well-calibrated multiclass probabilities with
        Dirichlet calibration.

    Differs from the authors' code:
        They leave the sums undivided by the number of terms unless asked, and subtract a reference row before
        the penalty, which changes it.
    """

    off_diagonal: float = 0.01
    offset: float = 0.01

    kind = "dirichlet"

    def __post_init__(self) -> None:
        for name in ("off_diagonal", "offset"):
            check_not_negative(getattr(self, name), where="DirichletCalibration", name=name)

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: a row and an offset per class."""
        return n_classes * (n_classes + 1)

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"matrix": (n_classes, n_classes), "offset": (n_classes,)}

    def _learn(self, predictions: Predictions) -> FitResult:
        labels, weights = predictions.labels, predictions.weights
        features = log_softmax(predictions.logits.astype(np.float64, copy=False))
        n_classes = features.shape[1]
        check_enough_rows(len(labels), self.n_parameters(n_classes), where="DirichletCalibration")
        start = np.eye(n_classes, n_classes + 1)
        strength = np.full_like(start, self.off_diagonal / max(1, n_classes * (n_classes - 1)))
        np.fill_diagonal(strength, 0.0)
        strength[:, -1] = self.offset / n_classes
        penalty = QuadraticPenalty(strength, np.zeros_like(start))
        found = fit_softmax(features, labels, weights, shape=Full(), start=start, penalty=penalty)
        matrix, offset = found.theta[:, :-1], found.theta[:, -1]
        return FitResult(
            parameters={"matrix": matrix, "offset": offset},
            words=describe_offsets(offset, predictions.class_names),
            converged=found.converged,
            iterations=found.iterations,
            certificate={**found.certificate, "objective": found.objective},
            warnings=(*absent_classes(labels, weights, n_classes), *found.warnings),
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return log_softmax(logits) @ parameters["matrix"].T + parameters["offset"]
