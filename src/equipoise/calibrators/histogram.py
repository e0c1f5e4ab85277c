"""Histogram binning: in each bin of scores, the frequency found there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.binning import bin_sums, centers, equal_mass_edges, equal_width_edges
from equipoise.calibrators.curves import normalized, padded, step_at, with_top
from equipoise.calibrators.one_vs_rest import row_weights, targets
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, softmax
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.bins import Precision, precision_of
from equipoise.core.names import check_choice
from equipoise.core.predictions import Predictions

__all__ = ["HistogramBinning"]


@final
@dataclass(kw_only=True, eq=False)
class HistogramBinning(Calibrator):
    r"""Replace scores by the frequency of the class among fit rows in the same bin.

    .. math::
        p'_j \propto \theta_{j b(p_j)}, \qquad
        \theta_{jb} = \frac{\#\{i: p_{ij} \in B_b, y_i = j\}}{\#\{i: p_{ij} \in B_b\}}

    Good at ECE, which looks through the same bins, and poor at log-loss, because all within a bin become equal.

    Args:
        n_bins: Number of right-closed bins.
        bins: Of equal ``"width"``, or of equal ``"mass"``.
        share: ``"classwise"``: a histogram per class, then normalized. ``"top_label"``: one histogram of the
            confidence; the other classes share the rest as before.

    Example:
        >>> logits, labels = [[3.0, 0.0]] * 4, [0, 0, 0, 1]
        >>> HistogramBinning().fit(logits, labels)([[3.0, 0.0]])
        array([[0.75, 0.25]])

    Reference:
        Zadrozny, Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive
        Bayesian classifiers; Guo et al. (2017).

    Differs from the authors' code:
        A bin without fit rows answers with its center, not with 0. Rows of zeros keep their probabilities.
    """

    n_bins: int = 15
    bins: Literal["width", "mass"] = "width"
    share: Literal["classwise", "top_label"] = "classwise"

    kind = "histogram"
    gives = "probs"

    def __post_init__(self) -> None:
        check_choice(self.bins, ("width", "mass"), where="HistogramBinning", name="bins")
        check_choice(self.share, ("classwise", "top_label"), where="HistogramBinning", name="share")
        if self.n_bins < 1:
            raise ValueError(f"HistogramBinning: `n_bins` must be at least 1, got {self.n_bins}.")

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions."""
        return self.share == "classwise"

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: one per bin."""
        return self.n_bins if self.share == "top_label" else self.n_bins * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        curves = 1 if self.share == "top_label" else n_classes
        return {"edges": (curves, "b"), "values": (curves, "b+1")}

    def _learn(self, predictions: Predictions) -> FitResult:
        weights = row_weights(predictions.weights, len(predictions))
        if self.share == "top_label":
            scores = predictions.confidence.astype(np.float64)[:, None]
            wanted = predictions.correct.astype(np.float64)[:, None]
        else:
            scores = predictions.probs.astype(np.float64)
            wanted = targets(predictions.labels, scores.shape[1])
        narrow = self.share == "classwise" and predictions.kind == "logits"
        precision = precision_of(predictions.probs) if narrow else predictions.precision
        columns = zip(np.ascontiguousarray(scores.T), np.ascontiguousarray(wanted.T), strict=True)
        tables = [self._histogram(*column, weights, precision) for column in columns]
        edges, values, empty = zip(*tables, strict=True)
        return FitResult(
            parameters={"edges": padded(edges, fill=np.inf), "values": padded(values)},
            words=f"{sum(map(len, values))} bins, {sum(empty)} of them empty and answered by their center",
        )

    def _histogram(
        self, scores: Array, wanted: Array, weights: Array, precision: Precision
    ) -> tuple[Array, Array, int]:
        if self.bins == "width":
            edges = equal_width_edges(self.n_bins, precision)
        else:
            edges = equal_mass_edges(scores, weights, self.n_bins)
        mass, hits = bin_sums(scores, wanted, weights, edges)
        values = np.where(mass > 0, hits / np.where(mass > 0, mass, 1.0), centers(edges))
        return edges, values, int((mass == 0).sum())

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        probs = softmax(logits)
        if self.share == "classwise":
            return normalized(step_at(probs, parameters["edges"], parameters["values"]), probs)
        confidence = array_namespace(probs).max(probs, axis=-1, keepdims=True)
        return with_top(probs, step_at(confidence, parameters["edges"], parameters["values"])[:, 0])
