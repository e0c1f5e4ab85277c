"""Clusters of rows that depend on each other: pixels of an image, frames of a video, posts of an author.

Rows of a cluster repeat each other, so clusters are resampled as wholes. Metrics that are sums by confidence bin and
correctness are resampled directly. For the others, the noise of independent rows is multiplied by the design effect:
how much larger the variance of a mean over rows is than it would be for independent rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import ndtri, stdtrit

from equipoise.core.arrays import Array
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.metrics.curve import calibration_errors
from equipoise.metrics.facts import FACTS, metrics_where
from equipoise.metrics.row_draws import ResamplePlan, draw_units, group_clusters, sum_units, units_of_clusters
from equipoise.metrics.state import CalibrationState

__all__ = [
    "ClusterColumn",
    "ClusterDraws",
    "ClusterSums",
    "Clusters",
    "find_clusters",
    "sum_clusters",
    "sums_of_images",
]

# These move with accuracy, not only with the gap between confidence and accuracy.
_FOLLOW_ACCURACY = ("auroc", "aurc", "top5_accuracy", "brier_refinement")
_ROUNDING = 1 + 1e-9


class Clusters(NamedTuple):
    """What intervals were made with where rows depend on each other.

    Attributes:
        column: Name of the column of clusters; empty if they were given as an array.
        n_clusters: Number of clusters.
        n_effective: How many clusters of equal size are as informative.
        design_effect: Variance of the mean gap between confidence and accuracy, relative to independent rows.

    Example:
        >>> Clusters("image", 20, 20, 37.2).sentence(8000)
        'Intervals resample 20 clusters (image), not 8,000 rows: design effect 37.'
    """

    column: str
    n_clusters: int
    n_effective: int
    design_effect: float

    def spread(self, level: float) -> float:
        """Return how much wider an interval is than a normal one, since few clusters leave its width uncertain.

        Example:
            >>> round(Clusters("image", 20, 20, 37.2).spread(0.95), 3)
            1.068
        """
        probability = (1 + level) / 2
        return float(stdtrit(self.n_effective - 1, probability) / ndtri(probability))

    def inflation(self, level: float) -> float:
        """Return by what the number of rows is divided in tests and intervals that treat rows as independent.

        Example:
            >>> round(Clusters("image", 20, 20, 37.2).inflation(0.95), 1)
            42.4
        """
        return self.design_effect * self.spread(level) ** 2

    def sentence(self, n_samples: int) -> str:
        """Return how intervals were made, in one sentence."""
        name = f" ({self.column})" if self.column else ""
        effect = f"{self.design_effect:.{1 if self.design_effect < 10 else 0}f}"
        return (
            f"Intervals resample {self.n_clusters:,} clusters{name}, not {n_samples:,} rows: "
            f"design effect {effect}."
        )


class ClusterSums(NamedTuple):
    """Sums over the rows of each cluster.

    Attributes:
        column: Name of the column of clusters, or empty.
        n_clusters: Number of clusters.
        n_effective: How many clusters of equal size are as informative.
        cells: Weight, confidence, NLL and Brier score by cluster, bin and correctness, ``(clusters, bins, 2, 4)``.
            Many clusters are summed in random groups.
    """

    column: str
    n_clusters: int
    n_effective: int
    cells: Array


class ClusterColumn(NamedTuple):
    """The cluster of each row.

    Attributes:
        name: Name of the column; empty if an array was given.
        codes: Number of each row's cluster ``(n,)``, from 0 to the number of clusters minus one.
    """

    name: str
    codes: Array


def find_clusters(clusters: Any, *predictions: Predictions, where: str) -> ClusterColumn:
    """Return the cluster of each row.

    Args:
        clusters: One value per row, numbers or text; the name of a column of groups; or what this function returned.
        *predictions: Of the same rows; the column of those that have it must be the same.
        where: What to call the function in messages.

    Raises:
        SpecError: If no column has this name.
        DataError: If there is not one value per row, if models disagree, or if there is only one cluster.

    Example:
        >>> rows = Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1], groups={"author": ["b", "a", "b"]})
        >>> find_clusters("author", rows, where="score")
        ClusterColumn(name='author', codes=array([1, 0, 1]))
    """
    name, column = _named_column(clusters, predictions, where)
    n_rows = len(predictions[0])
    if column.shape != (n_rows,):
        raise DataError(
            f"{where}: `clusters` must be one value per row, shape ({n_rows},), got shape {column.shape}. "
            "Pass an array, or the name of a column of groups."
        )
    if column.dtype.kind == "O":
        column = column.astype(np.str_)
    codes = np.unique(column, return_inverse=True)[1].reshape(-1)
    weights = predictions[0].weights
    n_clusters = len(np.unique(codes if weights is None else codes[weights > 0]))
    if n_clusters < 2:
        raise DataError(
            f"{where}: intervals need several clusters, got {n_clusters} in {n_rows:,} rows. "
            "Name a column with more values, or leave clusters out."
        )
    return ClusterColumn(name, codes)


def _named_column(clusters: Any, predictions: Sequence[Predictions], where: str) -> tuple[str, Array]:
    if isinstance(clusters, ClusterColumn):
        return clusters
    if not isinstance(clusters, str):
        return "", np.asarray(clusters)
    holders = [part for part in predictions if clusters in part.groups] or predictions
    hint = "the predictions have no groups."
    column = look_up(clusters, holders[0].groups, what="column of clusters", hint=hint)
    if any(not np.array_equal(column, part.groups[clusters]) for part in holders[1:]):
        raise DataError(
            f"{where}: the column of clusters {clusters!r} must be the same in all predictions. "
            "Save the rows in the same order."
        )
    return clusters, column


def sum_clusters(
    predictions: Predictions, clusters: Any, settings: ScoreSettings, *, where: str
) -> ClusterSums:
    """Return the sums of each cluster.

    Args:
        predictions: Of one model.
        clusters: One value per row, or the name of a column of groups.
        settings: Bins, and the random seed of the groups that many clusters are summed in.
        where: What to call the function in messages.

    Example:
        >>> rows = Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1])
        >>> sum_clusters(rows, [5, 5, 8], ScoreSettings(), where="score").cells.shape
        (2, 15, 2, 4)
    """
    name, codes = find_clusters(clusters, predictions, where=where)
    units = units_of_clusters(codes, predictions.weights, settings.seed)
    edges = predictions.lower_edges(settings.n_bins, settings.closed)
    sums = sum_units(predictions, units.unit, units.n_resampled, edges)
    cells = sums.reshape(units.n_resampled, settings.n_bins, 2, 4)
    return ClusterSums(name, int(codes.max()) + 1, units.n_units, cells)


def sums_of_images(cells: Array, *, seed: int) -> ClusterSums | None:
    """Return the sums of images as those of clusters; None if fewer than two hold rows.

    Args:
        cells: Sums of rows of weight one by image, ``(images, bins, 2, 4)``.
        seed: Random seed of the groups that many images are summed in.

    Example:
        >>> sums_of_images(np.ones((3, 15, 2, 4)), seed=0).n_clusters
        3
    """
    n_filled = int((cells[..., 0].sum(axis=(1, 2)) > 0).sum())
    if n_filled < 2:
        return None
    sums, n_effective = group_clusters(cells, seed)
    return ClusterSums("image", n_filled, n_effective, sums)


@final
class ClusterDraws:
    """Draws of the metrics of a state whose rows lie in clusters, in place of a Resampler's.

    Args:
        sums: Sums of each cluster.
        state: Sums of all rows.
        settings: How many draws, their random seed, and the level of the intervals that they are for: with few
            clusters they are spread as Student's t is.

    Example:
        >>> rows = Predictions(probs=[0.9, 0.8, 0.3, 0.7], labels=[1, 0, 0, 1])
        >>> sums = sum_clusters(rows, [0, 0, 1, 1], ScoreSettings(), where="score")
        >>> found = ClusterDraws(sums, CalibrationState.of(rows), ScoreSettings(n_resamples=10))
        >>> found.summary.n_clusters
        2
    """

    #: What a scorecard says about the clusters.
    summary: Clusters

    def __init__(self, sums: ClusterSums, state: CalibrationState, settings: ScoreSettings) -> None:
        self._sums, self._state = sums, state
        self._n_resamples, self._seed = settings.n_resamples, settings.seed
        self.summary = Clusters(sums.column, sums.n_clusters, sums.n_effective, self._gap_effect())
        self._inflation, self._spread = (
            self.summary.inflation(settings.level),
            self.summary.spread(settings.level),
        )

    def bootstrap(self, values: Mapping[str, float], independent: Mapping[str, Array]) -> dict[str, Array]:
        """Return draws under resampling of clusters.

        Args:
            values: The metrics.
            independent: Draws under resampling of rows as if they were independent.
        """
        larger = self.inflation
        found = {
            key: values[key]
            + np.sqrt(larger if key in _FOLLOW_ACCURACY else self._inflation) * (draws - values[key])
            for key, draws in independent.items()
            if key in values
        }
        n_resampled, equal = len(self._sums.cells), self._sums.n_effective
        plan = ResamplePlan(self._state.n_samples, equal, self._n_resamples, self._seed)
        keys = [key for key in metrics_where(is_paired=True) if key in values]
        direct = draw_units(self._sums.cells.reshape(n_resampled, -1), self._state.n_bins, keys, plan)
        spread = self._spread * np.sqrt(equal / (equal - 1))
        found |= {key: values[key] + spread * direct.draws[key].astype(np.float64) for key in keys}
        if "root_brier" in found:
            found["root_brier"] = np.sqrt(np.maximum(found["brier"], 0.0))
        return found

    @property
    def inflation(self) -> float:
        """Variance of scores that move with accuracy, relative to independent rows, for intervals of the level."""
        return max(self._inflation, self._accuracy_effect() * self._spread**2)

    def calibrated(self, independent: Mapping[str, Array]) -> dict[str, Array]:
        """Return draws of a calibrated model whose rows depend on each other as these do.

        The gap of a calibrated model has either sign in a cluster with equal probability, so signs of whole clusters
        are drawn (the wild bootstrap).

        Args:
            independent: Draws of a calibrated model with independent rows.
        """
        found = {
            key: draws * self._inflation ** (1.0 if key == "brier_calibration" else 0.5)
            for key, draws in independent.items()
        }
        cells = self._sums.cells
        rng = numpy_generator(self._seed, "signs of clusters")
        signs = rng.integers(2, size=(self._n_resamples, len(cells))) * 2.0 - 1.0
        weight, confidence = cells[..., 0].sum(axis=(0, 2)), cells[..., 1].sum(axis=(0, 2))
        flipped = signs @ (cells[..., 1].sum(axis=2) - cells[:, :, 1, 0])
        weight, confidence = (np.broadcast_to(part, flipped.shape) for part in (weight, confidence))
        drawn = calibration_errors(weight, confidence, confidence - flipped)
        # If all signs are alike the draw is the value itself, but for rounding, and counts as one that is as large.
        found |= {
            key: part * _ROUNDING for key, part in drawn.items() if key in FACTS and FACTS[key].is_error
        }
        return found

    def _gap_effect(self) -> float:
        cells = self._state.arrays.cells
        gaps = self._sums.cells[..., 1].sum(axis=(1, 2)) - self._sums.cells[:, :, 1, 0].sum(axis=1)
        squared = cells[..., 2].sum() - 2 * cells[:, 1, 1].sum() + cells[:, 1, 0].sum()
        return self._effect(gaps, squared)

    def _accuracy_effect(self) -> float:
        right = self._sums.cells[:, :, 1, 0].sum(axis=1)
        return self._effect(right, right.sum())

    def _effect(self, sums: Array, squared: float) -> float:
        """Return the variance of a mean over its variance if rows were independent, at least 1.

        Args:
            sums: Sums of a column by cluster.
            squared: Sum of the squares of its rows.
        """
        weights = self._sums.cells[..., 0].sum(axis=(1, 2))
        total, equal = weights.sum(), self._sums.n_effective
        mean = sums.sum() / total
        independent = max(0.0, squared / total - mean**2) / self._state.effective_samples
        clustered = float(((sums - mean * weights) ** 2).sum()) / total**2 * equal / (equal - 1)
        return max(1.0, clustered / independent) if independent > np.finfo(np.float64).eps ** 2 else 1.0
