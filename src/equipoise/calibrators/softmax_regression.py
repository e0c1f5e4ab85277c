"""Exact fits of softmax(A x + b): a Newton method for full or diagonal A with a quadratic penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from equipoise.calibrators.forms import blocks
from equipoise.core.arrays import Array
from equipoise.kernels.threads import map_in_order

__all__ = ["Diagonal", "Full", "QuadraticPenalty", "RegressionFit", "Shape", "fit_softmax"]

# Keeps absent classes and separable rows finite and picks one of the equivalent solutions; moves optima by about 1e-8.
_RIDGE = 1e-9
_MOST_STEPS = 60
_DIRECT = 150
# Separable rows have no optimum: the likelihood grows without end, and the fit is stopped at this NLL.
_ENOUGH = 1e-4
_MOST_DOUBLINGS = 30
# On the way there Newton's steps lead too far; this much is added to the curvature first, more if it does not help.
_FIRST_DAMPING = 1e-4
# Smaller probabilities would become denormal float32, a hundred times slower to multiply, and matter to nothing.
_NEGLIGIBLE = np.float32(1e-20)
_TOLERANCE = 1e-11
_LOOSE_TOLERANCE = 1e-9
# Parts of the rows that are summed side by side; a number of its own, so that threads do not change sums.
_GROUPS = 8


class Shape(Protocol):
    """How parameters act on features; linear in the parameters."""

    def forward(self, features: Array, theta: Array) -> Array:
        """Return new logits ``(m, k)``."""

    def adjoint(self, features: Array, residual: Array) -> Array:
        """Return the gradient of ``sum(residual * forward)``."""

    def jacobian(self, features: Array, probs: Array) -> Array:
        """Return ``(m, size)``: the derivative of ``sum_j probs_j * logit_j`` for each parameter."""

    def moments(self, features: Array, weights: Array, jacobian: Array) -> Array:
        """Return ``(k, f, f)``: for every class, the weighted second moments of its own features.

        ``jacobian`` is that of ``weights``, which the caller has computed already.
        """

    def arrange(self, per_class: Array) -> Array:
        """Bring parameters from ``(k, f)``, one row per class, to their own shape."""

    def per_class(self, theta: Array) -> Array:
        """Bring parameters to ``(k, f)``."""


@final
class Diagonal:
    """One scale and one offset per class: ``theta`` is ``(2, k)``."""

    def forward(self, features: Array, theta: Array) -> Array:
        """Scale and shift every column."""
        scaled: Array = features * theta[0]
        scaled += theta[1]
        return scaled

    def adjoint(self, features: Array, residual: Array) -> Array:
        """Sum over rows."""
        return np.stack([np.einsum("mk,mk->k", residual, features), residual.sum(0)])

    def jacobian(self, features: Array, probs: Array) -> Array:
        """Put the columns for scales before those for offsets."""
        return np.concatenate([probs * features, probs], axis=1)

    def moments(self, features: Array, weights: Array, jacobian: Array) -> Array:
        """Return moments of each column."""
        once = weights * features
        second, first, zeroth = np.einsum("mk,mk->k", once, features), once.sum(0), weights.sum(0)
        return np.stack([second, first, first, zeroth], axis=1).reshape(-1, 2, 2)

    def arrange(self, per_class: Array) -> Array:
        """Transpose."""
        return per_class.T

    def per_class(self, theta: Array) -> Array:
        """Transpose."""
        return theta.T


@final
class Full:
    """A matrix and an offset: ``theta`` is ``(k, k + 1)``, the offset last."""

    def forward(self, features: Array, theta: Array) -> Array:
        """Multiply and shift."""
        product: Array = features @ theta[:, :-1].T
        product += theta[:, -1]
        return product

    def adjoint(self, features: Array, residual: Array) -> Array:
        """Correlate residuals with features."""
        return np.concatenate([residual.T @ features, residual.sum(0)[:, None]], axis=1)

    def jacobian(self, features: Array, probs: Array) -> Array:
        """Go class by class."""
        return (probs[:, :, None] * _with_one(features)[:, None, :]).reshape(len(probs), -1)

    def moments(self, features: Array, weights: Array, jacobian: Array) -> Array:
        """Return moments of all features, weighted for every class."""
        wide = _with_one(features)
        return (jacobian.T @ wide).reshape(-1, wide.shape[1], wide.shape[1])

    def arrange(self, per_class: Array) -> Array:
        """Return it unchanged."""
        return per_class

    def per_class(self, theta: Array) -> Array:
        """Return it unchanged."""
        return theta


def _with_one(features: Array) -> Array:
    return np.concatenate([features, np.ones_like(features[:, :1])], axis=1)


@dataclass(frozen=True, slots=True)
class QuadraticPenalty:
    """``sum(strength * (theta - center)**2)``, both in the shape of the parameters."""

    strength: Array
    center: Array


@dataclass(frozen=True, slots=True)
class RegressionFit:
    """Where the fit ended.

    Attributes:
        theta: The parameters.
        objective: Mean NLL plus penalty.
        gradient: Largest slope left.
        gap: Estimated excess of the objective before the last step, half the Newton decrement; what is left is less.
        iterations: Newton steps.
        converged: Whether the gap is within tolerance.
        separable: Whether parameters were found that rank every row's class first, and no penalty holds them back:
            then their multiples are better and better.
    """

    theta: Array
    objective: float
    gradient: float
    gap: float
    iterations: int
    converged: bool
    separable: bool

    @property
    def certificate(self) -> dict[str, float]:
        """Gradient and gap, by name."""
        return {"gradient": self.gradient, "gap": self.gap}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is unusual about the fit."""
        if not self.separable:
            return ()
        return (
            "the calibrator separates the classes of its fit rows, so the fit was stopped; use more rows or a "
            "penalized calibrator",
        )


def fit_softmax(
    features: Array,
    labels: Array,
    weights: Array | None,
    *,
    shape: Shape,
    start: Array,
    penalty: QuadraticPenalty,
) -> RegressionFit:
    """Minimize the mean NLL of ``softmax(shape(features, theta))`` plus a penalty; convex.

    Newton steps with the exact Hessian where it is small, with conjugate gradients in float32 where it is
    not; values and gradients are float64 always.

    Args:
        features: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)`` or None.
        shape: Diagonal or full.
        start: First parameters.
        penalty: Quadratic penalty; a ridge of 1e-9 towards ``start`` is added.

    Returns:
        Parameters and certificate.

    Example:
        >>> x, y = np.array([[1.0, 0.0]] * 4), np.array([0, 0, 0, 1])
        >>> start = np.array([[1.0, 1.0], [0.0, 0.0]])
        >>> found = fit_softmax(x, y, None, shape=Diagonal(), start=start,
        ...                     penalty=QuadraticPenalty(np.zeros_like(start), start))
        >>> round(found.objective, 6)  # the entropy of 3 in 4
        0.562335
    """
    problem = _Problem(features, labels, weights, shape=shape, start=start, penalty=penalty)
    theta, state, step_gap = start, problem.evaluate(start), inf
    steps = 0
    for _ in range(_MOST_STEPS):
        steps += 1
        direction = problem.direction(state, step_gap)
        step_gap = float(-0.5 * (direction * state.gradient).sum())
        if not step_gap > 0:
            break
        length = 1.0
        trial = problem.evaluate(theta + direction)
        while trial.objective > state.objective - 2e-4 * length * step_gap + 1e-15 and length > 1e-8:
            length /= 4
            trial = problem.evaluate(theta + length * direction)
        if trial.objective > state.objective:
            break
        problem.damp(length)
        theta, state = theta + length * direction, trial
        tolerance = _TOLERANCE if problem.direct else _LOOSE_TOLERANCE
        if step_gap <= tolerance * max(1.0, state.objective) or problem.is_separable(state):
            break
    separable = problem.is_separable(state)
    for _ in range(_MOST_DOUBLINGS if separable else 0):
        if state.nll <= _ENOUGH:
            break
        theta, state = 2 * theta, problem.evaluate(2 * theta)
    gap = max(step_gap, 0.0)
    return RegressionFit(
        theta,
        state.objective,
        float(np.abs(state.gradient).max()),
        gap,
        steps,
        converged=not separable and gap <= 1e-9 * max(1.0, state.objective),
        separable=separable,
    )


@dataclass(frozen=True, slots=True)
class _State:
    nll: float
    objective: float
    margin: float
    gradient: Array
    probs: Sequence[Array]


class _Block(NamedTuple):
    """Some rows that fit the processor's cache; ``light`` are the features in float32, empty for direct solutions."""

    features: Array
    light: Array
    labels: Array
    share: Array


class _Problem:
    def __init__(
        self,
        features: Array,
        labels: Array,
        weights: Array | None,
        *,
        shape: Shape,
        start: Array,
        penalty: QuadraticPenalty,
    ) -> None:
        n_rows, n_classes = features.shape
        share = np.full(n_rows, 1.0 / n_rows) if weights is None else weights / weights.sum()
        self.shape, self.penalty, self.start = shape, penalty, start
        self.direct = start.size <= _DIRECT
        self.curvature = 2 * (penalty.strength + _RIDGE)
        self.damping, self.penalized = 0.0, bool(penalty.strength.any())
        self.blocks = [
            _Block(
                features[rows].astype(np.float64, copy=False),
                np.empty(0) if self.direct else features[rows].astype(np.float32, copy=False),
                labels[rows],
                share[rows],
            )
            for rows in blocks(
                n_rows, start.size if self.direct else n_classes, size=1 << (15 if self.direct else 17)
            )
        ]

    def evaluate(self, theta: Array) -> _State:
        margin, kept = [inf], [np.empty(0)] * len(self.blocks)

        def task(index: int, block: _Block) -> tuple[float, Array]:
            rows = np.arange(len(block.labels))
            scores = self.shape.forward(block.features, theta)
            scores -= scores.max(axis=1, keepdims=True)
            own = scores[rows, block.labels]
            if not self.penalized and margin[0] > 0:
                scores[rows, block.labels] = -inf
                lead = own - scores.max(axis=1)
                margin[0] = min(margin[0], float(np.where(block.share > 0, lead, inf).min()))
                scores[rows, block.labels] = own
            probs = np.exp(scores, out=scores)
            total = np.einsum("mk->m", probs)
            probs /= total[:, None]
            kept[index] = probs if self.direct else _light(probs)
            residual = probs * block.share[:, None]
            residual[rows, block.labels] -= block.share
            return float(block.share @ (np.log(total) - own)), self.shape.adjoint(block.features, residual)

        nll, gradient = self._sum(task)
        offset, drift = theta - self.penalty.center, theta - self.start
        value = nll + float((self.penalty.strength * offset**2).sum() + _RIDGE * (drift**2).sum())
        gradient += 2 * (self.penalty.strength * offset + _RIDGE * drift)
        return _State(nll, value, margin[0], gradient, kept)

    def _sum(self, task: Callable[[int, _Block], tuple[Any, ...]]) -> list[Any]:
        """Return the sums over all blocks of what a task returns for each, in an order that threads do not change."""

        @np.errstate(all="ignore")
        def work(first: int) -> list[Any]:
            total = list(task(first, self.blocks[first]))
            for index in range(first + 1, min(first + step, len(self.blocks))):
                total = [a + b for a, b in zip(total, task(index, self.blocks[index]), strict=True)]
            return total

        step = -(-len(self.blocks) // _GROUPS)
        groups = map_in_order(work, range(0, len(self.blocks), step))
        return [sum(parts) for parts in zip(*groups, strict=True)]

    def damp(self, length: float) -> None:
        """Hold back the next step if this one was too long, and trust it again if it was not."""
        if not self.direct:
            self.damping = max(10 * self.damping, _FIRST_DAMPING) if length < 1 else self.damping / 10

    def is_separable(self, state: _State) -> bool:
        """Return whether every row's class has the highest probability and no penalty holds the fit back."""
        return not self.penalized and state.margin > 0

    def direction(self, state: _State, last_gap: float) -> Array:
        if self.direct:
            return -_solve(self._hessian(state), state.gradient.ravel()).reshape(state.gradient.shape)
        # Far from the optimum the step need not be exact, because it will not be right.
        tolerance = 0.3 if last_gap > 0.01 * state.objective else 0.1
        return -_conjugate_gradients(
            self._product(state), self._preconditioner(state), state.gradient, tolerance
        )

    def _hessian(self, state: _State) -> Array:
        def task(index: int, block: _Block) -> tuple[Array, Array]:
            probs = state.probs[index]
            jacobian = self.shape.jacobian(block.features, probs)
            weighted = jacobian * block.share[:, None]
            moments = self.shape.moments(block.features, probs * block.share[:, None], weighted)
            return jacobian.T @ weighted, moments

        outer, own = self._sum(task)
        index = self.shape.per_class(np.arange(self.curvature.size).reshape(self.curvature.shape))
        hessian: Array = np.diag(self.curvature.ravel()) - outer
        hessian[index[:, :, None], index[:, None, :]] += own
        return hessian

    def _product(self, state: _State) -> Callable[[Array], Array]:
        def multiply(vector: Array) -> Array:
            light = vector.astype(np.float32)

            def task(index: int, block: _Block) -> tuple[Array]:
                probs, features = state.probs[index], block.light
                pushed = self.shape.forward(features, light)
                pushed -= np.einsum("mk,mk->m", probs, pushed)[:, None]
                pushed *= probs
                pushed *= block.share.astype(np.float32)[:, None]
                return (self.shape.adjoint(features, pushed).astype(np.float64),)

            (result,) = self._sum(task)
            result += (self.curvature + self.damping) * vector
            product: Array = result
            return product

        return multiply

    def _preconditioner(self, state: _State) -> Callable[[Array], Array]:
        if isinstance(self.shape, Diagonal):
            return self._class_preconditioner(state)
        return self._product_preconditioner(state)

    def _class_preconditioner(self, state: _State) -> Callable[[Array], Array]:
        def task(index: int, block: _Block) -> tuple[Array]:
            probs, features = state.probs[index], block.light
            spread = probs * (1 - probs) * block.share.astype(np.float32)[:, None]
            return (self.shape.moments(features, spread, features).astype(np.float64),)

        (own,) = self._sum(task)
        # With fewer rows than classes a class has one row or none: its moments, in float32, are singular or a little
        # indefinite. Their eigenvalues are bounded below, which a Cholesky factor cannot do.
        values, vectors = np.linalg.eigh(own)
        scale = values.clip(min=0) + self.shape.per_class(self.curvature + self.damping)
        scale = scale + 1e-12 * scale.max(axis=1, keepdims=True)

        def solve(vector: Array) -> Array:
            rotated = vectors.mT @ self.shape.per_class(vector)[..., None]
            return self.shape.arrange((vectors @ (rotated / scale[..., None]))[..., 0])

        return solve

    def _product_preconditioner(self, state: _State) -> Callable[[Array], Array]:
        """Approximate the Hessian by (curvature of each class) x (second moments of the features)."""

        def task(index: int, block: _Block) -> tuple[Array, Array]:
            probs, wide = state.probs[index], _with_one(block.light)
            own = probs * (1 - probs) * block.share.astype(np.float32)[:, None]
            return own.sum(0).astype(np.float64), ((wide * own.sum(1)[:, None]).T @ wide).astype(np.float64)

        spread, moments = self._sum(task)
        moments /= max(spread.sum(), _NEGLIGIBLE)  # no spread is left where every row is certain
        values, vectors = np.linalg.eigh(moments)
        damping = np.quantile(self.curvature, 0.5, method="lower") + self.damping
        scale = spread[:, None] * values.clip(min=0) + damping + 1e-12

        def solve(vector: Array) -> Array:
            solved: Array = (vector @ vectors / scale) @ vectors.T
            return solved

        return solve


def _light(probs: Array) -> Array:
    """Return probabilities in float32, without those too small to matter."""
    light = probs.astype(np.float32)
    light[light < _NEGLIGIBLE] = 0.0
    return light


def _conjugate_gradients(
    product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    target: Array,
    tolerance: float,
) -> Array:
    """Solve ``product(x) = target`` until the error in the energy norm stops mattering."""
    solution, residual = np.zeros_like(target), target.copy()
    helper = precondition(residual)
    search = helper.copy()
    energy = first = float((residual * helper).sum())
    for _ in range(200):
        pushed = product(search)
        along = float((search * pushed).sum())
        if not along > 0:
            break
        step = energy / along
        solution += step * search
        residual -= step * pushed
        helper = precondition(residual)
        fresh = float((residual * helper).sum())
        if fresh <= tolerance**2 * first:
            break
        search = helper + fresh / energy * search
        energy = fresh
    return solution


def _solve(matrix: Array, target: Array) -> Array:
    """Solve a positive definite system; damped if rounding has made it indefinite."""
    damping = 0.0
    for _ in range(20):
        try:
            factor = cho_factor(matrix + damping * np.eye(len(matrix)), check_finite=False)
        except LinAlgError:
            damping = max(10 * damping, 1e-14 * float(matrix.diagonal().max()))
            continue
        solved: Array = cho_solve(factor, target, check_finite=False)
        return solved
    return target
