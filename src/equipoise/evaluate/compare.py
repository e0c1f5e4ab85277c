"""Paired comparison: is one model better than another on the same rows?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar, final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.bins import bin_of, check_bins
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.chance import holm
from equipoise.evaluate.differences import Difference, Differences, verdict_of
from equipoise.metrics.facts import metrics_where
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.intervals import check_resamples, mean_interval
from equipoise.metrics.readings import read_cells

__all__ = ["PairedDifferences", "compare", "compared_metrics", "correct_for_many"]

_WHERE = "compare"
K = TypeVar("K", bound=Hashable)


@final
class PairedDifferences(Differences):
    """Differences of two models on the same rows, one per metric; print it for a table.

    Example:
        >>> first = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> found = compare(first, first.with_scores(probs=[[0.6, 0.4]] * 40))
        >>> found.of("ece").verdict
        'second better'
    """

    __slots__ = ()


def correct_for_many(
    comparisons: Mapping[K, PairedDifferences], *, level: float = 0.95
) -> dict[K, PairedDifferences]:
    """Return comparisons whose p-values and verdicts allow for there being several, by Holm's rule in each metric.

    Args:
        comparisons: One per model that was compared with the same baseline.
        level: A difference is a tie unless its corrected p-value is below ``1 - level``.

    Example:
        >>> first = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> found = compare(first, first.with_scores(probs=[[0.6, 0.4]] * 40), n_resamples=99)
        >>> both = correct_for_many({"a": found, "b": found})
        >>> found.of("ece").p_value, both["a"].of("ece").p_value
        (0.01, 0.02)
    """
    rows: dict[str, list[tuple[K, Difference]]] = {}
    for name, differences in comparisons.items():
        for row in differences:
            rows.setdefault(row.metric, []).append((name, row))
    corrected: dict[tuple[K, str], Difference] = {}
    for metric, found in rows.items():
        p_values = holm(np.array([row.p_value for _, row in found])).tolist()
        for (name, row), p_value in zip(found, p_values, strict=True):
            verdict = verdict_of(metric, row.first, row.second, significant=p_value < 1 - level)
            corrected[name, metric] = row._replace(p_value=p_value, verdict=verdict)
    return {
        name: PairedDifferences(corrected[name, row.metric] for row in differences)
        for name, differences in comparisons.items()
    }


def compared_metrics(*parts: Predictions) -> tuple[str, ...]:
    """Return the metrics in which these predictions can be compared row by row.

    Example:
        >>> compared_metrics(Predictions(predicted=[1], confidence=[0.9], labels=[1]))[:2]
        ('accuracy', 'ece')
    """
    wanted = {"needs_scores": False} if any(part.kind == "top1" for part in parts) else {}
    return metrics_where(is_paired=True, **wanted)


def compare(
    first: Predictions,
    second: Predictions,
    *,
    metrics: Sequence[str] | None = None,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> PairedDifferences:
    """Compare two models on the same rows.

    Rows are resampled together, so what both models find hard does not blur the difference. Rows are not visited again
    for each resample: those that both models treat alike share a cell, and cells are drawn.

    Args:
        first: Predictions of one model, the baseline.
        second: Predictions of the other, on the same rows in the same order.
        metrics: Which metrics; by default all that both kinds of scores allow.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals; the verdict is a tie unless the p-value is below ``1 - level``.
        n_resamples: Bootstrap resamples.
        seed: The same seed gives the same answer.

    Returns:
        One difference per metric, second minus first, with interval, p-value and verdict.

    Raises:
        DataError: If the rows are not the same.

    Example:
        >>> first = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> second = first.with_scores(probs=[[0.6, 0.4]] * 40)
        >>> [row.verdict for row in compare(first, second, metrics=["accuracy", "ece"])]
        ['tie', 'second better']
    """
    check_bins(n_bins, closed, where=_WHERE)
    check_resamples(n_resamples, where=_WHERE)
    _check_paired(first, second)
    known = dict.fromkeys(compared_metrics(first, second))
    for key in metrics or ():
        look_up(key, known, what="metric to compare")
    columns = [_columns(as_predictions(part, None, where=_WHERE), n_bins, closed) for part in (first, second)]
    weight = np.ones(len(first)) if first.weights is None else first.weights
    point = [read_cells(_cells(cell, values, weight, n_bins)) for cell, values in columns]
    draws = _paired_draws(columns, weight, n_bins, n_resamples, seed)
    rows = []
    for key in metrics or known:
        before, after = (float(part[key]) for part in point)
        difference = after - before
        drawn = draws[1][key] - draws[0][key]
        low, high = mean_interval(difference, drawn, level=level)
        far = np.abs(drawn - drawn.mean()) >= abs(difference) - 1e-12
        p_value = float((1 + np.count_nonzero(far)) / (1 + n_resamples))
        verdict = verdict_of(key, before, after, significant=p_value < 1 - level)
        rows.append(Difference(key, before, after, difference, low, high, p_value, verdict))
    return PairedDifferences(rows)


def _check_paired(first: Predictions, second: Predictions) -> None:
    if len(first) != len(second) or not np.array_equal(first.labels, second.labels):
        raise DataError(
            f"{_WHERE}: both predictions must be of the same rows in the same order, got {first!r} and {second!r} "
            "with other labels. Save both models' outputs for the same data."
        )
    one, two = (np.ones(len(part)) if part.weights is None else part.weights for part in (first, second))
    if not np.array_equal(one, two):
        raise DataError(
            f"{_WHERE}: both predictions must have the same weights, or none. Set them with with_weights."
        )
    if first.rows.named and second.rows.named and not np.array_equal(first.rows.hashes, second.rows.hashes):
        raise DataError(
            f"{_WHERE}: both predictions must have the same ids in the same order. Sort them by id."
        )


def _columns(part: Predictions, n_bins: int, closed: str) -> tuple[Array, Array]:
    """Return the cell of each row (bin and correctness), and its confidence, nll and Brier score."""
    confidence = np.minimum(part.confidence.astype(np.float64), 1.0)
    cell = bin_of(confidence, part.lower_edges(n_bins, closed)[1:-1]) * 2 + part.correct
    nll = brier = np.zeros(len(part))
    if part.kind != "top1":
        rows = np.arange(len(part))
        nll = -part.log_probs[rows, part.labels].astype(np.float64)
        mine = part.probs[rows, part.labels].astype(np.float64)
        brier = np.einsum("nk,nk->n", part.probs, part.probs, dtype=np.float64) - 2 * mine + 1
    return cell, np.stack([np.ones(len(part)), confidence, nll, brier], axis=1)


def _cells(cell: Array, values: Array, weight: Array, n_bins: int) -> Array:
    sums = [np.bincount(cell, weight * values[:, i], 2 * n_bins) for i in range(4)]
    return np.stack(sums, axis=-1).reshape(n_bins, 2, 4)


def _paired_draws(
    columns: Sequence[tuple[Array, Array]], weight: Array, n_bins: int, n_resamples: int, seed: int
) -> list[dict[str, Array]]:
    """Draw both models' metrics from resamples of the same rows."""
    rng = numpy_generator(seed, "paired")
    joint = columns[0][0] * (2 * n_bins) + columns[1][0]
    used, place = np.unique(joint, return_inverse=True)
    mass = np.bincount(place, weight)
    n_rows = max(1, round(float(weight.sum() ** 2 / (weight @ weight))))
    counts = rng.multinomial(n_rows, mass / mass.sum(), size=n_resamples).astype(np.float64)
    noise = {i: rng.standard_normal(counts.shape) for i in (2, 3)}
    draws = []
    spreads = [_joint_spread(place, [values[:, i] for _, values in columns], weight, mass) for i in (2, 3)]
    for which, (_, values) in enumerate(columns):
        own = (used // (2 * n_bins)) if which == 0 else (used % (2 * n_bins))
        member = np.zeros((len(used), 2 * n_bins))
        member[np.arange(len(used)), own] = 1.0
        sums = np.empty((n_resamples, 2 * n_bins, 4))
        for i in range(4):
            mean = np.bincount(place, weight * values[:, i]) / mass
            drawn = counts * mean
            if i >= 2 and which == 1:
                # Within a cell only the difference of the two models matters, so its noise is put on one of them.
                drawn = drawn + np.sqrt(counts) * spreads[i - 2] * noise[i]
            sums[..., i] = drawn @ member
        draws.append(read_cells(sums.reshape(n_resamples, n_bins, 2, 4)))
    return draws


def _joint_spread(place: Array, pair: Sequence[Array], weight: Array, mass: Array) -> Array:
    """Return the standard deviation within cells of the difference of two columns."""
    difference = pair[1] - pair[0]
    mean = np.bincount(place, weight * difference) / mass
    square = np.bincount(place, weight * difference**2) / mass
    spread: Array = np.sqrt(np.maximum(square - mean**2, 0))
    return spread
