"""Focal temperature scaling: a temperature, then the inverse of what a focal loss does, both fitted together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import minimize

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.forms import blocks
from equipoise.calibrators.one_vs_rest import log_odds, row_weights
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.temperature import describe_temperature
from equipoise.calibrators.temperature_search import fit_beta
from equipoise.core.array_functions import AnyArray, log_softmax
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.predictions import Predictions
from equipoise.kernels.threads import map_in_order

__all__ = ["FocalTemperatureScaling"]

_LARGEST_GAMMA = 10.0
_FIRST_GAMMAS = (0.0, 1.0, 4.0)
# Scores that the search reads; of more rows a regular sample is taken, since two parameters need no more.
_MOST_SCORES = 1 << 22


@final
@dataclass(kw_only=True, eq=False)
class FocalTemperatureScaling(Calibrator):
    r"""Divide the logits by a temperature and apply the focal calibration map; both parameters minimize the NLL.

    .. math::
        q = \operatorname{softmax}(z / T), \qquad
        p_j \propto \frac{q_j}{(1 - q_j)^{\gamma} \left(1 - \gamma \frac{q_j \log q_j}{1 - q_j}\right)}

    The second step turns the minimizer of a focal loss into class posteriors. For :math:`\gamma = 0` this is
    temperature scaling; larger values raise high probabilities further. No prediction changes. The search reads at most
    four million scores, of a regular sample of rows.

    Example:
        >>> logits, labels = [[3.0, 0.0]] * 4 + [[1.0, 0.0]] * 4, [0, 0, 0, 1, 0, 0, 1, 1]
        >>> calibrator = FocalTemperatureScaling().fit(logits, labels)
        >>> calibrator.result.nll_after <= calibrator.result.nll_before
        True

    Reference:
        Komisarenko, Kull (2024), Improving calibration by relating focal loss, temperature scaling, and properness.

    Differs from the authors' code:
        They search grids of both parameters; here a simplex search starts at the best temperature for several gamma.
        Gamma is between 0 and 10.
    """

    kind = "focal_temperature"
    preserves_accuracy = True
    preserves_order = True

    def n_parameters(self, n_classes: int) -> int:
        """Count the parameters: temperature and gamma."""
        return 2

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"temperature": (), "gamma": ()}

    def _learn(self, predictions: Predictions) -> FitResult:
        step = max(1, predictions.logits.size // _MOST_SCORES)
        logits, labels = predictions.logits[::step], predictions.labels[::step]
        weights = row_weights(predictions.weights, len(predictions))[::step]
        start = fit_beta(logits, labels, weights)

        def objective(point: Array) -> float:
            return _mean_nll(logits, labels, weights, beta=float(np.exp(point[0])), gamma=float(point[1]))

        # Gamma sharpens, so that a larger one goes with a higher temperature.
        points = [np.array([np.log(start.beta / (1 + gamma / 2)), gamma]) for gamma in _FIRST_GAMMAS]
        first = min(points, key=objective)
        spread = np.log(start.beta) + np.array([-3.0, 3.0])
        found = minimize(
            objective,
            first,
            method="Nelder-Mead",
            bounds=[tuple(spread), (0.0, _LARGEST_GAMMA)],
            options={"xatol": 1e-5, "fatol": 1e-9, "maxfev": 200, "initial_simplex": _simplex(first)},
        )
        point = found.x if found.fun <= start.nll else np.array([np.log(start.beta), 0.0])
        temperature, gamma = float(np.exp(-point[0])), float(point[1])
        return FitResult(
            parameters={"temperature": np.array(temperature), "gamma": np.array(gamma)},
            words=f"{describe_temperature(temperature)}; then undo focal training with gamma = {gamma:.3g}",
            converged=bool(found.success),
            iterations=int(found.nfev),
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        return _focal_posterior(logits / parameters["temperature"], parameters["gamma"])


def _simplex(first: Array) -> Array:
    inward = -0.5 if first[1] > _LARGEST_GAMMA / 2 else 0.5
    simplex: Array = first + np.array([[0.0, 0.0], [0.1, 0.0], [0.0, inward]])
    return simplex


def _focal_posterior(scores: AnyArray, gamma: AnyArray) -> AnyArray:
    """Return the logarithm, up to a constant, of the posterior behind a minimizer of a focal loss.

    Computed from log p and log(1 - p), so that it is finite for any logits.
    """
    xp = array_namespace(scores)
    log_probs, log_rest = log_odds(scores)
    probs, rest = xp.exp(log_probs), xp.exp(log_rest)
    surprise = xp.where(probs > 0.5, -xp.log1p(-xp.where(probs > 0.5, rest, 0.0)), -log_probs)
    # q log q / (1 - q) tends to 1 as q does.
    ratio = xp.where(rest > 0, probs * surprise / xp.where(rest > 0, rest, 1.0), 1.0)
    return log_probs - gamma * log_rest - xp.log1p(gamma * ratio)


def _mean_nll(logits: Array, labels: Array, weights: Array, *, beta: float, gamma: float) -> float:
    @np.errstate(all="ignore")
    def task(rows: slice) -> float:
        scores = logits[rows].astype(np.float64) * beta
        log_probs = log_softmax(_focal_posterior(scores, gamma))
        return -float(np.take_along_axis(log_probs, labels[rows, None], axis=1)[:, 0] @ weights[rows])

    return sum(map_in_order(task, list(blocks(*logits.shape)))) / float(weights.sum())
