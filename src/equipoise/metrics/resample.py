"""What a state might have looked like: bootstrap resamples, and resamples of a calibrated model.

Rows are never visited again. A bootstrap resample of the rows is a multinomial draw of how many fall into each cell of
the state, and a Gaussian draw of each cell's mean. A calibrated model with the same confidences is a binomial draw of
how many rows of each bin are right.
"""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.fft import dct

from equipoise.core.arrays import Array
from equipoise.core.seeds import numpy_generator
from equipoise.metrics.area_under_risk_coverage import aurc_of_cells
from equipoise.metrics.area_under_roc import auroc_of_cells
from equipoise.metrics.readings import read_cells
from equipoise.metrics.smooth_calibration_error import smoothed_error
from equipoise.metrics.state import CalibrationState

__all__ = ["Resampler"]

_FINE = 256
_CLASS_DRAWS = 1 << 22


@final
class Resampler:
    """Draws metrics of resampled states.

    Args:
        state: A state with at least one row.
        n_resamples: How many draws.
        seed: The same seed gives the same draws.

    Example:
        >>> state = CalibrationState(2); state.update(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0])
        >>> Resampler(state, n_resamples=10, seed=0).bootstrap()["accuracy"].shape
        (10,)
    """

    def __init__(self, state: CalibrationState, *, n_resamples: int, seed: int) -> None:
        self.state, self.n_resamples = state, n_resamples
        self.n_rows = max(1, round(state.effective_samples))
        self._seed = seed

    def bootstrap(self) -> dict[str, Array]:
        """Return draws of every metric under resampling of the rows, ``(n_resamples,)`` each."""
        draws = read_cells(self._resampled_cells())
        draws.update(self._fine_metrics(*self._resampled_fine()))
        if self.state.n_classes:
            draws.update(self._classwise(noise_only=False))
            draws["root_brier"] = np.sqrt(draws["brier"])
            draws["brier_refinement"] = draws["brier"] - draws["brier_calibration"]
            draws["top5_accuracy"] = self._top_k()
        else:
            del draws["nll"], draws["brier"]
        return draws

    def calibrated(self) -> dict[str, Array]:
        """Return draws of the error metrics of a calibrated model with the same confidences."""
        rng = numpy_generator(self._seed, "calibrated")
        cells = self.state.sums.cells.cpu().numpy().sum(axis=1)
        weight, mean = self._counts(cells[:, 0]), _ratio(cells[:, 1], cells[:, 0])
        right = rng.binomial(weight, np.clip(mean, 0, 1), size=(self.n_resamples, len(weight)))
        drawn = np.zeros((self.n_resamples, len(weight), 2, 4))
        drawn[..., 1, 0], drawn[..., 0, 0] = right, weight - right
        drawn[..., 1, 1], drawn[..., 0, 1] = right * mean, (weight - right) * mean
        draws = read_cells(drawn)
        fine = self._fine_cells()
        count = self._counts(fine[:, 0])
        confidence = _ratio(fine[:, 1], fine[:, 0])
        right = rng.binomial(count, np.clip(confidence, 0, 1), size=(self.n_resamples, len(count)))
        draws.update(self._fine_metrics(right.astype(np.float64), (count - right).astype(np.float64)))
        if self.state.n_classes:
            draws.update(self._classwise(noise_only=True))
        unused = ("accuracy", "confidence", "nll", "brier", "auroc", "aurc")
        return {name: value for name, value in draws.items() if name not in unused}

    def _counts(self, weight: Array) -> Array:
        counts: Array = np.round(weight * (self.n_rows / weight.sum())).astype(np.int64)
        return counts

    def _resampled_cells(self) -> Array:
        """Draw sums by bin and correctness, ``(n_resamples, bins, 2, 4)``."""
        rng = numpy_generator(self._seed, "cells")
        cells = self.state.sums.cells.cpu().numpy()
        weight = cells[..., 0].reshape(-1)
        counts = rng.multinomial(self.n_rows, weight / weight.sum(), size=self.n_resamples)
        drawn = np.empty((self.n_resamples, len(weight), 4))
        drawn[..., 0] = counts
        for column, (first, second) in enumerate(((1, 2), (3, 4), (5, 6)), start=1):
            mean = _ratio(cells[..., first].reshape(-1), weight)
            spread = np.sqrt(np.maximum(_ratio(cells[..., second].reshape(-1), weight) - mean**2, 0))
            noise = rng.standard_normal(counts.shape)
            drawn[..., column] = counts * mean + np.sqrt(counts) * spread * noise
        return drawn.reshape(self.n_resamples, *cells.shape[:2], 4)

    def _fine_cells(self) -> Array:
        """Return the sketch of confidence, coarsened to what resampling needs."""
        sketch = self.state.sums.sketch.cpu().numpy()
        n_cells = min(_FINE, len(sketch))
        starts = np.linspace(0, len(sketch), n_cells, endpoint=False).astype(np.int64)
        coarse: Array = np.add.reduceat(sketch, starts, axis=0)
        return coarse

    def _resampled_fine(self) -> tuple[Array, Array]:
        rng = numpy_generator(self._seed, "fine")
        fine = self._fine_cells()
        right, wrong = fine[:, 2], np.maximum(fine[:, 0] - fine[:, 2], 0)
        weight = np.concatenate([right, wrong])
        counts = rng.multinomial(self.n_rows, weight / weight.sum(), size=self.n_resamples).astype(np.float64)
        return counts[:, : len(fine)], counts[:, len(fine) :]

    def _fine_metrics(self, right: Array, wrong: Array) -> dict[str, Array]:
        """Read the metrics that need order or neighbourhood from cells of confidence, ``(n_resamples, cells)``."""
        fine = self._fine_cells()
        confidence = _ratio(fine[:, 1], fine[:, 0])
        mass = right + wrong
        gaps = mass * confidence - right
        total = mass.sum(axis=1, keepdims=True)
        return {
            "ks": np.abs(np.cumsum(gaps, axis=1)).max(axis=1) / total[:, 0],
            "ada_ece": equal_mass_error(mass, gaps, self.state.n_bins),
            "smece": _smooth_errors(gaps / total),
            "auroc": auroc_of_cells(right, wrong),
            "aurc": aurc_of_cells(mass[:, ::-1], wrong[:, ::-1]),
        }

    def _classwise(self, *, noise_only: bool) -> dict[str, Array]:
        """Draw the classwise errors with Gaussian sums per class and bin, which their many rows justify."""
        rng = numpy_generator(self._seed, "classwise", noise_only)
        table = self.state.sums.classwise.cpu().numpy() * (self.n_rows / self.state.total_weight)
        weight, probability, positive = (table[..., i].reshape(-1) for i in range(3))
        mean = _ratio(probability, weight)
        if noise_only:
            centre, variance = np.zeros_like(weight), weight * mean * (1 - mean)
        else:
            centre = probability - positive
            variance = positive * (1 - mean) ** 2 + (weight - positive) * mean**2 - centre**2 / self.n_rows
        deviation = np.sqrt(np.maximum(variance, 0))
        absolute, squared = np.zeros(self.n_resamples), np.zeros(self.n_resamples)
        inverse = _ratio(np.ones_like(weight), weight)
        used = np.flatnonzero(weight > 0)
        step = max(1, _CLASS_DRAWS // self.n_resamples)
        for start in range(0, len(used), step):
            pick = used[start : start + step]
            drawn = rng.standard_normal((self.n_resamples, len(pick)), dtype=np.float32)
            drawn *= deviation[pick].astype(np.float32)
            drawn += centre[pick].astype(np.float32)
            np.abs(drawn, out=drawn)
            absolute += drawn.sum(axis=1)
            squared += np.square(drawn, out=drawn) @ inverse[pick].astype(np.float32)
        return {
            "classwise_ece": absolute / (self.n_rows * self.state.n_classes),
            "brier_calibration": squared / self.n_rows,
        }

    def _top_k(self) -> Array:
        share = float(self.state.sums.ranks[:5].sum() / self.state.sums.ranks.sum())
        rng = numpy_generator(self._seed, "ranks")
        return rng.binomial(self.n_rows, min(share, 1.0), size=self.n_resamples) / self.n_rows


def equal_mass_error(mass: Array, gaps: Array, n_bins: int) -> Array:
    """Return the error over ``n_bins`` bins of equal mass cut from ascending cells, ``(..., m)``."""
    position = np.cumsum(mass, axis=-1)
    running = np.cumsum(gaps, axis=-1)
    total = position[..., -1:]
    cuts = total * (np.arange(1, n_bins) / n_bins)
    cell = (position[..., None, :] < cuts[..., None]).sum(axis=-1)
    after = np.take_along_axis(position, cell, axis=-1)
    held = np.take_along_axis(mass, cell, axis=-1)
    share = np.divide(after - cuts, held, out=np.zeros_like(held), where=held > 0)
    at_cuts = np.take_along_axis(running, cell, axis=-1) - share * np.take_along_axis(gaps, cell, axis=-1)
    ends = [np.zeros_like(total), at_cuts, running[..., -1:]]
    result: Array = np.abs(np.diff(np.concatenate(ends, axis=-1), axis=-1)).sum(axis=-1) / total[..., 0]
    return result


def _smooth_errors(residuals: Array) -> Array:
    """Solve the fixed points of many rows of residuals at once, by bisection."""
    n_grid = residuals.shape[-1]
    spectra = dct(residuals * n_grid, norm="ortho", axis=-1)
    low, high = np.full(len(spectra), 0.5 / n_grid), np.ones(len(spectra))
    for _ in range(12):
        middle = 0.5 * (low + high)
        too_narrow = smoothed_error(spectra, middle) > middle
        low, high = np.where(too_narrow, middle, low), np.where(too_narrow, high, middle)
    return 0.5 * (low + high)


def _ratio(above: Array, below: Array) -> Array:
    ratio: Array = np.divide(above, below, out=np.zeros(np.shape(below)), where=below > 0)
    return ratio
