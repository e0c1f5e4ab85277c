"""The best temperature: by likelihood with a safeguarded Newton search, by ECE on the papers' grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from scipy.optimize import minimize_scalar

from equipoise.core.arrays import Array
from equipoise.core.bins import bin_of, expected_error, lower_edges
from equipoise.core.checks import check_labels
from equipoise.core.errors import DataError
from equipoise.kernels.threads import map_in_order

__all__ = [
    "GRID",
    "Optimum",
    "ScoreBlock",
    "ece_on_grid",
    "fit_beta",
    "fit_top_versus_all",
    "over_blocks",
    "papers_grid",
]

_SUBSAMPLES = (512, 4096)
_SEPARABLE = 1e-6
_LAST_STEP = 1e-8
# Numbers in a block of rows, which fits the second-level cache of a processor with their exponentials.
_BLOCK = 1 << 15


def papers_grid() -> Array:
    """Return the 100 temperatures of the papers, 0.1 to 10, by repeated addition as their code does.

    Example:
        >>> len(papers_grid()), float(papers_grid()[-1])
        (100, 9.99999999999998)
    """
    return np.cumsum(np.full(100, 0.1))


GRID = papers_grid()


@dataclass(frozen=True, slots=True)
class Optimum:
    """Where a search over the inverse temperature ended.

    Attributes:
        beta: The inverse temperature.
        nll: Mean NLL there.
        nll_before: Mean NLL at 1.
        gradient: Size of the slope of the mean NLL in log T, before the last step.
        gap: Estimated excess over the minimum.
        iterations: Passes over all rows.
        bound: ``"sharp"`` or ``"flat"`` if the search was stopped on the way to 0 or to infinity.
    """

    beta: float
    nll: float
    nll_before: float
    gradient: float
    gap: float
    iterations: int
    bound: str | None


def fit_beta(logits: Array, labels: Array, weights: Array | None) -> Optimum:
    """Minimize the mean NLL of ``beta * logits``, which is convex in beta.

    Subsamples give the start, so that two or three passes over all rows suffice. The bounds are the
    temperatures at which logits of typical size become 100 (saturated) and 0.01 (uniform); the search also stops
    at a mean NLL of 1e-6, where the classes are separated and it would fall without end.

    Args:
        logits: ``(n, k)``, float32 or float64; read in place, never copied.
        labels: ``(n,)``.
        weights: ``(n,)`` or None.

    Returns:
        The optimum and its certificate.

    Example:
        >>> z, y = np.array([[3.0, 0.0]] * 4), np.array([0, 0, 0, 1])  # right in 3 of 4: 3 = exp(3 beta)
        >>> round(fit_beta(z, y, None).beta, 6)
        0.366204
    """
    check_labels(labels, n_classes=logits.shape[1], where="fit")
    whole = _objective(logits, labels, weights)
    parts = [_subsample(logits, labels, weights, rows) for rows in _SUBSAMPLES if len(labels) > 2 * rows]
    size = sqrt(max((parts[0] if parts else whole)(0.0)[2], 0.0))
    before, *_ = whole(1.0)
    if not isfinite(size):
        raise DataError(
            "fit: `logits` must be numbers whose squares are finite, got larger ones. Are these a network's logits?"
        )
    if size == 0.0:
        return Optimum(1.0, before, before, 0.0, 0.0, 1, None)
    bounds = (0.01 / size, 100.0 / size)
    start = 1.0
    for part in parts:
        start = _newton(part, bounds, start).beta
    end = _newton(whole, bounds, start)
    return Optimum(end.beta, end.value, before, end.beta * abs(end.slope), end.gap, end.passes + 1, end.bound)


def fit_top_versus_all(logits: Array, labels: Array, weights: Array | None) -> tuple[float, int]:
    """Minimize the log-loss of the confidence as the probability that the prediction is right.

    The loss is not convex in beta, so a scan around the best beta by likelihood comes first.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)`` or None.

    Returns:
        The inverse temperature, and how many passes over the rows it took.

    Example:
        >>> z, y = np.array([[3.0, 0.0, 0.0]] * 4), np.array([0, 0, 0, 1])
        >>> round(fit_top_versus_all(z, y, None)[0], 4)  # exp(3 beta) / 2 = 3
        0.5973
    """

    def task_at(beta: float) -> Callable[[ScoreBlock], Array]:
        def task(block: ScoreBlock) -> Array:
            scaled = block.gaps * beta
            top = scaled.argmax(axis=1)[:, None]
            np.put_along_axis(scaled, top, -inf, axis=1)
            second = scaled.max(axis=1)
            # The log-odds of the confidence against all other classes together.
            odds = -second - np.log(np.exp(scaled - second[:, None]).sum(axis=1))
            right = block.labels == top[:, 0]
            return np.asarray(np.logaddexp(0.0, np.where(right, -odds, odds)) @ block.weights)

        return task

    def loss(log_beta: float) -> float:
        return float(
            np.sum(over_blocks(task_at(float(np.exp(log_beta))), logits, labels, weights, np.float64))
        )

    scan = np.log(fit_beta(logits, labels, weights).beta) + np.linspace(-3.0, 3.0, 13)
    best = int(np.argmin([loss(point) for point in scan]))
    between = scan[max(best - 1, 0)], scan[min(best + 1, len(scan) - 1)]
    found = minimize_scalar(loss, bounds=between, method="bounded", options={"xatol": 1e-9})
    return float(np.exp(found.x)), int(found.nfev) + len(scan)


Derivatives: TypeAlias = tuple[float, float, float]


class _End(NamedTuple):
    """Where Newton's method ended: value and gap after the last step, slope before it."""

    beta: float
    value: float
    slope: float
    gap: float
    passes: int
    bound: str | None


def _newton(objective: Callable[[float], Derivatives], bounds: tuple[float, float], start: float) -> _End:
    """Newton's method on a convex function, kept inside a bracket that shrinks with every slope seen.

    The last step is not evaluated: once it promises less than 1e-8, what is left after it is of the order of
    that promise squared, by a factor that the step before has shown.
    """
    floor, ceiling = low, high = bounds
    beta, promised = min(max(start, low), high), inf
    for passes in range(1, 101):
        value, slope, curvature = objective(beta)
        if slope <= 0 and (beta == ceiling or value < _SEPARABLE):
            return _End(beta, value, slope, value, passes, "sharp")
        if beta == floor and slope >= 0:
            return _End(beta, value, slope, inf, passes, "flat")
        low, high = (low, beta) if slope > 0 else (beta, high)
        step = -slope / curvature if curvature > 0 else -inf * slope
        before, promised = promised, abs(slope * step)
        if promised <= 1e-15 or high - low <= 1e-14 * high:
            return _End(beta, value, slope, promised / 2, passes, None)
        if promised <= _LAST_STEP and promised < before < 1e-2:
            left = promised * (promised / before) ** 2
            return _End(beta + step, value - promised / 2, slope, left, passes, None)
        beta = _inside(beta + step, low, high, bounds)
    return _End(beta, value, slope, promised, passes, None)


def _inside(target: float, low: float, high: float, bounds: tuple[float, float]) -> float:
    """Keep a step inside the bracket; a bound that was never tried is tried, else the bracket is halved."""
    if low < target < high:
        return target
    tried = high if target >= high else low
    return tried if tried in bounds else sqrt(low * high)


def _subsample(
    logits: Array, labels: Array, weights: Array | None, rows: int
) -> Callable[[float], Derivatives]:
    step = slice(None, None, len(labels) // rows)
    return _objective(logits[step], labels[step], None if weights is None else weights[step])


def _objective(logits: Array, labels: Array, weights: Array | None) -> Callable[[float], Derivatives]:
    def mean(beta: float) -> Derivatives:
        def sums(block: ScoreBlock) -> Array:
            exps = np.exp(np.multiply(block.gaps, beta))
            zeroth, once = np.einsum("ij->i", exps), np.einsum("ij,ij->i", exps, block.gaps)
            exps *= block.gaps
            once, twice = once / zeroth, np.einsum("ij,ij->i", exps, block.gaps) / zeroth
            columns = (
                np.log(zeroth) - beta * block.own,
                once - block.own,
                twice - once**2,
                np.ones(len(once)),
            )
            return np.stack(columns) @ block.weights

        value, slope, curvature, total = np.sum(
            over_blocks(sums, logits, labels, weights, np.float64), axis=0
        )
        return float(value / total), float(slope / total), float(curvature / total)

    return mean


class ScoreBlock(NamedTuple):
    """Some rows that fit the processor's cache: how far logits, and that of the label, are below the largest."""

    gaps: Array
    own: Array
    labels: Array
    weights: Array


def over_blocks(
    task: Callable[[ScoreBlock], Array], logits: Array, labels: Array, weights: Array | None, dtype: DTypeLike
) -> list[Array]:
    """Return the results of a task for some rows at a time, in a fixed order, with gaps in a precision."""
    step = max(1, _BLOCK // logits.shape[1])

    def work(start: int) -> Array:
        rows = slice(start, start + step)
        block, label = logits[rows].astype(dtype), labels[rows, None]
        block -= np.take_along_axis(block, block.argmax(axis=1)[:, None], axis=1)
        own = np.take_along_axis(block, label, axis=1)[:, 0]
        # Squares of what is too large become infinite, and fit_beta reports it.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return task(
                ScoreBlock(block, own, labels[rows], np.ones(len(own)) if weights is None else weights[rows])
            )

    return map_in_order(work, range(0, len(labels), step))


def ece_on_grid(
    logits: Array, labels: Array, weights: Array | None, *, n_bins: int, grid: Array = GRID
) -> tuple[int, Array]:
    """Find the first temperature of a grid with the smallest ECE.

    Exponentials are taken in the precision of the logits, as the papers' code does, and summed in float64.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)`` or None.
        n_bins: Number of equal-width, right-closed bins.
        grid: Ascending temperatures.

    Returns:
        The position of the best temperature, and the ECE at every one.

    Example:
        >>> z, y = np.array([[3.0, 0.0]] * 4), np.array([0, 0, 0, 1])
        >>> best, ece = ece_on_grid(z, y, None, n_bins=15)
        >>> round(float(GRID[best]), 1), round(float(ece[best]), 3)
        (2.7, 0.002)
    """
    betas, edges = 1.0 / grid, lower_edges(n_bins, "right")
    # Papers take exponentials in the precision of the logits.
    dtype = logits.dtype if logits.dtype == np.float32 else np.dtype(np.float64)

    def gaps_by_bin(block: ScoreBlock) -> Array:
        scaled, wide = np.empty_like(block.gaps), np.empty(block.gaps.shape)
        confidence = np.empty((len(betas), len(block.own)))
        for row, beta in zip(confidence, betas.astype(dtype), strict=True):
            wide[:] = np.exp(np.multiply(block.gaps, beta, out=scaled), out=scaled)
            np.divide(1.0, np.einsum("ij->i", wide), out=row)
        correct = block.gaps.argmax(axis=1) == block.labels
        place = bin_of(confidence, edges[1:-1]) + n_bins * np.arange(len(betas))[:, None]
        gaps = block.weights * (confidence - correct)
        return np.bincount(place.reshape(-1), gaps.reshape(-1), minlength=len(betas) * n_bins)

    total = len(labels) if weights is None else weights.sum()
    table = np.sum(over_blocks(gaps_by_bin, logits, labels, weights, dtype), axis=0)
    ece = expected_error(table.reshape(len(betas), n_bins), total)
    return int(np.argmin(ece)), ece
