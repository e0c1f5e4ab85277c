"""Venn-Abers prediction: two isotonic regressions, one for each label that the new row could have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.optimize import isotonic_regression

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.curves import normalized, padded
from equipoise.calibrators.forms import as_claims, as_rows, is_claims
from equipoise.calibrators.one_vs_rest import log_odds, row_weights, targets
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, search_rows, softmax, take_along
from equipoise.core.arrays import Array, array_namespace, as_numpy
from equipoise.core.predictions import Predictions

__all__ = ["VennAbers", "fit_venn_abers"]

# Equal scores may differ in their last digits, by their precision and the library that computed them.
_EQUAL = 1e-6


def fit_venn_abers(scores: Array, labels: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the probabilities that isotonic regression gives to a new row, for both labels that it could have.

    Args:
        scores: ``(n,)``.
        labels: ``(n,)``, 0 or 1.
        weights: ``(n,)``, above 0; the new row has weight 1.

    Returns:
        Ascending knots ``(p,)``; lower probabilities ``(p + 1,)`` by the number of knots that are at most the score,
        with the label 0; upper probabilities ``(p + 1,)`` by the number of knots below the score, with the label 1.

    Example:
        >>> fit_venn_abers(np.array([0.2, 0.8]), np.array([0.0, 1.0]), np.ones(2))
        (array([0.2, 0.8]), array([0. , 0. , 0.5]), array([0.5, 1. , 1. ]))
    """
    knots, position = np.unique(scores, return_inverse=True)
    apart = np.concatenate([[True], np.diff(knots) > _EQUAL * (1 + np.abs(knots[1:]))])
    knots, position = knots[apart], (np.cumsum(apart) - 1)[position]
    mass = np.bincount(position, weights)
    hits = np.bincount(position, weights * labels)

    def value_with(label: int) -> Callable[[int], float]:
        def value(index: int) -> float:
            more = np.zeros(len(knots))
            more[index] = 1.0
            fit = isotonic_regression((hits + label * more) / (mass + more), weights=mass + more)
            return float(fit.x[index])

        return value

    # A new row of label 1 joins the next knot above it, one of label 0 the next below; beyond the ends it is alone.
    lower = np.concatenate([[0.0], _monotone_values(value_with(0), len(knots))])
    upper = np.concatenate([_monotone_values(value_with(1), len(knots)), [1.0]])
    changes = (np.diff(lower) > 0) | (np.diff(upper) > 0)
    kept = np.flatnonzero(changes)
    return knots[kept], lower[np.append(0, kept + 1)], upper[np.append(kept, len(knots))]


def _monotone_values(function: Callable[[int], float], size: int) -> Array:
    """Return a non-decreasing function at 0, ..., size - 1, computed only where it changes."""
    values = np.full(size, np.nan)
    values[[0, -1]] = function(0), function(size - 1)
    pending = [(0, size - 1)]
    while pending:
        low, high = pending.pop()
        if values[high] - values[low] <= 1e-12:
            values[low : high + 1] = values[low]
        elif high - low > 1:
            middle = (low + high) // 2
            values[middle] = function(middle)
            pending += [(low, middle), (middle, high)]
    return values


@final
@dataclass(kw_only=True, eq=False)
class VennAbers(Calibrator):
    r"""Answer with the two probabilities of isotonic regression for both labels of the new row, merged into one.

    .. math:: p' = \frac{p_1}{1 - p_0 + p_1}

    where :math:`p_y` is isotonic regression on the fit rows and the new row with label *y*. One of the two is
    calibrated in any finite sample if rows are exchangeable. Unlike isotonic regression, it never answers exactly 0
    or 1. More than two classes are calibrated one against the rest, then normalized; then the guarantee is lost.
    :meth:`interval` returns both probabilities: their distance shows how much the fit rows leave open.

    Example:
        >>> calibrator = VennAbers().fit([-1.0, -1.0, 1.0, 1.0], [0, 0, 1, 1])
        >>> calibrator.interval([1.0]).round(3)
        array([[0.667, 1.   ]])
        >>> calibrator([1.0]).round(3)  # log-odds in, probability of class 1 out
        array([0.75])

    Reference:
        Vovk, Petej (2014), Venn-Abers predictors; Vovk, Petej, Fedorova (2015), Large-scale probabilistic predictors
        with and without guarantees of validity.

    Differs from the authors' code:
        Both steps are found by bisection between knots with equal values, not by sweeping the cumulative sum diagram.
    """

    kind = "venn_abers"
    gives = "probs"

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions."""
        return True

    def n_parameters(self, n_classes: int) -> int:
        """Count the parameters: about a dozen steps per curve, as of isotonic regression."""
        return 12 if n_classes == 2 else 12 * n_classes

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"knots": (n_classes, "p"), "lower": (n_classes, "p+1"), "upper": (n_classes, "p+1")}

    def interval(self, predictions: Any) -> Array:
        """Return the lower and the upper probability of each row, before they are merged and normalized.

        Args:
            predictions: Predictions, top-1 predictions, or logits, as for calling the calibrator.

        Returns:
            ``(n, 2)`` of class 1, or of being right, for two classes and for top-1 predictions; else ``(n, k, 2)``.
        """
        self._check_form(predictions)
        if is_claims(predictions):
            rows = as_claims(predictions).logits
        elif isinstance(predictions, Predictions):
            rows = predictions.logits
        else:
            rows = as_numpy(as_rows(predictions, where="VennAbers.interval"))
        self._check_classes(rows.shape[1])
        both = np.stack(self._bounds(rows.astype(np.float64), self.result.parameters), axis=-1)
        return both[:, 1] if rows.shape[1] == 2 else both

    def _learn(self, predictions: Predictions) -> FitResult:
        scores = _scores(predictions.logits.astype(np.float64, copy=False))
        wanted = targets(predictions.labels, scores.shape[1])
        weights = row_weights(predictions.weights, len(predictions))
        columns = zip(np.ascontiguousarray(scores.T), np.ascontiguousarray(wanted.T), strict=True)
        knots, lower, upper = zip(*(fit_venn_abers(*column, weights) for column in columns), strict=True)
        return FitResult(
            parameters={
                "knots": padded(knots, fill=float(max(column[-1] for column in knots))),
                "lower": padded(lower),
                "upper": padded(upper),
            },
            words=f"{max(map(len, knots))} steps, each with two probabilities",
        )

    def _bounds(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> tuple[AnyArray, AnyArray]:
        xp = array_namespace(logits)
        scores, knots = _scores(logits).T, parameters["knots"]
        margin = _EQUAL / 2 * (1 + xp.abs(scores))
        lower = take_along(parameters["lower"], search_rows(knots, scores + margin, right=True))
        upper = take_along(parameters["upper"], search_rows(knots, scores - margin))
        return lower.T, upper.T

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        lower, upper = self._bounds(logits, parameters)
        return normalized(upper / (1 - lower + upper), softmax(logits))


def _scores(logits: AnyArray) -> AnyArray:
    log_probs, log_rest = log_odds(logits)
    return log_probs - log_rest
