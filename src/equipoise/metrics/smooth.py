"""Smooth calibration error (smECE), and the reliability curve smoothed in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.fft import dct, idct

from equipoise.core.arrays import Array
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.metrics.inputs import check_bandwidth, top_label
from equipoise.metrics.state import CalibrationState

__all__ = [
    "SmoothCurve",
    "fixed_point_errors",
    "residual_spectrum",
    "smooth_calibration_error",
    "smooth_curve",
    "smooth_error",
    "smoothed_error",
]

_GRID = 1 << 14
# Rows in a block, whose arrays stay in the processor's cache.
_BLOCK = 1 << 15
_MOST_STEPS = 50
# The smaller grid on which a fixed point is sought first, and the width it begins with.
_COARSE, _FIRST_WIDTH = 1 << 10, 0.02
# Cosines whose frequency times the width is above this are damped to less than rounding.
_LAST = 9.0
_CURVE_GRID = 256
_NARROWEST = 0.01
_FEWEST_ROWS = 5.0
_TINY = float(np.finfo(np.float32).tiny)


def smooth_calibration_error(
    probs: Any, labels: Any = None, *, bandwidth: float | None = None, sample_weight: Any = None
) -> float:
    r"""Return the smooth calibration error of the top label.

    Residuals (confidence - correct) are smoothed along the confidence axis with a Gaussian kernel reflected at 0 and
    1; the error is the integral of their absolute value. The kernel's width is the fixed point at which width and
    error agree, so there is nothing to choose, and the number moves continuously with the predictions.

    .. math:: \mathrm{smECE} = \sigma^* \text{ with } \int_0^1 \Big| \frac1n \sum_i K_{\sigma^*}(t, c_i)(c_i - a_i)
        \Big| dt = \sigma^*

    Args:
        probs: Probabilities ``(n, k)`` or ``(n,)``; or Predictions alone.
        labels: True classes ``(n,)``.
        bandwidth: A fixed width instead of the fixed point.
        sample_weight: One weight per row.

    Returns:
        A number from 0 to 1.

    Example:
        >>> round(smooth_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 4)
        0.4

    Reference:
        Blasiok and Nakkiran (2023), Smooth ECE: principled reliability diagrams via kernel smoothing.

    Differs from the authors' code:
        Residuals are spread linearly over a grid of 16,384 cells and smoothed exactly in the cosine basis, in which
        the reflected Gaussian is diagonal, and the fixed point is solved to 1e-9; theirs rounds confidences to a coarse
        grid, adds 1e-4 to densities and stops bisection at 1e-3, which shifts values by up to 1e-3.
    """
    if bandwidth is not None:
        check_bandwidth(bandwidth, where="smooth_calibration_error")
    top = top_label(probs, labels, sample_weight, where="smooth_calibration_error")
    if bandwidth is not None:
        return float(smoothed_error(residual_spectrum(top.confidence, top.gaps / top.total), bandwidth))
    return smooth_error(top.confidence, top.gaps, top.total)


def smooth_error(confidence: Array, residual: Array, total: float) -> float:
    """Return the error at the width that equals it, from residuals and the weight of all rows.

    Example:
        >>> round(smooth_error(np.array([0.5]), np.array([0.5]), 2.0), 6)
        0.25
    """
    return float(fixed_point_errors(residual_spectrum(confidence, residual)[None] / total)[0])


def residual_spectrum(confidence: Array, residual: Array, *, n_grid: int = _GRID) -> Array:
    """Return the cosine coefficients of residuals spread linearly over the midpoints of a grid.

    Args:
        confidence: ``(n,)`` from 0 to 1.
        residual: ``(n,)``, already divided by the total weight.
        n_grid: Cells of the grid.

    Returns:
        ``(n_grid,)`` coefficients of the density of residuals.

    Example:
        >>> spectrum = residual_spectrum(np.array([0.5]), np.array([0.25]), n_grid=8)
        >>> round(float(smoothed_error(spectrum, 0.1)), 6)
        0.25
    """
    mass = np.zeros(n_grid)
    for start in range(0, len(confidence), _BLOCK):
        part = slice(start, start + _BLOCK)
        position = np.clip(confidence[part] * n_grid - 0.5, 0, n_grid - 1)
        left = np.minimum(position.astype(np.int64), n_grid - 2)
        moved = residual[part] * (position - left)
        mass += np.bincount(left, residual[part] - moved, n_grid)
        mass[1:] += np.bincount(left, moved, n_grid)[:-1]
    result: Array = dct(mass * n_grid, norm="ortho")
    return result


@np.errstate(under="ignore")
def smoothed_error(spectrum: Array, bandwidth: float | Array) -> Array:
    """Return the integral of the absolute smoothed residual, for one or many spectra ``(..., n_grid)``.

    Example:
        >>> float(smoothed_error(np.zeros(8), 0.1))
        0.0
    """
    width = np.asarray(bandwidth, dtype=spectrum.dtype)[..., None]
    n_kept = int(min(spectrum.shape[-1], 1 + _LAST / (np.pi * float(width.min()))))
    frequency = np.pi * np.arange(n_kept, dtype=spectrum.dtype)
    damping = np.exp(-0.5 * (frequency * width) ** 2)
    smooth = idct(spectrum[..., :n_kept] * damping, n=spectrum.shape[-1], norm="ortho", overwrite_x=True)
    result: Array = np.abs(smooth, out=smooth).mean(axis=-1)
    return result


def fixed_point_errors(spectra: Array, *, tolerance: float = 1e-8) -> Array:
    """Return the error of each spectrum at the width that equals it.

    The error falls as the width grows, so there is one such width, at most 1. The logarithm of the error is nearly a
    straight line over the logarithm of the width: of slope 0 where errors have one sign, and -1/2 where they are noise.
    So a secant method in logarithms needs three or four steps. A fine grid begins where a coarse one ended.

    Args:
        spectra: ``(n, n_grid)`` cosine coefficients of residuals.
        tolerance: Largest relative change of the last step, after which the error is about its square.

    Returns:
        ``(n,)``; where even the finest width is above the error, the error at the finest width.

    Example:
        >>> spectrum = residual_spectrum(np.array([0.5]), np.array([0.25]))
        >>> fixed_point_errors(spectrum[None]).round(6)
        array([0.25])
    """
    n_grid = spectra.shape[-1]
    width, slope = np.full(len(spectra), np.log(_FIRST_WIDTH)), np.full(len(spectra), 1.25)
    if n_grid > 2 * _COARSE:
        coarse = spectra[:, :_COARSE] * np.sqrt(_COARSE / n_grid)
        width, slope = _fixed_points(coarse, width, slope, tolerance)
    width, _ = _fixed_points(spectra, width, slope, tolerance)
    result: Array = np.exp(width)
    at_finest = width <= np.log(0.5 / n_grid)
    if at_finest.any():
        result[at_finest] = smoothed_error(spectra[at_finest], result[at_finest])
    return result


def _fixed_points(spectra: Array, width: Array, slope: Array, tolerance: float) -> tuple[Array, Array]:
    """Return the logarithms of the widths that equal their errors, and the slopes there, from a guess of both."""
    finest = np.log(0.5 / spectra.shape[-1])
    width = np.maximum(width, finest)
    excess = _log_excess(spectra, width)
    for _ in range(_MOST_STEPS):
        following = np.clip(width + excess / slope, finest, 0.0)
        step, before, width = following - width, excess, following
        if (np.abs(step) < tolerance).all():
            break
        excess = _log_excess(spectra, width)
        change = np.divide(before - excess, step, out=slope.copy(), where=np.abs(step) > tolerance)
        slope = np.clip(change, 1.0, 3.0)
    return width, slope


def _log_excess(spectra: Array, log_width: Array) -> Array:
    """Return the logarithm of error over width."""
    errors = smoothed_error(spectra, np.exp(log_width)).astype(np.float64)
    result: Array = np.log(np.maximum(errors, _TINY)) - log_width
    return result


@final
@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """How often predictions are right, by confidence, smoothed at the scale of the smooth calibration error.

    Attributes:
        confidence: Points on the confidence axis, ascending.
        frequency: How often predictions of about this confidence are right; NaN where there are almost none.
        low: Lower edge of the bootstrap band.
        high: Upper edge.
        density: Density of the confidences; integrates to one.
        bandwidth: Width of the kernel.
        level: Level of the band, point by point.
    """

    confidence: Array
    frequency: Array
    low: Array
    high: Array
    density: Array
    bandwidth: float
    level: float


def smooth_curve(
    predictions: Predictions | CalibrationState,
    *,
    bandwidth: float | None = None,
    level: float = 0.95,
    n_resamples: int = 200,
    seed: int = 0,
) -> SmoothCurve:
    """Return accuracy as a smooth function of confidence, with its bootstrap band.

    Rows are resampled as cells of the state's fine sketch, so a stream serves as well as an array.

    Args:
        predictions: Predictions, or the state of a stream.
        bandwidth: Width of the Gaussian kernel; by default the smooth calibration error itself or, if that is less,
            the usual width of a density estimate, but at least 0.01.
        level: Level of the band, point by point.
        n_resamples: Bootstrap resamples behind it.
        seed: The same seed gives the same band.

    Returns:
        The curve on a grid of 256 points.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> probs = rng.uniform(0.5, 1.0, 4000)
        >>> curve = smooth_curve(Predictions(probs=probs, labels=(rng.random(4000) < probs).astype(int)))
        >>> bool(np.nanmax(abs(curve.frequency - curve.confidence)[160:224]) < 0.05)
        True

    Reference:
        Blasiok and Nakkiran (2023), Smooth ECE: principled reliability diagrams via kernel smoothing.

    Differs from the authors' code:
        The same kernel, but a badly calibrated model's error is too wide a kernel to see where it is off, so the
        width is held to that of a density estimate. The curve ends where the confidences do.
    """
    state = predictions if isinstance(predictions, CalibrationState) else CalibrationState.of(predictions)
    sketch = state.arrays.sketch
    right, wrong = _on_grid(sketch)
    if bandwidth is None:
        bandwidth = max(_NARROWEST, min(_error_width(sketch), _usual_width(right + wrong)))
    n_rows = max(1, round(state.effective_samples))
    share = np.concatenate([right, wrong]) / (right + wrong).sum()
    rng = numpy_generator(seed, "smooth curve")
    drawn = rng.multinomial(n_rows, share / share.sum(), size=n_resamples).astype(np.float64)
    frequency, rows = _smooth(right, wrong, bandwidth)
    draws, _ = _smooth(drawn[:, :_CURVE_GRID], drawn[:, _CURVE_GRID:], bandwidth)
    tails = (1 - level) / 2, (1 + level) / 2
    low, high = np.quantile(draws, tails, axis=0)
    density = rows / rows.mean()
    # What a kernel's width holds, in rows: below a handful the ratio is noise.
    empty = density * n_rows * bandwidth * 2 * np.sqrt(np.pi) < min(_FEWEST_ROWS, n_rows)
    filled = np.flatnonzero(right + wrong)
    empty[: filled[0]] = empty[filled[-1] + 1 :] = True
    for part in (frequency, low, high):
        part[empty] = np.nan
    grid = (np.arange(_CURVE_GRID) + 0.5) / _CURVE_GRID
    return SmoothCurve(
        grid, frequency, np.fmin(low, frequency), np.fmax(high, frequency), density, bandwidth, level
    )


def _error_width(sketch: Array) -> float:
    """Return the smooth calibration error, read from the sketch."""
    weight = sketch[:, 0]
    mean = np.divide(sketch[:, 1], weight, out=np.zeros(len(sketch)), where=weight > 0)
    return smooth_error(mean, sketch[:, 1] - sketch[:, 2], float(weight.sum()))


def _usual_width(mass: Array) -> float:
    """Return Silverman's width for a density with the spread of the confidences."""
    grid = (np.arange(_CURVE_GRID) + 0.5) / _CURVE_GRID
    mean = mass @ grid / mass.sum()
    spread = np.sqrt(mass @ (grid - mean) ** 2 / mass.sum())
    return float(0.9 * spread * mass.sum() ** -0.2)


def _on_grid(sketch: Array) -> tuple[Array, Array]:
    """Return right and wrong rows, each cell's spread linearly over the two grid points around its confidence."""
    weight = sketch[:, 0]
    confidence = np.divide(sketch[:, 1], weight, out=np.zeros(len(sketch)), where=weight > 0)
    position = np.clip(confidence * _CURVE_GRID - 0.5, 0, _CURVE_GRID - 1)
    left = np.minimum(position.astype(np.int64), _CURVE_GRID - 2)
    share = position - left
    wrong = np.maximum(weight - sketch[:, 2], 0)
    first, second = (
        np.bincount(left, part * (1 - share), _CURVE_GRID) + np.bincount(left + 1, part * share, _CURVE_GRID)
        for part in (sketch[:, 2], wrong)
    )
    return first, second


@np.errstate(under="ignore")
def _smooth(right: Array, wrong: Array, bandwidth: float) -> tuple[Array, Array]:
    """Return the smoothed share of right rows and the smoothed rows, along the last axis."""
    damping = np.exp(-0.5 * (np.pi * np.arange(_CURVE_GRID) * bandwidth) ** 2)
    hits, rows = (
        np.maximum(idct(dct(part, norm="ortho", axis=-1) * damping, norm="ortho", axis=-1), 0)
        for part in (right, right + wrong)
    )
    ratio = np.divide(hits, rows, out=np.zeros_like(rows), where=rows > 0)
    return np.clip(ratio, 0, 1), rows
