"""Exact fits of softmax(A x + b): a Newton method for full or diagonal A with a quadratic penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import torch
from torch import Tensor

from equipoise.calibrators.forms import blocks
from equipoise.calibrators.linear_shapes import Diagonal, Shape, with_one
from equipoise.core.arrays import Array, as_tensor

__all__ = ["QuadraticPenalty", "RegressionFit", "fit_softmax"]

# Keeps absent classes and separable rows finite and picks one of the equivalent maps; moves optima by about 1e-8.
_RIDGE = 1e-9
_MOST_STEPS = 60
_DIRECT = 150
# Separable rows have no best map: the likelihood grows without end, and this much NLL is where it is stopped.
_ENOUGH = 1e-4
_MOST_DOUBLINGS = 30
# On the way there Newton's steps lead too far; this much is added to the curvature first, more if it does not help.
_FIRST_DAMPING = 1e-4
# Smaller probabilities would become denormal float32, a hundred times slower to multiply, and matter to nothing.
_NEGLIGIBLE = 1e-20
_TOLERANCE = 1e-11
_LOOSE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class QuadraticPenalty:
    """``sum(strength * (theta - centre)**2)``, both in the shape of the parameters."""

    strength: Tensor
    centre: Tensor


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
        separable: Whether a map was found that ranks every row's class first, and no penalty holds it back: then its
            multiples are better and better.
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
        """The evidence, by name."""
        return {"gradient": self.gradient, "gap": self.gap}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is unusual about the fit."""
        if not self.separable:
            return ()
        return (
            "the map separates the classes of its fit rows, so it was stopped; use more rows or a penalised map",
        )


def fit_softmax(
    features: Array,
    labels: Array,
    weights: Array | None,
    *,
    shape: Shape,
    start: Tensor,
    penalty: QuadraticPenalty,
) -> RegressionFit:
    """Minimise the mean NLL of ``softmax(shape(features, theta))`` plus a penalty; convex.

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
        >>> from equipoise.calibrators.linear_shapes import Diagonal
        >>> x, y = np.array([[1.0, 0.0]] * 4), np.array([0, 0, 0, 1])
        >>> start = torch.tensor([[1.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
        >>> found = fit_softmax(x, y, None, shape=Diagonal(), start=start,
        ...                     penalty=QuadraticPenalty(torch.zeros_like(start), start))
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
    gradient = float(state.gradient.abs().max())
    gap = max(step_gap, 0.0)
    return RegressionFit(
        theta.numpy(),
        state.objective,
        gradient,
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
    gradient: Tensor
    probs: Sequence[Tensor]


class _Problem:
    def __init__(
        self,
        features: Array,
        labels: Array,
        weights: Array | None,
        *,
        shape: Shape,
        start: Tensor,
        penalty: QuadraticPenalty,
    ) -> None:
        n_rows, n_classes = features.shape
        share = np.full(n_rows, 1.0 / n_rows) if weights is None else weights / weights.sum()
        self.shape, self.penalty, self.start = shape, penalty, start
        self.direct = start.numel() <= _DIRECT
        self.slices = list(blocks(n_rows, start.numel() if self.direct else n_classes))
        self.features = [as_tensor(features[block]).double() for block in self.slices]
        self.labels = [as_tensor(labels[block])[:, None] for block in self.slices]
        self.share = [as_tensor(share[block])[:, None].double() for block in self.slices]
        self.curvature = 2 * (penalty.strength + _RIDGE)
        self.damping, self.penalised = 0.0, bool(penalty.strength.any())
        self.light = [] if self.direct else [x.float() for x in self.features]

    def evaluate(self, theta: Tensor) -> _State:
        nll, margin, gradient, probs = 0.0, inf, torch.zeros_like(theta), []
        for x, y, w in zip(self.features, self.labels, self.share, strict=True):
            log_probs = self.shape.forward(x, theta).log_softmax(1)
            own = log_probs.gather(1, y)
            nll -= float((own * w).sum())
            if not self.penalised and margin > 0:
                lead = own - log_probs.scatter(1, y, -inf).amax(1, keepdim=True)
                margin = min(margin, float(torch.where(w > 0, lead, inf).min()))
            p = log_probs.exp_()
            probs.append(p if self.direct else torch.nn.functional.threshold(p.float(), _NEGLIGIBLE, 0.0))
            residual = p * w
            residual.scatter_add_(1, y, -w)
            gradient += self.shape.adjoint(x, residual)
        offset = theta - self.penalty.centre
        drift = theta - self.start
        value = nll + float((self.penalty.strength * offset**2).sum() + _RIDGE * (drift**2).sum())
        gradient += 2 * (self.penalty.strength * offset + _RIDGE * drift)
        return _State(nll, value, margin, gradient, probs)

    def damp(self, length: float) -> None:
        """Hold back the next step if this one was too long, and trust it again if it was not."""
        if not self.direct:
            self.damping = max(10 * self.damping, _FIRST_DAMPING) if length < 1 else self.damping / 10

    def is_separable(self, state: _State) -> bool:
        """Return whether every row's class has the highest probability and no penalty holds the map back."""
        return not self.penalised and state.margin > 0

    def direction(self, state: _State, last_gap: float) -> Tensor:
        if self.direct:
            return -_solve(self._hessian(state), state.gradient.flatten()).reshape(state.gradient.shape)
        # Far from the optimum the step need not be exact, because it will not be right.
        tolerance = 0.3 if last_gap > 0.01 * state.objective else 0.1
        return -_conjugate_gradients(
            self._product(state), self._preconditioner(state), state.gradient, tolerance
        )

    def _hessian(self, state: _State) -> Tensor:
        size = self.curvature.numel()
        total = torch.zeros(size, size, dtype=torch.float64, device="cpu")
        own = None
        for x, p, w in zip(self.features, state.probs, self.share, strict=True):
            jacobian = self.shape.jacobian(x, p)
            weighted = jacobian * w
            total.addmm_(jacobian.T, weighted, alpha=-1)
            part = self.shape.moments(x, p * w, weighted)
            own = part if own is None else own + part
        assert own is not None
        n_classes, width, _ = own.shape
        place = self.shape.per_class(torch.arange(size, device="cpu").reshape(self.curvature.shape))
        rows = place[:, :, None].expand(n_classes, width, width)
        total[rows, rows.mT] += own
        return total + torch.diag(self.curvature.flatten())

    def _product(self, state: _State) -> Callable[[Tensor], Tensor]:
        share = [w.float() for w in self.share]

        def product(vector: Tensor) -> Tensor:
            light, result = vector.float(), (self.curvature + self.damping) * vector
            for x, p, w in zip(self.light, state.probs, share, strict=True):
                pushed = self.shape.forward(x, light)
                mean = torch.einsum("mk,mk->m", p, pushed)[:, None]
                result += self.shape.adjoint(x, pushed.sub_(mean).mul_(p).mul_(w))
            return result

        return product

    def _preconditioner(self, state: _State) -> Callable[[Tensor], Tensor]:
        if isinstance(self.shape, Diagonal):
            return self._class_preconditioner(state)
        return self._product_preconditioner(state)

    def _class_preconditioner(self, state: _State) -> Callable[[Tensor], Tensor]:
        own = torch.zeros((), device="cpu")
        for x, p, w in zip(self.light, state.probs, self.share, strict=True):
            own = own + self.shape.moments(x, p * (1 - p) * w.float(), x).double()
        # With fewer rows than classes a class has one row or none: its moments, in float32, are singular or a little
        # indefinite. Their eigenvalues are bounded below, which a Cholesky factor cannot do.
        values, vectors = torch.linalg.eigh(own)
        scale = values.clamp(min=0) + self.shape.per_class(self.curvature + self.damping)
        scale = scale + 1e-12 * scale.amax(1, keepdim=True)

        def solve(vector: Tensor) -> Tensor:
            rotated = vectors.mT @ self.shape.per_class(vector)[..., None]
            return self.shape.arrange((vectors @ (rotated / scale[..., None]))[..., 0])

        return solve

    def _product_preconditioner(self, state: _State) -> Callable[[Tensor], Tensor]:
        """Approximate the Hessian by (curvature of each class) x (second moments of the features)."""
        n_classes = self.features[0].shape[1]
        spread = torch.zeros(n_classes, dtype=torch.float64, device="cpu")
        moments = torch.zeros(n_classes + 1, n_classes + 1, dtype=torch.float64, device="cpu")
        for x, p, w in zip(self.light, state.probs, self.share, strict=True):
            own = p * (1 - p) * w.float()
            spread += own.sum(0)
            wide = with_one(x)
            moments += (wide * own.sum(1, keepdim=True)).T @ wide
        moments /= spread.sum().clamp(min=_NEGLIGIBLE)  # no spread is left where every row is certain
        values, vectors = torch.linalg.eigh(moments)
        damping = self.curvature.median() + self.damping
        scale = spread[:, None] * values.clamp(min=0) + damping + 1e-12

        def solve(vector: Tensor) -> Tensor:
            solved: Tensor = (vector @ vectors / scale) @ vectors.T
            return solved

        return solve


def _conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    precondition: Callable[[Tensor], Tensor],
    target: Tensor,
    tolerance: float,
) -> Tensor:
    """Solve ``product(x) = target`` until the error in the energy norm stops mattering."""
    solution, residual = torch.zeros_like(target), target.clone()
    helper = precondition(residual)
    search = helper.clone()
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


def _solve(matrix: Tensor, target: Tensor) -> Tensor:
    """Solve a positive definite system; damped if rounding has made it indefinite."""
    damping = 0.0
    for _ in range(20):
        factor, failed = torch.linalg.cholesky_ex(matrix + damping * torch.eye(len(matrix), device="cpu"))
        if not failed:
            return torch.cholesky_solve(target[:, None], factor)[:, 0]
        damping = max(10 * damping, 1e-14 * float(matrix.diagonal().amax()))
    return target
