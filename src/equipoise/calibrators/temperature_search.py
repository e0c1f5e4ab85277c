"""The best temperature: by likelihood with a safeguarded Newton search, by ECE on the papers' grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from equipoise.compiled.dispatch import find_kernel
from equipoise.core.arrays import Array, as_tensor
from equipoise.core.bins import bin_of, expected_error, lower_edges
from equipoise.core.checks import check_labels
from equipoise.core.errors import DataError

__all__ = ["GRID", "Optimum", "ece_on_grid", "fit_beta", "papers_grid"]

_ROWS_PER_THREAD = 1024
_SUBSAMPLES = (512, 4096)
_SEPARABLE = 1e-6
_LAST_STEP = 1e-8
# How many numbers the plain ways look at at once.
_PLAIN_BLOCK = 1 << 16


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
    check_labels(labels, n_classes=logits.shape[1], where="fit")  # compiled code does not look where it reads
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
    arrays = _writable(logits, labels, weights)
    likelihood_at = find_kernel("temperature", arrays[0].dtype.char, logits.size) or _likelihood_plainly

    def mean(beta: float) -> Derivatives:
        parts = _over_rows(lambda start, stop: likelihood_at(*arrays, beta, start, stop), len(labels))
        value, slope, curvature, total = np.sum(parts, axis=0)
        return float(value / total), float(slope / total), float(curvature / total)

    return mean


def _likelihood_plainly(
    logits: Array, labels: Array, weights: Array, beta: float, start: int, stop: int
) -> Array:
    """Do what :func:`equipoise.compiled.temperature_kernel.likelihood_at` does, with torch alone."""
    sums = torch.zeros(4, dtype=torch.float64)
    for gaps, truth, weight in _blocks_of_gaps(logits, labels, weights, start, stop):
        exps = torch.exp(beta * gaps)
        zeroth, own = exps.sum(1), gaps.gather(1, truth[:, None])[:, 0]
        once, twice = ((exps * gaps**power).sum(1) / zeroth for power in (1, 2))
        columns = (zeroth.log() - beta * own, once - own, twice - once**2, torch.ones_like(own))
        sums += torch.stack(columns) @ weight
    return sums.numpy()


def _blocks_of_gaps(
    logits: Array, labels: Array, weights: Array, start: int, stop: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Give some rows at a time: how far logits are below the highest of their row, labels, weights; float64."""
    step = max(1, _PLAIN_BLOCK // logits.shape[1])
    for first in range(start, stop, step):
        rows = slice(first, min(first + step, stop))
        block = torch.from_numpy(logits[rows]).double()
        truth = torch.from_numpy(labels[rows])
        weight = torch.from_numpy(weights[rows]).double() if len(weights) else torch.ones(len(truth)).double()
        yield block - block.amax(1, keepdim=True), truth, weight


def ece_on_grid(
    logits: Array, labels: Array, weights: Array | None, *, n_bins: int, grid: Array = GRID
) -> tuple[int, Array]:
    """Find the first temperature of a grid with the smallest ECE.

    Compiled code takes exponentials in the precision of the logits, as the papers' code does; the plain way takes them
    in float64. Both sum in float64.

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
    arrays = _writable(logits, labels, weights)
    betas, edges = (1.0 / grid).astype(arrays[0].dtype), lower_edges(n_bins, "right")
    gaps_by_bin = find_kernel("confidences", arrays[0].dtype.char, logits.size * len(grid)) or _gaps_plainly
    parts = _over_rows(lambda start, stop: gaps_by_bin(*arrays, betas, edges, start, stop), len(labels))
    total = len(labels) if weights is None else weights.sum()
    ece = expected_error(np.sum(parts, axis=0), total)
    return int(np.argmin(ece)), ece


def _gaps_plainly(
    logits: Array, labels: Array, weights: Array, betas: Array, edges: Array, start: int, stop: int
) -> Array:
    """Do what :func:`equipoise.compiled.temperature_kernel.gaps_by_bin` does, with torch alone."""
    table = np.zeros((len(betas), len(edges) - 1))
    for gaps, truth, weight in _blocks_of_gaps(logits, labels, weights, start, stop):
        hit = (gaps.argmax(1) == truth).double()
        for t, beta in enumerate(betas.tolist()):
            confidence = (1 / torch.exp(beta * gaps).sum(1)).clamp_max(1.0)
            place = bin_of(confidence.numpy(), edges[1:-1])
            table[t] += np.bincount(place, (weight * (confidence - hit)).numpy(), minlength=len(edges) - 1)
    return table


def _writable(logits: Array, labels: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    # The compiler takes read-only arrays for another type; an alias saves a second compilation.
    given = (logits, labels, np.empty(0) if weights is None else weights.astype(np.float64, copy=False))
    first, second, third = (as_tensor(np.ascontiguousarray(array)).numpy() for array in given)
    return first, second, third


def _over_rows(task: Callable[[int, int], Any], n_rows: int) -> list[Any]:
    """Run a compiled task on ranges of rows, in as many threads as torch may use."""
    n_threads = min(torch.get_num_threads(), max(1, n_rows // _ROWS_PER_THREAD))
    ends = np.linspace(0, n_rows, n_threads + 1).astype(int)
    ranges = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    if n_threads == 1:
        return [task(*ranges[0])]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda one: task(*one), ranges))
