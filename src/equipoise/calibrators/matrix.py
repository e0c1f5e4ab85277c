"""Matrix scaling: any linear map of the logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.fit_checks import absent_classes, check_enough_rows, describe_offsets
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.softmax_regression import Full, QuadraticPenalty, fit_softmax
from equipoise.calibrators.temperature_search import fit_beta
from equipoise.core.array_functions import AnyArray
from equipoise.core.predictions import Predictions

__all__ = ["MatrixScaling"]


@final
@dataclass(kw_only=True, eq=False)
class MatrixScaling(Calibrator):
    r"""Map the logits by a matrix and an offset.

    .. math:: p = \operatorname{softmax}(W z + b)

    It can undo confusions between classes, and has so many parameters that it over-fits beyond a few
    classes; :class:`StructuredMatrixScaling` and :class:`DirichletCalibration` are the penalized forms.

    Example:
        >>> logits, labels = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [0, 1, 1, 0]
        >>> calibrator = MatrixScaling().fit(logits, labels)
        >>> round(calibrator.result.nll_after, 4)  # a coin, as log 2 says
        0.6931

    Reference:
        Guo et al. (2017), On calibration of modern neural networks.

    Differs from the authors' code:
        Newton steps to the optimum from the best temperature. Equivalent maps exist (a common row added to
        *W*); the one nearest to that start is taken.
    """

    kind = "matrix"

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: a row and an offset per class."""
        return n_classes * (n_classes + 1)

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"matrix": (n_classes, n_classes), "offset": (n_classes,)}

    def _learn(self, predictions: Predictions) -> FitResult:
        logits, labels, weights = predictions.logits, predictions.labels, predictions.weights
        n_classes = logits.shape[1]
        check_enough_rows(len(labels), self.n_parameters(n_classes), where="MatrixScaling")
        beta = fit_beta(logits, labels, weights).beta
        start = beta * np.eye(n_classes, n_classes + 1)
        none = QuadraticPenalty(np.zeros_like(start), start)
        found = fit_softmax(logits, labels, weights, shape=Full(), start=start, penalty=none)
        matrix, offset = found.theta[:, :-1], found.theta[:, -1]
        return FitResult(
            parameters={"matrix": matrix, "offset": offset},
            words=describe_offsets(offset, predictions.class_names),
            converged=found.converged,
            iterations=found.iterations,
            certificate=found.certificate,
            warnings=(*absent_classes(labels, weights, n_classes), *found.warnings),
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return logits @ parameters["matrix"].T + parameters["offset"]
