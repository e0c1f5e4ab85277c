"""Paired comparison: is one model better than another on the same rows?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar, final

import numpy as np

from equipoise.core.bins import check_bins
from equipoise.core.errors import DataError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.alignment import align, same_outcomes
from equipoise.evaluate.differences import Difference, Differences, correct_family, paired_difference
from equipoise.metrics.clusters import find_clusters
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.intervals import check_resamples
from equipoise.metrics.row_draws import draw_rows, shared_metrics
from equipoise.metrics.target import TOP, find_target

__all__ = ["PairedDifferences", "compare", "correct_for_many"]

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
    """Return comparisons whose p-values, intervals and verdicts allow for there being several in each metric.

    Args:
        comparisons: One per model that was compared with the same baseline.
        level: Level of each family of comparisons; see :func:`~equipoise.evaluate.differences.correct_family`.

    Example:
        >>> first = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> found = compare(first, first.with_scores(probs=[[0.6, 0.4]] * 40), n_resamples=99)
        >>> both = correct_for_many({"a": found, "b": compare(first, first, n_resamples=99)})
        >>> both["a"].of("ece").p_value / found.of("ece").p_value
        2.0
    """
    families: dict[str, dict[K, Difference]] = {}
    for name, differences in comparisons.items():
        for row in differences:
            families.setdefault(row.metric, {})[name] = row
    corrected = {
        (name, metric): row
        for metric, family in families.items()
        for name, row in zip(family, correct_family(list(family.values()), level=level), strict=True)
    }
    return {
        name: PairedDifferences(corrected[name, row.metric] for row in differences)
        for name, differences in comparisons.items()
    }


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
    clusters: Any = None,
    target: str | None = None,
    positive: str | int | None = None,
) -> PairedDifferences:
    """Compare two models on the same rows.

    Rows are resampled together, so rows that both models find hard do not blur the difference.

    Args:
        first: Predictions of one model, the baseline.
        second: Predictions of the other, on the same rows in the same order. With ids in both, the order of rows does
            not matter; nor does that of classes, if both name them.
        metrics: Which metrics; by default all that both kinds of scores allow.
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals. The verdict is a tie if and only if the interval contains zero.
        n_resamples: Bootstrap resamples.
        seed: The same seed gives the same answer.
        clusters: Where rows depend on each other: one value per row, or the name of a column of groups that one of
            the predictions has. Clusters are then resampled, not rows.
        target: What is judged: ``"top"``, ``"positive"`` or ``"classwise"``, as for :func:`equipoise.score`; by default
            the predicted class.
        positive: The positive class, by name or number; by default class 1. Naming one means ``target="positive"``.

    Returns:
        One difference per metric, second minus first, with interval, p-value and verdict.

    Raises:
        DataError: If the rows are not the same.
        SpecError: If the target does not fit the classes.

    Example:
        >>> first = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> second = first.with_scores(probs=[[0.6, 0.4]] * 40)
        >>> [row.verdict for row in compare(first, second, metrics=["accuracy", "ece"])]
        ['tie', 'second better']
    """
    check_bins(n_bins, closed, where=_WHERE)
    check_resamples(n_resamples, where=_WHERE)
    first, second = align(first, second, where=_WHERE)
    _check_paired(first, second)
    chosen = [
        find_target(
            target,
            positive,
            n_classes=part.n_classes or 0 if part.has_scores else 0,
            class_names=part.class_names or first.class_names,
            where=_WHERE,
        )
        or TOP
        for part in (first, second)
    ]
    known = dict.fromkeys(shared_metrics(first, second))
    if chosen[0].kind == "classwise":
        known = dict.fromkeys(("accuracy", "nll", "brier", "ece"))
    for key in metrics or ():
        look_up(key, known, what="metric to compare")
    codes = None if clusters is None else find_clusters(clusters, first, second, where=_WHERE).codes
    before, after = (
        draw_rows(
            as_predictions(part, None, where=_WHERE),
            n_bins=n_bins,
            closed=closed,
            n_resamples=n_resamples,
            seed=seed,
            clusters=codes,
            target=judged,
        )
        for part, judged in zip((first, second), chosen, strict=True)
    )
    return PairedDifferences(
        paired_difference(key, [before], [after], level=level)._replace(target=chosen[0].label)
        for key in metrics or known
    )


def _check_paired(first: Predictions, second: Predictions) -> None:
    if not same_outcomes(first, second):
        raise DataError(
            f"{_WHERE}: both predictions must be of the same rows in the same order, got {first!r} and {second!r} "
            "with other labels. Save both models' outputs for the same data."
        )
    one, two = (np.ones(len(part)) if part.weights is None else part.weights for part in (first, second))
    if not np.array_equal(one, two):
        raise DataError(
            f"{_WHERE}: both predictions must have the same weights, or none. Set them with with_weights."
        )
