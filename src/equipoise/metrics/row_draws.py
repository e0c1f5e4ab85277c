"""Bootstrap draws that several models share: the same rows are resampled for all of them.

The draws of two models, or of several trainings of one method, differ only by the models. So the error of any mean or
difference of theirs is the scatter of the same mean or difference of their draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.bins import bin_of
from equipoise.core.choices import ScoreSettings
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.metrics.accumulate import losses_of_being_right
from equipoise.metrics.facts import metrics_where
from equipoise.metrics.influence import influence_table
from equipoise.metrics.inputs import sorted_top_label
from equipoise.metrics.target import POSITIVE_KEYS, TOP, Target, event_view
from equipoise.metrics.values import cell_metrics

__all__ = [
    "ResamplePlan",
    "RowDraws",
    "draw_rows",
    "draw_units",
    "group_clusters",
    "shared_metrics",
    "sum_units",
    "units_of_clusters",
]

#: More rows or clusters than this are resampled in random groups: as many know the error of a number to one percent.
_MOST_UNITS = 4096
# How alike rows of a cluster are taken to be when clusters of uneven sizes are counted. Simulations of 10 to 100
# clusters keep 94 to 98% coverage with it, for rows that are independent as for rows that are strongly correlated.
_ALIKE = 0.05


#: Metrics with scores of every class that all targets share.
_SHARED = ("accuracy", "nll", "brier")
T = TypeVar("T")


class ResamplePlan(NamedTuple):
    """What decides which rows are in which resample.

    Attributes:
        n_rows: Rows in all.
        n_units: How many rows, random groups of rows or clusters are resampled. For clusters of uneven sizes: how many
            of equal size know as much, since a few large ones decide.
        n_resamples: How often.
        seed: Random seed.
    """

    n_rows: int
    n_units: int
    n_resamples: int
    seed: int


class RowDraws(NamedTuple):
    """Metrics of one model, and what they are in resamples of its rows.

    Attributes:
        values: By metric.
        draws: By metric, how far each resample is from the value, ``(n_resamples,)``.
        plan: Models of the same rows have the same resamples if their plans are equal.
    """

    values: Mapping[str, float]
    draws: Mapping[str, Array]
    plan: ResamplePlan


def shared_metrics(*models: Predictions) -> tuple[str, ...]:
    """Return the metrics that these predictions have and that shared resamples give.

    Example:
        >>> shared_metrics(Predictions(predicted=[1], confidence=[0.9], labels=[1]))[:2]
        ('accuracy', 'correct_nll')
    """
    if all(model.has_scores for model in models):
        return metrics_where(is_paired=True, only_confidence=False)
    # The losses of one model must not be compared with others' losses of being right.
    mixed = any(model.has_scores for model in models)
    return metrics_where(is_paired=True, needs_scores=False, **({"only_confidence": False} if mixed else {}))


def draw_rows(
    predictions: Predictions,
    settings: ScoreSettings,
    *,
    clusters: Array | None = None,
    target: Target = TOP,
    acting: Sequence[str] = (),
) -> RowDraws:
    """Score resamples of the rows; models of the same rows get the same resamples.

    Args:
        predictions: Of one model.
        settings: Bins, number of resamples and their random seed.
        clusters: ``(n,)`` numbers from 0 of the clusters that rows belong to, which are resampled as wholes; by default
            every row stands for itself.
        target: What is judged.
        acting: Scores of acting on a confidence that are drawn too, by their influence values.

    Returns:
        Values and draws of every metric that sums by confidence bin and correctness give.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> found = draw_rows(rows, ScoreSettings(n_resamples=20))
        >>> found.draws["accuracy"].shape, found.plan.n_units
        ((20,), 3)
    """
    n_bins, closed, _, n_resamples, seed = settings
    if clusters is None:
        unit = _units(len(predictions), seed)
        n_resampled = n_units = int(unit.max()) + 1
    else:
        unit, n_resampled, n_units = units_of_clusters(np.asarray(clusters), predictions.weights, seed)
    edges = predictions.lower_edges(n_bins, closed)
    sums = sum_units(predictions, unit, n_resampled, edges)
    plan = ResamplePlan(len(predictions), n_units, n_resamples, seed)
    found = draw_units(sums, n_bins, shared_metrics(predictions), plan)
    if target.kind == "top":
        more = _acting_draws(predictions, unit, n_resampled, acting, plan)
        return RowDraws({**found.values, **more.values}, {**found.draws, **more.draws}, plan)
    if target.kind == "classwise":
        values, draws = _classwise_error(predictions, unit, n_resampled, edges, plan)
        return RowDraws(
            {**_some(found.values, _SHARED), "ece": values},
            {**_some(found.draws, _SHARED), "ece": draws},
            plan,
        )
    view = event_view(predictions, target.positive or 0)
    sums = sum_units(view, unit, n_resampled, view.lower_edges(n_bins, closed))
    event = draw_units(sums, n_bins, [key for key in shared_metrics(view) if key in POSITIVE_KEYS], plan)
    more = _acting_draws(view, unit, n_resampled, acting, plan)
    # The Brier score of two classes counts the event twice.
    half = {"brier": 0.5}
    return RowDraws(
        {**{key: half.get(key, 1.0) * found.values[key] for key in _SHARED}, **event.values, **more.values},
        {**{key: half.get(key, 1.0) * found.draws[key] for key in _SHARED}, **event.draws, **more.draws},
        plan,
    )


def _acting_draws(
    predictions: Predictions, unit: Array, n_units: int, keys: Sequence[str], plan: ResamplePlan
) -> RowDraws:
    """Return scores of acting on a confidence, and how far they are from it in resamples, to first order."""
    if not keys:
        return RowDraws({}, {}, plan)
    table = influence_table(sorted_top_label(predictions, where="draw_rows").cells)
    confidence, correct = predictions.confidence.astype(np.float64), predictions.correct
    weight = np.ones(len(predictions)) if predictions.weights is None else predictions.weights
    counts, total = _counts(n_units, plan.n_resamples, plan.seed), np.bincount(unit, weight, n_units)
    n_rows = float(weight.sum() ** 2 / (weight**2).sum())
    sums = [
        np.bincount(unit, weight * table.of_rows(key, confidence, correct, n_rows), n_units) for key in keys
    ]
    drawn = (counts @ np.stack(sums, axis=1)) / (counts @ total)[:, None]
    draws = {key: np.asarray(column, dtype=np.float32) for key, column in zip(keys, drawn.T, strict=True)}
    return RowDraws({key: table.values[key] for key in keys}, draws, plan)


def _some(table: Mapping[str, T], keys: Sequence[str]) -> dict[str, T]:
    return {key: table[key] for key in keys}


def _classwise_error(
    predictions: Predictions, unit: Array, n_units: int, edges: Array, plan: ResamplePlan
) -> tuple[float, Array]:
    """Return the classwise error and how far it is from it in resamples, one class at a time to save memory."""
    probs, labels = predictions.probs, predictions.labels
    weight = np.ones(len(predictions)) if predictions.weights is None else predictions.weights
    counts, n_bins = _counts(n_units, plan.n_resamples, plan.seed), len(edges) - 1
    total = np.bincount(unit, weight, n_units)
    value, drawn = 0.0, np.zeros(plan.n_resamples)
    for place in range(probs.shape[1]):
        column = probs[:, place].astype(np.float64)
        gap = weight * (column - (labels == place))
        sums = np.bincount(unit * n_bins + bin_of(column, edges[1:-1]), gap, n_units * n_bins)
        table = sums.reshape(n_units, n_bins)
        value += float(np.abs(table.sum(axis=0)).sum())
        drawn += np.abs(counts @ table).sum(axis=1)
    value /= float(total.sum()) * probs.shape[1]
    return value, np.asarray(drawn / (counts @ total) / probs.shape[1] - value, dtype=np.float32)


def draw_units(sums: Array, n_bins: int, keys: Sequence[str], plan: ResamplePlan) -> RowDraws:
    """Score resamples of units whose sums are known.

    Args:
        sums: What :func:`sum_units` gave, ``(units, bins * 2 * 4)``.
        n_bins: Bins of equal width.
        keys: Which metrics.
        plan: How often, and with which random seed.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> sums = sum_units(rows, np.array([0, 0, 1]), 2, rows.lower_edges(15, "right"))
        >>> draw_units(sums, 15, ["accuracy"], ResamplePlan(3, 2, 20, 0)).draws["accuracy"].shape
        (20,)
    """
    shape = (n_bins, 2, 4)
    point = cell_metrics(sums.sum(axis=0).reshape(shape))
    counts = _counts(len(sums), plan.n_resamples, plan.seed)
    drawn = cell_metrics((counts @ sums).reshape(plan.n_resamples, *shape))
    return RowDraws(
        {key: float(point[key]) for key in keys},
        {key: np.asarray(drawn[key] - point[key], dtype=np.float32) for key in keys},
        plan,
    )


class _Units(NamedTuple):
    """Which rows are resampled together.

    Attributes:
        unit: Number of each row's unit ``(n,)``.
        n_resampled: How many units there are.
        n_units: How many units of equal size know as much.
    """

    unit: Array
    n_resampled: int
    n_units: int


def units_of_clusters(clusters: Array, weights: Array | None, seed: int) -> _Units:
    """Return which rows are resampled together: those of a cluster, or of a random group of clusters if there are many.

    Args:
        clusters: ``(n,)`` numbers from 0.
        weights: Of the rows.
        seed: Random seed of the groups.

    Example:
        >>> units_of_clusters(np.array([0, 0, 1, 1]), None, 0).n_units
        2
        >>> units_of_clusters(np.repeat(np.arange(9), [92, 1, 1, 1, 1, 1, 1, 1, 1]), None, 0).n_units
        2
    """
    weight = np.ones(len(clusters)) if weights is None else weights
    total, squares = (np.bincount(clusters, part) for part in (weight, weight**2))
    filled = total > 0
    # Rows of weight zero add nothing, wherever they are counted.
    code = np.where(filled, np.cumsum(filled) - 1, 0)[clusters]
    group = _units(int(filled.sum()), seed)
    n_resampled = int(group.max()) + 1
    return _Units(group[code], n_resampled, min(_count_effective(total, squares), n_resampled))


def group_clusters(cells: Array, seed: int) -> tuple[Array, int]:
    """Return sums of clusters, many of them in random groups, and how many of equal size know as much.

    Args:
        cells: Sums of rows of weight one by cluster, ``(clusters, bins, 2, 4)``; those without rows are left out.
        seed: Random seed of the groups.

    Example:
        >>> group_clusters(np.ones((3, 15, 2, 4)), 0)[1]
        3
    """
    total = cells[..., 0].sum(axis=(1, 2))
    filled = cells[total > 0]
    group = _units(len(filled), seed)
    sums = np.zeros((int(group.max()) + 1, *cells.shape[1:]))
    np.add.at(sums, group, filled)
    return sums, min(_count_effective(total, total), len(sums))


def _count_effective(total: Array, squares: Array) -> int:
    """Return how many clusters of equal size know as much as those of these weights and summed squared weights."""
    variance = squares + _ALIKE * (total**2 - squares)
    return max(2, round(float(variance.sum() ** 2 / (variance**2).sum())))


def _units(n_rows: int, seed: int) -> Array:
    """Return the unit of each row: the row itself, or a random group where there are many rows."""
    if n_rows <= _MOST_UNITS:
        return np.arange(n_rows)
    unit: Array = numpy_generator(seed, "row groups", n_rows).permutation(n_rows) % _MOST_UNITS
    return unit


@lru_cache(maxsize=1)
def _counts(n_units: int, n_resamples: int, seed: int) -> Array:
    """Return how often each resample holds each unit, ``(n_resamples, n_units)``."""
    rng = numpy_generator(seed, "shared rows", n_units)
    chosen = rng.integers(n_units, size=(n_resamples, n_units))
    chosen += n_units * np.arange(n_resamples)[:, None]
    counts = np.bincount(chosen.reshape(-1), minlength=n_resamples * n_units)
    result: Array = counts.reshape(n_resamples, n_units).astype(np.float64)
    result.flags.writeable = False
    return result


def sum_units(predictions: Predictions, unit: Array, n_units: int, edges: Array) -> Array:
    """Return sums by unit, confidence bin and correctness of weight, confidence, NLL and Brier score.

    Where only confidences are known, the last two are those of being right.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2]], labels=[0, 1])
        >>> sum_units(rows, np.array([0, 1]), 2, rows.lower_edges(15, "right")).shape
        (2, 120)
    """
    confidence = np.minimum(predictions.confidence.astype(np.float64), 1.0)
    cell = bin_of(confidence, edges[1:-1]) * 2 + predictions.correct
    if not predictions.has_scores:
        nll, brier = losses_of_being_right(confidence, predictions.correct)
    else:
        rows = np.arange(len(predictions))
        nll = -predictions.log_probs[rows, predictions.labels].astype(np.float64)
        probs = predictions.probs
        own = probs[rows, predictions.labels].astype(np.float64)
        brier = np.einsum("nk,nk->n", probs, probs, dtype=np.float64) - 2 * own + 1
    weight = np.ones(len(predictions)) if predictions.weights is None else predictions.weights
    n_cells = 2 * (len(edges) - 1)
    place = unit * n_cells + cell
    sums = [np.bincount(place, weight * part, n_units * n_cells) for part in (1.0, confidence, nll, brier)]
    result: Array = np.stack(sums, axis=-1).reshape(n_units, n_cells * 4)
    return result
