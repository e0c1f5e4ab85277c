"""Ensemble temperature scaling (ETS): a mixture of tempered, raw and uniform probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from scipy.optimize import minimize_scalar

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.temperature_search import ScoreBlock, over_blocks
from equipoise.core.array_functions import AnyArray, log_softmax, logsumexp
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.predictions import Predictions

__all__ = ["EnsembleTemperatureScaling"]

_LOWEST, _HIGHEST = 0.05, 5.0
# With all weight on the uniform part every class would tie, and no prediction would be left; less than this and
# single precision would tie them.
_SHARPEST_LEAST = 0.01


@final
@dataclass(kw_only=True, eq=False)
class EnsembleTemperatureScaling(Calibrator):
    r"""Mix tempered, raw and uniform probabilities; temperature and weights minimize the Brier score.

    .. math:: p = w_1 \operatorname{softmax}(z/T) + w_2 \operatorname{softmax}(z) + w_3 / k

    More supple than a temperature, with two more numbers, and as safe: no prediction changes, since at least a
    hundredth of the weight stays off the uniform part.

    Example:
        >>> logits, labels = [[3.0, 0.0]] * 4, [0, 0, 0, 1]
        >>> calibrator = EnsembleTemperatureScaling().fit(logits, labels)
        >>> round(calibrator.result.nll_after, 4)
        0.5623

    Reference:
        Zhang, Kailkhura, Han (2020), Mix-n-Match: ensemble and compositional methods for uncertainty calibration.

    Differs from the authors' code:
        The weights are the exact minimum over the simplex, not SLSQP's, short of the all-uniform map; log-softmax,
        so that no logit overflows.
    """

    kind = "ets"
    preserves_accuracy = True
    preserves_order = True

    def n_parameters(self, n_classes: int) -> int:
        """Count the learned numbers: a temperature and two free weights."""
        return 3

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return {"temperature": (), "mixture": (3,)}

    def _learn(self, predictions: Predictions) -> FitResult:
        temperature, steps = _temperature(_brier(predictions))
        gram, target = _normal_equations(predictions, temperature)
        mixture = _simplex_minimum(gram, target)
        if mixture[2] > 1 - _SHARPEST_LEAST:
            mixture = _flattest_minimum(gram, target)
        at_bound = not 1.1 * _LOWEST < temperature < 0.99 * _HIGHEST
        return FitResult(
            parameters={"temperature": np.array(temperature), "mixture": mixture},
            words=f"mixes {mixture[0]:.0%} at T = {temperature:.3g}, {mixture[1]:.0%} raw and {mixture[2]:.0%} uniform",
            converged=not at_bound,
            iterations=steps,
            warnings=(f"the temperature is at a bound, {temperature:.3g}",) if at_bound else (),
        )

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        xp = array_namespace(logits)
        share = xp.log(parameters["mixture"])[:, None, None]
        return logsumexp(xp.stack(_members(logits, parameters["temperature"])) + share, axis=0)[0]


def _members(logits: AnyArray, temperature: AnyArray) -> list[AnyArray]:
    """Return the logarithms of the three distributions that are mixed."""
    uniform = array_namespace(logits).zeros_like(logits) - float(np.log(logits.shape[-1]))
    return [log_softmax(logits / temperature), log_softmax(logits), uniform]


def _brier(predictions: Predictions) -> Callable[[float], float]:
    """Return the mean Brier score, up to a constant, as a function of the logarithm of the temperature."""
    total = row_weights(predictions.weights, len(predictions)).sum()

    def brier(log_temperature: float) -> float:
        def task(block: ScoreBlock) -> Array:
            exps, own = (np.exp(part * np.exp(-log_temperature)) for part in (block.gaps, block.own))
            sums = np.einsum("ij->i", exps)
            squares = np.einsum("ij,ij->i", exps, exps) / sums**2
            return np.asarray((squares - 2 * own / sums) @ block.weights)

        return float(np.sum(over_blocks(task, *_data(predictions), np.float64))) / float(total)

    return brier


def _temperature(brier: Callable[[float], float]) -> tuple[float, int]:
    """Search between the authors' bounds; a coarse scan first, because the Brier score is not convex in T."""
    scan = np.linspace(np.log(_LOWEST), np.log(_HIGHEST), 13)
    best = int(np.argmin([brier(point) for point in scan]))
    between = scan[max(best - 1, 0)], scan[min(best + 1, len(scan) - 1)]
    found = minimize_scalar(brier, bounds=between, method="bounded", options={"xatol": 1e-9})
    return float(np.exp(found.x)), int(found.nfev) + len(scan)


def _normal_equations(predictions: Predictions, temperature: float) -> tuple[Array, Array]:
    """Return Gram matrix and correlations of the three members with the one-hot labels."""

    def task(block: ScoreBlock) -> Array:
        members = [np.exp(block.gaps / temperature), np.exp(block.gaps), np.ones_like(block.gaps)]
        own = np.stack([np.exp(block.own / temperature), np.exp(block.own), np.ones_like(block.own)])
        sums = np.stack([np.einsum("ij->i", member) for member in members])
        products = np.stack([[np.einsum("ij,ij->i", a, b) for b in members] for a in members])
        gram = products / (sums[:, None] * sums[None, :]) @ block.weights
        return np.append(gram, own / sums @ block.weights)

    totals = np.sum(over_blocks(task, *_data(predictions), np.float64), axis=0)
    return totals[:9].reshape(3, 3), totals[9:]


def _data(predictions: Predictions) -> tuple[Array, Array, Array | None]:
    return predictions.logits, predictions.labels, predictions.weights


def _simplex_minimum(gram: Array, target: Array) -> Array:
    """Minimize ``w G w - 2 t w`` over the simplex exactly, by trying every set of positive weights."""
    best, best_value = np.array([1.0, 0.0, 0.0]), gram[0, 0] - 2 * target[0]
    for size in (1, 2, 3):
        for chosen in combinations(range(3), size):
            part = np.ix_(chosen, chosen)
            system = np.block([[2 * gram[part], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            solved = np.linalg.lstsq(system, np.append(2 * target[list(chosen)], 1.0), rcond=None)[0][:size]
            weights = np.zeros(3)
            weights[list(chosen)] = solved
            value = weights @ gram @ weights - 2 * target @ weights
            if (solved >= 0).all() and value < best_value - 1e-12 * abs(best_value):
                best, best_value = weights, value
    result: Array = best / best.sum()
    return result


def _flattest_minimum(gram: Array, target: Array) -> Array:
    """Minimize on the edge where the uniform part has all the weight it may have; the objective is convex."""
    ends = np.array(
        [[_SHARPEST_LEAST, 0.0, 1 - _SHARPEST_LEAST], [0.0, _SHARPEST_LEAST, 1 - _SHARPEST_LEAST]]
    )
    along = ends[1] - ends[0]
    curvature = along @ gram @ along
    step = (target - gram @ ends[0]) @ along / curvature if curvature > 0 else 0.0
    result: Array = ends[0] + np.clip(step, 0.0, 1.0) * along
    return result
