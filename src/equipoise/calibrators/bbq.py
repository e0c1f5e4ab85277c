"""Bayesian binning into quantiles (BBQ): histograms of many sizes, averaged by how well they explain the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import final

import numpy as np
from scipy.special import gammaln, softmax

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.binning import bin_sums, centers, equal_mass_edges
from equipoise.calibrators.curves import normalized, padded, step_at
from equipoise.calibrators.one_vs_rest import row_weights, targets
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray
from equipoise.core.array_functions import softmax as softmax_rows
from equipoise.core.arrays import Array
from equipoise.core.bins import bin_of
from equipoise.core.predictions import Predictions

__all__ = ["BayesianBinning", "average_histograms"]

_NEGLIGIBLE = 1e-6
_FAINTEST = 1e-12


def average_histograms(
    scores: Array, wanted: Array, weights: Array, sizes: tuple[int, ...]
) -> tuple[Array, Array, Array]:
    r"""Average equal-mass histograms of several sizes, weighted by their Beta-binomial evidence.

    .. math:: \prod_b \frac{\Gamma(2)}{\Gamma(N_b + 2)} \frac{\Gamma(m_b + \alpha_b)}{\Gamma(\alpha_b)}
              \frac{\Gamma(n_b + \beta_b)}{\Gamma(\beta_b)}, \qquad \alpha_b = 2 c_b, \; \beta_b = 2 (1 - c_b)

    with :math:`c_b` the middle of bin *b*, which holds :math:`m_b` hits and :math:`n_b` misses.

    Args:
        scores: ``(n,)``.
        wanted: ``(n,)``, 0 or 1.
        weights: ``(n,)``.
        sizes: Numbers of bins.

    Returns:
        Inner edges and values of the average, and the log evidence of every size.

    Example:
        >>> scores, wanted = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])
        >>> edges, values, evidence = average_histograms(scores, wanted, np.ones(4), (1, 2))
        >>> bool(evidence[1] > evidence[0])
        True
    """
    histograms, evidence = [], np.empty(len(sizes))
    for place, size in enumerate(sizes):
        edges = equal_mass_edges(scores, weights, size)
        mass, hits = bin_sums(scores, wanted, weights, edges)
        # A bin among scores of 0 or of 1 alone has its center there; its prior would forbid every other outcome.
        alpha = np.clip(2 * centers(edges), _FAINTEST, 2 - _FAINTEST)
        beta = 2 - alpha
        evidence[place] = np.sum(
            gammaln(2.0) - gammaln(mass + 2) + gammaln(hits + alpha) - gammaln(alpha)
            + gammaln(mass - hits + beta) - gammaln(beta)
        )  # fmt: skip
        histograms.append((edges, (hits + alpha) / (mass + 2)))
    share = softmax(evidence)
    used = [
        (weight, *histogram)
        for weight, histogram in zip(share, histograms, strict=True)
        if weight > _NEGLIGIBLE
    ]
    union = np.unique(np.concatenate([edges for _, edges, _ in used]))
    inside = centers(union)
    values = sum(weight * bins[bin_of(inside, edges)] for weight, edges, bins in used)
    return union, np.asarray(values / sum(weight for weight, _, _ in used)), evidence


@final
@dataclass(kw_only=True, eq=False)
class BayesianBinning(Calibrator):
    """Average histograms of many sizes; see :func:`average_histograms`. One against the rest, then normalized.

    Smoother than one histogram and without a number of bins to choose. Slow for many classes.

    Args:
        sizes: Numbers of bins to average; by default all from N^(1/3)/10 to 10 N^(1/3).

    Example:
        >>> logits, labels = [[3.0, 0.0]] * 4, [0, 0, 0, 1]
        >>> BayesianBinning().fit(logits, labels)([[3.0, 0.0]]).round(3)
        array([[0.667, 0.333]])

    Reference:
        Naeini, Cooper, Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning.

    Differs from the authors' code:
        Not compared. Histograms with less than a millionth of the evidence are left out.
    """

    sizes: tuple[int, ...] | None = None

    kind = "bbq"
    gives = "probs"

    def __post_init__(self) -> None:
        if self.sizes is None:
            return
        self.sizes = tuple(self.sizes)
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"BayesianBinning: `sizes` must be numbers of bins from 1 up, got {self.sizes}.")

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: about a dozen bins matter per class."""
        return 12 * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"edges": (n_classes, "b"), "values": (n_classes, "b+1")}

    def _learn(self, predictions: Predictions) -> FitResult:
        probs = predictions.probs.astype(np.float64)
        weights = row_weights(predictions.weights, len(probs))
        wanted = targets(predictions.labels, probs.shape[1])
        sizes = self.sizes or _sizes(float(weights.sum()))
        models = [
            average_histograms(probs[:, j], wanted[:, j], weights, sizes) for j in range(probs.shape[1])
        ]
        edges, values, evidence = zip(*models, strict=True)
        likely = [sizes[int(np.argmax(scores))] for scores in evidence]
        return FitResult(
            parameters={"edges": padded(edges, fill=np.inf), "values": padded(values)},
            words=f"averages histograms; the likeliest have {min(likely)} to {max(likely)} bins",
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        probs = softmax_rows(logits)
        return normalized(step_at(probs, parameters["edges"], parameters["values"]), probs)


def _sizes(rows: float) -> tuple[int, ...]:
    root = rows ** (1 / 3)
    return tuple(range(max(1, int(root / 10)), min(ceil(10 * root), max(1, int(rows))) + 1))
