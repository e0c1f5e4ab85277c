"""Scaling-binning: Platt scaling first, then bins that make its error measurable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.binning import bin_sums, equal_mass_edges
from equipoise.calibrators.curves import normalized, padded, step_at
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.platt import PlattScaling
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, softmax
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.predictions import Predictions

__all__ = ["ScalingBinning"]


@final
@dataclass(kw_only=True, eq=False)
class ScalingBinning(Calibrator):
    r"""Fit Platt scaling, cut its output into bins of equal mass, and answer with each bin's mean output.

    .. math:: p'_j \propto \frac{1}{|B_b|} \sum_{i \in B_b} g_j(p_{ij}), \qquad B_b \ni g_j(p_j)

    Needs fewer rows than a histogram, since bins average a smooth curve and not 0s and 1s, and its
    calibration error can be estimated without bias, which that of a smooth map cannot.

    Args:
        n_bins: Bins per class.

    Example:
        >>> logits, labels = [[3.0, 0.0]] * 4 + [[0.0, 3.0]] * 4, [0, 0, 0, 1, 1, 1, 1, 0]
        >>> ScalingBinning(n_bins=2).fit(logits, labels)([[3.0, 0.0]]).round(2)
        array([[0.67, 0.33]])

    Reference:
        Kumar, Liang, Ma (2019), Verified uncertainty calibration.

    Differs from the authors' code:
        As in their package, and unlike the paper's analysis, scaling, bins and means use the same rows.
    """

    n_bins: int = 10

    kind = "scaling_binning"
    gives = "probs"

    def __post_init__(self) -> None:
        if self.n_bins < 1:
            raise ValueError(f"ScalingBinning: `n_bins` must be at least 1, got {self.n_bins}.")

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: a bin's mean follows from the scaling, so the scaling's."""
        return PlattScaling().n_parameters(n_classes)

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {
            "slope": (n_classes,),
            "offset": (n_classes,),
            "edges": (n_classes, "b"),
            "values": (n_classes, "b+1"),
        }

    def _learn(self, predictions: Predictions) -> FitResult:
        scaling = PlattScaling()._learn(predictions)
        scaled = _scaled(predictions.logits.astype(np.float64, copy=False), scaling.parameters)
        weights = row_weights(predictions.weights, len(predictions))
        tables = [self._bins(scaled[:, j], weights) for j in range(scaled.shape[1])]
        edges, values = zip(*tables, strict=True)
        return FitResult(
            parameters={
                **scaling.parameters,
                "edges": padded(edges, fill=np.inf),
                "values": padded(values),
            },
            words=f"{scaling.words}; then {sum(map(len, values))} bins",
            converged=scaling.converged,
            iterations=scaling.iterations,
            certificate=scaling.certificate,
        )

    def _bins(self, scaled: Array, weights: Array) -> tuple[Array, Array]:
        edges = equal_mass_edges(scaled, weights, self.n_bins)
        mass, total = bin_sums(scaled, scaled, weights, edges)
        return edges, total / mass

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return normalized(
            step_at(_scaled(logits, parameters), parameters["edges"], parameters["values"]),
            softmax(logits),
        )


def _scaled(logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
    """Return Platt-scaled probabilities of every class against the rest."""
    return array_namespace(logits).exp(PlattScaling()._map(logits, parameters))
