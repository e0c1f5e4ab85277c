"""Binary problems, one per class: columns of targets, weighted logistic regressions solved side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from equipoise.calibrators.forms import blocks
from equipoise.core.array_functions import AnyArray, log_softmax, logsumexp, put_along
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.errors import DataError
from equipoise.kernels.threads import map_in_order

__all__ = ["LogisticFit", "fit_logistic", "log_odds", "row_weights", "targets"]

_RIDGE = 1e-9
_MOST_STEPS = 60
# Parts of the rows that are summed side by side; a number of its own, so that threads do not change sums.
_GROUPS = 8


def targets(labels: Array, n_classes: int) -> Array:
    """Return ``(n, k)`` with one where the column is the label.

    Example:
        >>> targets(np.array([1, 0]), 2)
        array([[0., 1.],
               [1., 0.]])
    """
    return np.equal(labels[:, None], np.arange(n_classes)).astype(np.float64)


def row_weights(weights: Array | None, n_rows: int) -> Array:
    """Return the weights, or ones.

    Example:
        >>> row_weights(None, 2)
        array([1., 1.])
    """
    return np.ones(n_rows) if weights is None else weights


def log_odds(logits: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return log p and log(1 - p) for every class, exact where p is next to 0 or 1.

    Example:
        >>> [part.tolist() for part in log_odds(np.array([[0.0, 1e4]]))]
        [[[-10000.0, 0.0]], [[-0.0, -10000.0]]]
    """
    xp = array_namespace(logits)
    log_probs = log_softmax(logits)
    top = xp.argmax(logits, axis=-1, keepdims=True)
    # For the top class 1 - p is the sum of the others, which log1p(-p) cannot represent.
    # Written so that exp never overflows, also where logaddexp is translated word for word, as in ONNX.
    behind = logsumexp(put_along(logits, top, -xp.inf)) - xp.max(logits, axis=-1, keepdims=True)
    remainder = behind - xp.log1p(xp.exp(behind))
    log_rest = xp.log1p(-xp.clip(xp.exp(log_probs), None, 0.75))
    return log_probs, put_along(log_rest, top, remainder)


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """Coefficients ``(k, d + 1)`` of k regressions, the offset last, with their certificate."""

    coefficients: Array
    gap: float
    iterations: int
    converged: bool


def fit_logistic(
    features: Sequence[Array], wanted: Array, weights: Array, *, free: Array, start: Array
) -> LogisticFit:
    """Fit k weighted logistic regressions at once by damped Newton steps.

    Args:
        features: d arrays ``(n, k)``: one feature each, of every row in every regression.
        wanted: Targets in [0, 1], ``(n, k)``.
        weights: ``(n,)``, summing to one.
        free: ``(k, d + 1)``; False holds a coefficient at its start.
        start: ``(k, d + 1)``.

    Returns:
        The coefficients and how well they are determined.

    Example:
        >>> wanted = np.array([[1.0], [1.0], [1.0], [0.0]])
        >>> found = fit_logistic([], wanted, np.full(4, 0.25), free=np.ones((1, 1), bool), start=np.zeros((1, 1)))
        >>> round(float(found.coefficients[0, 0]), 6) == round(float(np.log(3)), 6)
        True
    """
    with np.errstate(over="ignore"):
        if not all(np.isfinite(np.square(feature)).all() for feature in features):
            raise DataError(
                "fit: `logits` must be numbers whose squares are finite, got larger ones. Are these a network's logits?"
            )
    columns = [np.ascontiguousarray(feature.T) for feature in features]
    problem = _Problem(columns, np.ascontiguousarray(wanted.T), weights, free, start)
    theta, gap, steps = start, np.inf, 0
    state = problem.evaluate(theta)
    while gap > 1e-13 and steps < _MOST_STEPS:
        direction = -np.linalg.solve(state.hessian, state.gradient[..., None])[..., 0]
        gap = float((-0.5 * direction * state.gradient).sum(1).max())
        length = np.ones(len(theta))
        for _ in range(20):
            trial = problem.evaluate(theta + length[:, None] * direction)
            worse = ~(trial.value <= state.value + 1e-15)
            if not worse.any():
                break
            length = np.where(worse, length / 4, length)
        theta = theta + length[:, None] * direction
        stalled = not (state.value - trial.value > 1e-14).any()
        state = trial
        steps += 1
        if stalled:
            break
    return LogisticFit(theta, gap, steps, gap <= 1e-10)


class _State(NamedTuple):
    """Value ``(k,)``, gradient ``(k, d + 1)`` and Hessian ``(k, d + 1, d + 1)`` of every regression."""

    value: Array
    gradient: Array
    hessian: Array


@dataclass(frozen=True, slots=True)
class _Problem:
    """Features and targets are kept as ``(k, n)``, so that sums over rows run along memory."""

    features: Sequence[Array]
    wanted: Array
    weights: Array
    free: Array
    start: Array

    def evaluate(self, theta: Array) -> _State:
        slices = list(blocks(*self.wanted.T.shape, size=1 << 14))
        step = -(-len(slices) // _GROUPS)

        def work(first: int) -> Array:
            total: Array = np.sum([self._sums(theta, rows) for rows in slices[first : first + step]], axis=0)
            return total

        sums = np.sum(map_in_order(work, range(0, len(slices), step)), axis=0)
        size = len(self.features) + 1
        value, gradient, upper = sums[0], sums[1 : size + 1].T, sums[size + 1 :]
        hessian = np.empty((len(theta), size, size))
        row, column = np.triu_indices(size)
        hessian[:, row, column] = hessian[:, column, row] = upper.T
        drift = theta - self.start
        both = self.free[:, :, None] & self.free[:, None, :]
        hessian = np.where(both, hessian, 0.0)
        diagonal = np.arange(size)
        hessian[:, diagonal, diagonal] += np.where(self.free, 2 * _RIDGE, 1.0)
        return _State(
            value + _RIDGE * (drift**2).sum(1), (gradient + 2 * _RIDGE * drift) * self.free, hessian
        )

    @np.errstate(all="ignore")
    def _sums(self, theta: Array, rows: slice) -> Array:
        """Return the sums over some rows of the loss, its slopes, and the upper triangle of its curvature."""
        features = [feature[:, rows] for feature in self.features]
        wanted, weights = self.wanted[:, rows], self.weights[rows]
        score = np.repeat(theta[:, -1:], wanted.shape[1], axis=1)
        for j, feature in enumerate(features):
            score += feature * theta[:, j, None]
        small = np.exp(-np.abs(score))
        loss = np.log1p(small)
        loss += np.maximum(score, 0.0)
        loss -= wanted * score
        probs = np.where(score >= 0, 1.0, small)
        probs /= 1 + small
        residual = (probs - wanted) * weights
        spread = probs * (1 - probs) * weights
        sums = [loss @ weights, *(np.einsum("kn,kn->k", residual, feature) for feature in features)]
        sums.append(residual.sum(1))
        for j, feature in enumerate(features):
            part = spread * feature
            sums += [np.einsum("kn,kn->k", part, other) for other in features[j:]]
            sums.append(part.sum(1))
        sums.append(spread.sum(1))
        return np.stack(sums)
