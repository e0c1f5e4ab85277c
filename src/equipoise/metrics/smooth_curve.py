"""The reliability curve without bins: accuracy as a smooth function of confidence, with a bootstrap band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.fft import dct, idct

from equipoise.core.arrays import Array
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.metrics.smooth_calibration_error import fixed_point_error, residual_spectrum
from equipoise.metrics.state import CalibrationState

__all__ = ["SmoothCurve", "smooth_curve"]

_GRID = 256
_NARROWEST = 0.01
_FEWEST_ROWS = 5.0


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
    sketch = state.sums.sketch.cpu().numpy()
    right, wrong = _on_grid(sketch)
    if bandwidth is None:
        bandwidth = max(_NARROWEST, min(_error_width(sketch), _usual_width(right + wrong)))
    n_rows = max(1, round(state.effective_samples))
    share = np.concatenate([right, wrong]) / (right + wrong).sum()
    rng = numpy_generator(seed, "smooth curve")
    drawn = rng.multinomial(n_rows, share / share.sum(), size=n_resamples).astype(np.float64)
    frequency, rows = _smooth(right, wrong, bandwidth)
    draws, _ = _smooth(drawn[:, :_GRID], drawn[:, _GRID:], bandwidth)
    tails = (1 - level) / 2, (1 + level) / 2
    low, high = np.quantile(draws, tails, axis=0)
    density = rows / rows.mean()
    # What a kernel's width holds, in rows: below a handful the ratio is noise.
    empty = density * n_rows * bandwidth * 2 * np.sqrt(np.pi) < min(_FEWEST_ROWS, n_rows)
    filled = np.flatnonzero(right + wrong)
    empty[: filled[0]] = empty[filled[-1] + 1 :] = True
    for part in (frequency, low, high):
        part[empty] = np.nan
    grid = (np.arange(_GRID) + 0.5) / _GRID
    return SmoothCurve(
        grid, frequency, np.fmin(low, frequency), np.fmax(high, frequency), density, bandwidth, level
    )


def _error_width(sketch: Array) -> float:
    """Return the smooth calibration error, read from the sketch."""
    weight = sketch[:, 0]
    mean = np.divide(sketch[:, 1], weight, out=np.zeros(len(sketch)), where=weight > 0)
    return fixed_point_error(residual_spectrum(mean, (sketch[:, 1] - sketch[:, 2]) / weight.sum()))


def _usual_width(mass: Array) -> float:
    """Return Silverman's width for a density with the spread of the confidences."""
    grid = (np.arange(_GRID) + 0.5) / _GRID
    mean = mass @ grid / mass.sum()
    spread = np.sqrt(mass @ (grid - mean) ** 2 / mass.sum())
    return float(0.9 * spread * mass.sum() ** -0.2)


def _on_grid(sketch: Array) -> tuple[Array, Array]:
    """Return right and wrong rows, each cell's spread linearly over the two grid points around its confidence."""
    weight = sketch[:, 0]
    confidence = np.divide(sketch[:, 1], weight, out=np.zeros(len(sketch)), where=weight > 0)
    position = np.clip(confidence * _GRID - 0.5, 0, _GRID - 1)
    left = np.minimum(position.astype(np.int64), _GRID - 2)
    share = position - left
    wrong = np.maximum(weight - sketch[:, 2], 0)
    first, second = (
        np.bincount(left, part * (1 - share), _GRID) + np.bincount(left + 1, part * share, _GRID)
        for part in (sketch[:, 2], wrong)
    )
    return first, second


@np.errstate(under="ignore")
def _smooth(right: Array, wrong: Array, bandwidth: float) -> tuple[Array, Array]:
    """Return the smoothed share of right rows and the smoothed rows, along the last axis."""
    damping = np.exp(-0.5 * (np.pi * np.arange(_GRID) * bandwidth) ** 2)
    hits, rows = (
        np.maximum(idct(dct(part, norm="ortho", axis=-1) * damping, norm="ortho", axis=-1), 0)
        for part in (right, right + wrong)
    )
    ratio = np.divide(hits, rows, out=np.zeros_like(rows), where=rows > 0)
    return np.clip(ratio, 0, 1), rows
