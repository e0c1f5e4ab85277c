"""The best temperature: by likelihood with a safeguarded Newton search, by ECE on the papers' grid."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf, isfinite, log2, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError

__all__ = ["GRID", "Optimum", "ece_on_grid", "fit_beta", "papers_grid"]

_ROWS_PER_THREAD = 1024
_SUBSAMPLES = (512, 4096)
_SEPARABLE = 1e-6
_LAST_STEP = 1e-8
_RUNGS = 4
_WIDTH = 10


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
    """Minimise the mean NLL of ``beta * logits``, which is convex in beta.

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
    from equipoise.calibrators.kernels import temperature_pass

    arrays = _contiguous(logits, labels, weights)

    def mean(beta: float) -> Derivatives:
        parts = _over_rows(lambda start, stop: temperature_pass(*arrays, beta, start, stop), len(labels))
        value, slope, curvature, total = np.sum(parts, axis=0)
        return float(value / total), float(slope / total), float(curvature / total)

    return mean


def ece_on_grid(
    logits: Array, labels: Array, weights: Array | None, *, n_bins: int, grid: Array = GRID
) -> tuple[int, Array]:
    """Find the first temperature of a grid with the smallest ECE.

    All temperatures are scanned in one pass, from partition functions interpolated in log T (error about 1e-7);
    those within 1e-5 of the smallest are then evaluated exactly, so that the choice is the exact one.

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
    arrays = _contiguous(logits, labels, weights)
    betas = 1.0 / grid
    ece = _ece(arrays, _interpolating_ladder(betas), n_bins)
    near = np.flatnonzero(ece <= ece.min() + 1e-5)
    exact = np.full(len(grid), np.inf)
    exact[near] = _ece(arrays, _exact_ladder(betas[near]), n_bins)
    ece[near] = exact[near]
    return int(np.argmin(exact)), ece


#: Rungs of the lowest octave, number of octaves, and for each wanted beta its first rung and weights.
_Ladder: TypeAlias = tuple[Array, int, Array, Array]


def _exact_ladder(betas: Array) -> _Ladder:
    """Return a ladder with one rung for each beta."""
    return betas, 1, np.arange(len(betas)), np.ones((len(betas), 1))


def _interpolating_ladder(betas: Array) -> _Ladder:
    """Return a ladder in log beta and, for each beta, Lagrange weights on the rungs around it."""
    lowest, highest = log2(betas.min()), log2(betas.max())
    octaves = int(np.ceil(highest - lowest + 1 / _RUNGS))
    margin = (octaves - 1 / _RUNGS - (highest - lowest)) / 2
    place = (np.log2(betas) - lowest + margin) * _RUNGS
    offsets = np.clip(np.round(place - (_WIDTH - 1) / 2), 0, octaves * _RUNGS - _WIDTH).astype(np.int64)
    distance = (place - offsets)[:, None] - np.arange(_WIDTH)
    stencils = np.empty((len(betas), _WIDTH))
    for c in range(_WIDTH):
        others = np.delete(np.arange(_WIDTH), c)
        stencils[:, c] = np.prod(distance[:, others] / (c - others), axis=1)
    rungs = 2.0 ** (lowest - margin + np.arange(_RUNGS) / _RUNGS)
    return rungs, octaves, offsets, stencils


def _ece(arrays: Any, ladder: _Ladder, n_bins: int) -> Array:
    from equipoise.calibrators.kernels import confidence_bins

    edges = np.linspace(0.0, 1.0, n_bins + 1)
    parts = _over_rows(
        lambda start, stop: confidence_bins(*arrays, *ladder, edges, start, stop),
        len(arrays[1]),
    )
    total = arrays[2].sum() if len(arrays[2]) else len(arrays[1])
    gaps: Array = np.abs(np.sum(parts, axis=0)).sum(axis=1) / total
    return gaps


def _contiguous(logits: Array, labels: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    return (
        np.ascontiguousarray(logits),
        np.ascontiguousarray(labels),
        np.empty(0) if weights is None else np.ascontiguousarray(weights),
    )


def _over_rows(task: Callable[[int, int], Any], n_rows: int) -> list[Any]:
    """Run a compiled task on ranges of rows, in as many threads as torch may use."""
    n_threads = min(torch.get_num_threads(), max(1, n_rows // _ROWS_PER_THREAD))
    ends = np.linspace(0, n_rows, n_threads + 1).astype(int)
    ranges = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    if n_threads == 1:
        return [task(*ranges[0])]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda one: task(*one), ranges))
