"""smECE: calibration error without bins, smoothed at the scale that the data themselves ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq

from equipoise.core.arrays import Array
from equipoise.metrics.inputs import check_bandwidth, top_label

__all__ = ["fixed_point_error", "residual_spectrum", "smooth_calibration_error", "smoothed_error"]

_GRID = 1 << 14


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
    weight = np.ones(len(top.correct)) if top.weight is None else top.weight
    residual = weight * (top.confidence.astype(np.float64) - top.correct) / weight.sum()
    spectrum = residual_spectrum(top.confidence.astype(np.float64), residual)
    if bandwidth is not None:
        return float(smoothed_error(spectrum, bandwidth))
    return fixed_point_error(spectrum)


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
    position = np.clip(confidence * n_grid - 0.5, 0, n_grid - 1)
    left = np.minimum(position.astype(np.int64), n_grid - 2)
    share = position - left
    mass = np.bincount(left, residual * (1 - share), n_grid) + np.bincount(left + 1, residual * share, n_grid)
    result: Array = dct(mass * n_grid, norm="ortho")
    return result


@np.errstate(under="ignore")
def smoothed_error(spectrum: Array, bandwidth: float | Array) -> Array:
    """Return the integral of the absolute smoothed residual, for one or many spectra ``(..., n_grid)``.

    Example:
        >>> float(smoothed_error(np.zeros(8), 0.1))
        0.0
    """
    frequency = np.pi * np.arange(spectrum.shape[-1])
    damping = np.exp(-0.5 * (frequency * np.asarray(bandwidth)[..., None]) ** 2)
    result: Array = np.abs(idct(spectrum * damping, norm="ortho", axis=-1)).mean(axis=-1)
    return result


def fixed_point_error(spectrum: Array) -> float:
    """Return the error at the width that equals it.

    Example:
        >>> round(fixed_point_error(residual_spectrum(np.array([0.5]), np.array([0.25]))), 6)
        0.25
    """
    # The error falls as the width grows, so error - width has one root; at width 1 it is below zero, unless all
    # rows are surely wrong: then it is 0 there, up to rounding.
    finest = 1.0 / len(spectrum)
    if smoothed_error(spectrum, finest) <= finest:
        return float(smoothed_error(spectrum, finest))
    if smoothed_error(spectrum, 1.0) >= 1.0:
        return 1.0
    return float(brentq(lambda width: float(smoothed_error(spectrum, width)) - width, finest, 1.0, xtol=1e-9))
