"""Vector scaling: a scale and an offset for every class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.fit_checks import absent_classes, describe_offsets
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.softmax_regression import Diagonal, QuadraticPenalty, fit_softmax
from equipoise.calibrators.temperature_search import fit_beta
from equipoise.core.array_functions import AnyArray
from equipoise.core.predictions import Predictions

__all__ = ["VectorScaling"]


@final
@dataclass(kw_only=True, eq=False)
class VectorScaling(Calibrator):
    r"""Give each class its own scale and offset.

    .. math:: p = \operatorname{softmax}(w \circ z + b)

    Repairs classes that are over- or under-predicted, which a temperature cannot. Without a penalty it
    over-fits where classes are many and rows few; :class:`StructuredVectorScaling` is the safe form.

    Example:
        >>> logits, labels = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [0, 1, 1, 1]
        >>> calibrator = VectorScaling().fit(logits, labels)
        >>> round(calibrator.result.nll_after, 3)  # a coin for the first two rows, certain for the others
        0.347

    Reference:
        Guo et al. (2017), On calibration of modern neural networks.

    Differs from the authors' code:
        Newton steps to the optimum from the best temperature, not a fixed number of gradient steps.
        The offsets are centered, which changes no probability.
    """

    kind = "vector"

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: two per class."""
        return 2 * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"scale": (n_classes,), "offset": (n_classes,)}

    def _learn(self, predictions: Predictions) -> FitResult:
        logits, labels, weights = predictions.logits, predictions.labels, predictions.weights
        beta = fit_beta(logits, labels, weights).beta
        start = np.zeros((2, logits.shape[1]))
        start[0] = beta
        none = QuadraticPenalty(np.zeros_like(start), start)
        found = fit_softmax(logits, labels, weights, shape=Diagonal(), start=start, penalty=none)
        scale, offset = found.theta
        return FitResult(
            parameters={"scale": scale, "offset": offset - offset.mean()},
            words=describe_offsets(offset - offset.mean(), predictions.class_names),
            converged=found.converged,
            iterations=found.iterations,
            certificate=found.certificate,
            warnings=(*absent_classes(labels, weights, logits.shape[1]), *found.warnings),
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return parameters["scale"] * logits + parameters["offset"]
