"""What a state might have looked like: bootstrap resamples, and resamples of a calibrated model.

Rows are never visited again. A bootstrap resample of the rows is a multinomial draw of how many fall into each cell of
the state, and a Gaussian draw of each cell's mean. A calibrated model with the same confidences is a binomial draw of
how many rows of each bin are right.
"""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
from scipy.fft import dct
from scipy.special import erf

from equipoise.core.arrays import Array
from equipoise.core.seeds import numpy_generator
from equipoise.metrics.detection import auroc_of_cells
from equipoise.metrics.facts import metrics_where
from equipoise.metrics.ranked import equal_mass_error
from equipoise.metrics.selective import aurc_of_cells
from equipoise.metrics.smooth import smoothed_error
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.values import cell_metrics, has_top5

__all__ = ["Resampler"]

# Cells of confidence: of equal width, which smoothing needs, cut further where much of the mass lies close together.
_WIDE, _CROWDED = 256, 128
_CLASS_DRAWS = 1 << 22
# The correlation of the Brier score with its calibration part: 0.65 to 0.78 in row bootstraps over 2 to 50 classes.
_TOGETHER = 0.7
_TINY = float(np.finfo(np.float64).tiny)


@final
class Resampler:
    """Draws metrics of resampled states.

    Args:
        state: A state with at least one row.
        n_resamples: How many draws.
        seed: The same seed gives the same draws.
        like: Another state, whose number of rows the resamples have; by default they have the state's own.

    Example:
        >>> state = CalibrationState(2); state.update(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0])
        >>> Resampler(state, n_resamples=10, seed=0).bootstrap()["accuracy"].shape
        (10,)
    """

    def __init__(
        self, state: CalibrationState, *, n_resamples: int, seed: int, like: CalibrationState | None = None
    ) -> None:
        self.state, self.n_resamples = state, n_resamples
        self.n_rows = max(1, round((like or state).effective_samples))
        self._seed = seed

    def bootstrap(self) -> dict[str, Array]:
        """Return draws of every metric under resampling of the rows, ``(n_resamples,)`` each."""
        draws = cell_metrics(self._resampled_cells())
        draws.update(self._fine_metrics(*self._resampled_fine()))
        if self.state.n_classes:
            draws.update(self._classwise(noise_only=False))
            draws["root_brier"] = np.sqrt(draws["brier"])
            draws["brier_refinement"] = _refinement(draws["brier"], draws["brier_calibration"])
            if has_top5(self.state):
                draws["top5_accuracy"] = self._top_k()
        absent = metrics_where(
            **({"only_confidence": True} if self.state.n_classes else {"needs_scores": True})
        )
        return {key: drawn for key, drawn in draws.items() if key not in absent}

    def calibrated(self) -> dict[str, Array]:
        """Return draws of the error metrics of a calibrated model with the same confidences."""
        rng = numpy_generator(self._seed, "calibrated")
        draws = cell_metrics(self._calibrated_cells(rng))
        fine, _ = self._fine
        count = self._counts(fine[:, 0])
        confidence = _ratio(fine[:, 1], fine[:, 0])
        right = rng.binomial(count, np.clip(confidence, 0, 1), size=(self.n_resamples, len(count)))
        draws.update(self._fine_metrics(right.astype(np.float64), (count - right).astype(np.float64)))
        if self.state.n_classes:
            draws.update(self._classwise(noise_only=True))
        unused = ("accuracy", "confidence", "nll", "brier", "correct_nll", "correct_brier", "auroc", "aurc")
        return {name: value for name, value in draws.items() if name not in unused}

    def _calibrated_cells(self, rng: np.random.Generator) -> Array:
        """Draw sums of a model that is right as often as it says, ``(n_resamples, bins, 2, 4)``."""
        cells = self.state.sums.cells.cpu().numpy().sum(axis=1)
        weight, mean = self._counts(cells[:, 0]), _ratio(cells[:, 1], cells[:, 0])
        right = rng.binomial(weight, np.clip(mean, 0, 1), size=(self.n_resamples, len(weight)))
        drawn = np.zeros((self.n_resamples, len(weight), 2, 4))
        drawn[..., 1, 0], drawn[..., 0, 0] = right, weight - right
        drawn[..., 1, 1], drawn[..., 0, 1] = right * mean, (weight - right) * mean
        return drawn

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

    @cached_property
    def _fine(self) -> tuple[Array, Array]:
        """The sketch of confidence, coarsened to what resampling needs, and where its cells of equal width start."""
        sketch = self.state.sums.sketch.cpu().numpy()
        wide = np.linspace(0, len(sketch), min(_WIDE, len(sketch)), endpoint=False).astype(np.int64)
        mass = np.cumsum(sketch[:, 0])
        crowded = np.searchsorted(mass, mass[-1] * np.arange(1, _CROWDED) / _CROWDED)
        starts = np.union1d(wide, np.minimum(crowded, len(sketch) - 1))
        coarse: Array = np.add.reduceat(sketch, starts, axis=0)
        return coarse, np.searchsorted(starts, wide)

    def _resampled_fine(self) -> tuple[Array, Array]:
        rng = numpy_generator(self._seed, "fine")
        fine, _ = self._fine
        right, wrong = fine[:, 2], np.maximum(fine[:, 0] - fine[:, 2], 0)
        weight = np.concatenate([right, wrong])
        counts = rng.multinomial(self.n_rows, weight / weight.sum(), size=self.n_resamples).astype(np.float64)
        return counts[:, : len(fine)], counts[:, len(fine) :]

    def _fine_metrics(self, right: Array, wrong: Array) -> dict[str, Array]:
        """Read the metrics that need order or neighbourhood from cells of confidence, ``(n_resamples, cells)``."""
        fine, wide = self._fine
        confidence = _ratio(fine[:, 1], fine[:, 0])
        mass = right + wrong
        gaps = mass * confidence - right
        total = mass.sum(axis=1, keepdims=True)
        return {
            "ks": np.abs(np.cumsum(gaps, axis=1)).max(axis=1) / total[:, 0],
            "ada_ece": equal_mass_error(mass, gaps, self.state.n_bins),
            "smece": _smooth_errors(np.add.reduceat(gaps / total, wide, axis=1)),
            "auroc": auroc_of_cells(right, wrong),
            "aurc": aurc_of_cells(mass[:, ::-1], wrong[:, ::-1]),
        }

    def _classwise(self, *, noise_only: bool) -> dict[str, Array]:
        """Draw the classwise errors from the number of rows in each bin of each class, and their mean gap.

        Both are Gaussian; what a state cannot tell is how the gaps of a row's classes move together. With two classes
        they mirror each other, so one is drawn. With more, a mistake adds to the gap of the class that was named and
        takes from that of the true class: where the signs of the gaps are certain, both errors grow at once, and a
        draw that all bins share adds half as much to that part of the variance, as row bootstraps show.
        """
        rng = numpy_generator(self._seed, "classwise", noise_only)
        table = self.state.sums.classwise.cpu().numpy() * (self.n_rows / self.state.total_weight)
        copies = 2.0 if self.state.n_classes == 2 else 1.0
        table = (table[:1] if copies == 2 else table).reshape(-1, 3)
        weight, probability, positive = table[table[:, 0] > 0].T
        mean = probability / weight
        if noise_only:
            gap, within = np.zeros_like(weight), mean * (1 - mean)
        else:
            gap = (probability - positive) / weight
            within = (positive * (1 - mean) ** 2 + (weight - positive) * mean**2) / weight - gap**2
        spread = np.sqrt(np.maximum(within, 0))
        step = max(1, _CLASS_DRAWS // self.n_resamples)
        parts = [
            self._class_sums(rng, *(column[start : start + step] for column in (weight, gap, spread)))
            for start in range(0, len(weight), step)
        ]
        absolute, squared = np.array(parts, dtype=np.float64).sum(axis=0)
        if copies == 1:
            deviation = np.sqrt(weight) * np.hypot(spread, gap)
            certain = erf(_ratio(np.abs(gap) * weight, np.sqrt(2) * deviation))
            shared = np.sqrt(0.5) * rng.standard_normal(self.n_resamples)
            absolute += shared * np.linalg.norm(certain * deviation)
            squared += shared * np.linalg.norm(2 * certain**2 * gap * deviation)
        return {
            "classwise_ece": copies * np.maximum(absolute, 0) / (self.n_rows * self.state.n_classes),
            "brier_calibration": copies * np.maximum(squared, 0) / self.n_rows,
        }

    def _class_sums(
        self, rng: np.random.Generator, weight: Array, gap: Array, spread: Array
    ) -> tuple[Array, Array]:
        """Draw sums of absolute gaps, and of squared gaps over the rows that caused them, over some bins."""
        weight, gap, spread = (part.astype(np.float32) for part in (weight, gap, spread))
        count = rng.standard_normal((self.n_resamples, len(weight)), dtype=np.float32)
        count *= np.sqrt(weight)
        count += weight
        np.maximum(count, 0, out=count)
        noise = rng.standard_normal(count.shape, dtype=np.float32)
        noise *= spread
        gaps = np.sqrt(count)
        gaps *= noise
        gaps += count * gap
        # (count * gap + sqrt(count) * noise)^2 / count, multiplied out; an empty bin has no noise.
        squared = (2 * gaps) @ gap - count @ gap**2 + np.square(noise, out=noise) @ -np.expm1(-weight)
        return np.abs(gaps, out=gaps).sum(axis=1), squared

    def _top_k(self) -> Array:
        share = float(self.state.sums.ranks[:5].sum() / self.state.sums.ranks.sum())
        rng = numpy_generator(self._seed, "ranks")
        return rng.binomial(self.n_rows, min(share, 1.0), size=self.n_resamples) / self.n_rows


def _smooth_errors(residuals: Array) -> Array:
    """Solve the fixed points of many rows of residuals at once, by bisection."""
    n_grid = residuals.shape[-1]
    spectra = dct(residuals * n_grid, norm="ortho", axis=-1)
    finest = np.full(len(spectra), 0.5 / n_grid)
    at_finest = smoothed_error(spectra, finest)
    low, high = finest, np.maximum(at_finest, finest)
    for _ in range(10):
        middle = 0.5 * (low + high)
        too_narrow = smoothed_error(spectra, middle) > middle
        low, high = np.where(too_narrow, middle, low), np.where(too_narrow, high, middle)
    return np.where(at_finest <= finest, at_finest, 0.5 * (low + high))


def _refinement(brier: Array, calibration: Array) -> Array:
    """Return what calibration leaves of the Brier score, its draws made to move with the score as those of rows do."""
    common = (brier - brier.mean()) * (calibration.std() / max(brier.std(), _TINY))
    own = calibration - calibration.mean()
    result: Array = brier - calibration.mean() - _TOGETHER * common - np.sqrt(1 - _TOGETHER**2) * own
    return result


def _ratio(above: Array, below: Array) -> Array:
    ratio: Array = np.divide(above, below, out=np.zeros(np.shape(below)), where=below > 0)
    return ratio
