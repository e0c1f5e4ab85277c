"""What a state might have looked like: bootstrap resamples, and resamples of a calibrated model.

Rows are never visited again. A bootstrap resample of the rows is a draw of how many fall into each cell of the state,
and a Gaussian draw of each cell's mean. A calibrated model with the same confidences is a binomial draw of how many
rows of each bin are right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np
from scipy.fft import dct
from scipy.special import erf

from equipoise.core.arrays import Array
from equipoise.core.choices import ScoreSettings
from equipoise.core.seeds import numpy_generator
from equipoise.metrics.detection import auroc_of_cells
from equipoise.metrics.facts import metrics_where
from equipoise.metrics.ranked import error_of_running_sums
from equipoise.metrics.selective import aurc_of_cells
from equipoise.metrics.smooth import fixed_point_errors
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.sums import running_sums
from equipoise.metrics.values import cell_metrics, has_top5

__all__ = ["Resampler"]

# Cells of confidence: of equal width, which smoothing needs, cut further where much of the mass lies close together.
_WIDE, _CROWDED = 256, 128
# Cells of classes and bins that are drawn one by one; the sum over all others is close to Gaussian.
_DRAWN_CELLS = 64
# Numbers in a block of draws. Arrays of this size stay in the processor's cache, and the memory allocator keeps them
# instead of returning them to the system after every operation.
_BLOCK = 1 << 15
# Gamma variates of at least this shape are drawn as cubes of Gaussian ones (Wilson and Hilferty, 1931): mean and
# variance agree to one part in a thousand.
_CUBED = 4.0
# Binomial counts are drawn as Gaussian if that of a bin of equal mass has at least this standard deviation.
_GAUSSIAN = 5.0
# The correlation of the Brier score with its calibration part: 0.65 to 0.78 in row bootstraps over 2 to 50 classes.
_TOGETHER = 0.7
_TINY = float(np.finfo(np.float64).tiny)
# Less weight than this is none.
_NOTHING = 1e-20


@final
class Resampler:
    """Draws metrics of resampled states.

    Args:
        state: A state with at least one row.
        settings: How many draws, and their random seed.
        like: Another state, whose number of rows the resamples have; by default they have the state's own.

    Example:
        >>> state = CalibrationState(2); state.update(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0])
        >>> Resampler(state, ScoreSettings(n_resamples=10)).bootstrap()["accuracy"].shape
        (10,)
    """

    def __init__(
        self, state: CalibrationState, settings: ScoreSettings, *, like: CalibrationState | None = None
    ) -> None:
        self.state, self.n_resamples = state, settings.n_resamples
        self.n_rows = max(1, round((like or state).effective_samples))
        self._seed = settings.seed

    def bootstrap(self) -> dict[str, Array]:
        """Return draws of every metric under resampling of the rows, ``(n_resamples,)`` each."""
        draws = cell_metrics(self._resampled_cells())
        draws.update(self._fine_bootstrap())
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
        draws.update(self._fine_calibrated(rng))
        if self.state.n_classes:
            draws.update(self._classwise(noise_only=True))
        unused = ("accuracy", "confidence", "nll", "brier", "correct_nll", "correct_brier")
        return {name: value for name, value in draws.items() if name not in unused}

    def _calibrated_cells(self, rng: np.random.Generator) -> Array:
        """Draw sums of a model that is right as often as it says, ``(n_resamples, bins, 2, 4)``."""
        cells = self.state.arrays.cells.sum(axis=1)
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
        cells = self.state.arrays.cells
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
        """The sketch of confidence, coarsened to what resampling needs, without empty cells.

        The second array holds the last cell up to the end of each cell of equal width; -1 if there is none.
        """
        sketch = self.state.arrays.sketch
        wide = np.linspace(0, len(sketch), min(_WIDE, len(sketch)), endpoint=False).astype(np.int64)
        mass = np.cumsum(sketch[:, 0])
        crowded = np.searchsorted(mass, mass[-1] * np.arange(1, _CROWDED) / _CROWDED)
        starts = np.union1d(wide, np.minimum(crowded, len(sketch) - 1))
        coarse = np.add.reduceat(sketch, starts, axis=0)
        filled = coarse[:, 0] > 0
        last = np.searchsorted(starts, [*wide[1:], len(sketch)]) - 1
        return coarse[filled], np.cumsum(filled)[last] - 1

    def _fine_bootstrap(self) -> dict[str, Array]:
        """Draw the metrics that need order or neighborhood of confidences.

        Every row is given a random weight of mean and variance one (the Bayesian bootstrap of Rubin, 1981), and the
        weights of a cell add up to a gamma variate. Unlike the cells of a multinomial draw, these are independent.
        """
        rng = numpy_generator(self._seed, "fine")
        fine, _ = self._fine
        shares = np.stack([fine[:, 2], np.maximum(fine[:, 0] - fine[:, 2], 0)]) / fine[:, 0].sum()
        # A last digit decides how many random numbers a draw takes, so all draws after it.
        right, wrong = np.round(self.n_rows * shares, 6)
        confidence = np.float32(fine[:, 1] / fine[:, 0])

        def draw(n_draws: int) -> dict[str, Array]:
            drawn_right, drawn_wrong = (_gamma_variates(rng, part, n_draws) for part in (right, wrong))
            mass = drawn_right + drawn_wrong
            falling = tuple(part[:, ::-1].copy() for part in (mass, drawn_wrong))
            sums = _running_sums(falling[0]), _running_sums(falling[1])
            return {
                **self._fine_errors(mass, mass * confidence - drawn_right),
                "auroc": auroc_of_cells(drawn_right, drawn_wrong, above=sums[1][:, ::-1]),
                "aurc": aurc_of_cells(*falling, sums=sums),
            }

        return self._in_blocks(draw, len(fine))

    def _fine_calibrated(self, rng: np.random.Generator) -> dict[str, Array]:
        """Draw the same errors of a model that is right as often as it says."""
        fine, _ = self._fine
        count, confidence = self._counts(fine[:, 0]), np.clip(_ratio(fine[:, 1], fine[:, 0]), 0, 1)
        variance = confidence * (1 - confidence)
        weight = count[None].astype(np.float32)
        mean, deviation = count * confidence, np.float32(np.sqrt(count * variance))
        few = np.flatnonzero(variance * self.n_rows / self.state.n_bins < _GAUSSIAN**2)

        def draw(n_draws: int) -> dict[str, Array]:
            gaps = rng.standard_normal((n_draws, len(fine)), dtype=np.float32)
            gaps *= deviation
            right = rng.binomial(count[few, None], confidence[few, None], (len(few), n_draws)).T
            gaps[:, few] = mean[few] - right
            return self._fine_errors(weight, gaps)

        return self._in_blocks(draw, len(fine))

    def _in_blocks(self, draw: Callable[[int], dict[str, Array]], n_cells: int) -> dict[str, Array]:
        """Draw a few resamples of some cells at a time."""
        step = max(1, _BLOCK // n_cells)
        blocks = [draw(min(step, self.n_resamples - start)) for start in range(0, self.n_resamples, step)]
        return {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}

    def _fine_errors(self, mass: Array, gaps: Array) -> dict[str, Array]:
        """Return the errors that need order or neighborhood.

        Args:
            mass: Weight by cell of confidence, ``(n_draws, cells)``, or ``(1, cells)`` if all draws have the same.
            gaps: Sums of confidence minus correctness, ``(n_draws, cells)``.
        """
        _, ends = self._fine
        position, running = _running_sums(mass), _running_sums(gaps)
        total = position[:, -1]
        first = int(np.searchsorted(ends, 0))
        residuals = np.zeros((len(running), len(ends)), np.float32)
        at_ends = running[:, ends[first:]]
        residuals[:, first] = at_ends[:, 0]
        np.subtract(at_ends[:, 1:], at_ends[:, :-1], out=residuals[:, first + 1 :])
        residuals *= len(ends) / total[:, None]
        spectra = dct(residuals, norm="ortho")
        return {
            "ks": np.maximum(running.max(axis=1), -running.min(axis=1)) / total,
            "ada_ece": error_of_running_sums(position, running, self.state.n_bins),
            "smece": fixed_point_errors(spectra, tolerance=3e-2),
        }

    def _classwise(self, *, noise_only: bool) -> dict[str, Array]:
        """Draw the classwise errors from the number of rows in each bin of each class, and their mean gap.

        Both are Gaussian; what a state cannot tell is how the gaps of a row's classes move together. With two classes
        they mirror each other, so one is drawn. With more, a mistake adds to the gap of the class that was named and
        takes from that of the true class: where the signs of the gaps are certain, both errors grow at once, and a
        draw that all bins share adds half as much to that part of the variance, as row bootstraps show.
        """
        rng = numpy_generator(self._seed, "classwise", noise_only)
        table = self.state.arrays.classwise * (self.n_rows / self.state.total_weight)
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
        deviation = np.sqrt(weight) * np.hypot(spread, gap)
        order = np.argsort(deviation)[::-1]
        drawn, summed = order[:_DRAWN_CELLS], order[_DRAWN_CELLS:]
        mean, deviation_of_rest = self._class_moments(weight[summed], gap[summed], spread[summed])
        rest = mean + deviation_of_rest * rng.standard_normal((2, self.n_resamples))
        parts = weight[drawn], gap[drawn], spread[drawn]
        found = self._in_blocks(lambda n_draws: _class_draws(rng, *parts, n_draws), len(drawn))
        absolute, squared = found["absolute"] + rest[0], found["squared"] + rest[1]
        if copies == 1:
            certain = erf(_ratio(np.abs(gap) * weight, np.sqrt(2) * deviation))
            shared = np.sqrt(0.5) * rng.standard_normal(self.n_resamples)
            absolute += shared * np.linalg.norm(certain * deviation)
            squared += shared * np.linalg.norm(2 * certain**2 * gap * deviation)
        return {
            "classwise_ece": copies * np.maximum(absolute, 0) / (self.n_rows * self.state.n_classes),
            "brier_calibration": copies * np.maximum(squared, 0) / self.n_rows,
        }

    @staticmethod
    @np.errstate(under="ignore")
    def _class_moments(weight: Array, gap: Array, spread: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of the same two sums, ``(2, 1)`` each, instead of drawing every bin."""
        ratio = np.abs(gap) * np.sqrt(weight) / np.maximum(spread, 1e-12)
        by_gap = np.abs(gap) * erf(ratio / np.sqrt(2))
        by_noise = np.sqrt(2 / np.pi / weight) * spread * np.exp(-0.5 * ratio**2)
        # The mean of an absolute Gaussian; then its variance for a fixed number of rows, and for a random one.
        absolute = weight * (by_gap + by_noise)
        absolute_variance = (weight * gap) ** 2 + weight * spread**2 - absolute**2
        absolute_variance = np.maximum(absolute_variance, 0) + weight * (by_gap + 0.5 * by_noise) ** 2
        filled = -np.expm1(-weight)
        squares = weight * gap**2 + spread**2 * filled
        squares_variance = weight * gap**2 * (gap**2 + 4 * spread**2) + 2 * (spread**2 * filled) ** 2
        mean = np.array([absolute.sum(), squares.sum()])
        return mean[:, None], np.sqrt([[absolute_variance.sum()], [squares_variance.sum()]])

    def _top_k(self) -> Array:
        ranks = self.state.arrays.ranks
        share = float(ranks[:5].sum() / ranks.sum())
        rng = numpy_generator(self._seed, "ranks")
        return rng.binomial(self.n_rows, min(share, 1.0), size=self.n_resamples) / self.n_rows


def _refinement(brier: Array, calibration: Array) -> Array:
    """Return what calibration leaves of the Brier score, its draws made to move with the score as those of rows do."""
    common = (brier - brier.mean()) * (calibration.std() / max(brier.std(), _TINY))
    own = calibration - calibration.mean()
    result: Array = brier - calibration.mean() - _TOGETHER * common - np.sqrt(1 - _TOGETHER**2) * own
    return result


def _class_draws(
    rng: np.random.Generator, weight: Array, gap: Array, spread: Array, n_draws: int
) -> dict[str, Array]:
    """Draw sums over some bins: of absolute gaps, and of squared gaps by the rows that caused them, ``(n_draws,)``."""
    shape = (n_draws, len(weight))
    count = np.maximum(weight + np.sqrt(weight) * rng.standard_normal(shape), 0)
    noise = spread * rng.standard_normal(shape)
    gaps = count * gap + np.sqrt(count) * noise
    # (count * gap + sqrt(count) * noise)^2 / count, multiplied out; an empty bin has no noise.
    noise *= noise
    squared = np.einsum("nm,m->n", gaps, 2 * gap) - np.einsum("nm,m->n", count, gap**2)
    squared -= np.einsum("nm,m->n", noise, np.expm1(-weight))
    return {"absolute": np.abs(gaps).sum(axis=1), "squared": squared}


@np.errstate(under="ignore")  # what single precision cannot hold is no weight
def _gamma_variates(rng: np.random.Generator, shape: Array, n_draws: int) -> Array:
    """Draw gamma variates of some shapes ``(m,)``, ``(n_draws, m)``; a shape of zero gives zero."""
    few = np.flatnonzero((shape > 0) & (shape < _CUBED))
    large = np.where(shape < _CUBED, np.inf, shape)
    root = rng.standard_normal((n_draws, len(shape)), dtype=np.float32)
    root *= np.float32(large ** (-1 / 6) / 3)
    root += np.float32(np.where(shape < _CUBED, 0.0, np.cbrt(shape) * (1 - 1 / (9 * large))))
    drawn: Array = np.square(root)
    drawn *= np.maximum(root, 0, out=root)
    drawn[:, few] = rng.standard_gamma(shape[few, None], (len(few), n_draws)).T
    return drawn


def _running_sums(values: Array) -> Array:
    return running_sums(values, max(_NOTHING, float(np.abs(values).sum(axis=1).max())))


def _ratio(above: Array, below: Array) -> Array:
    ratio: Array = np.divide(above, below, out=np.zeros(np.shape(below)), where=below > 0)
    return ratio
