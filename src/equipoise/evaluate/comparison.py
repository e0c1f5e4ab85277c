"""Comparison of two models: paired, on the same rows, or unpaired, from sums of other rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, TypeVar, final

import numpy as np
from scipy.special import ndtri

from equipoise.core.arrays import Array
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError, SpecError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.combine import align, same_outcomes
from equipoise.evaluate.audit_state import AuditState
from equipoise.evaluate.differences import (
    Difference,
    Differences,
    correct_family,
    difference_test,
    paired_difference,
)
from equipoise.evaluate.standard_error import StandardError
from equipoise.metrics.clusters import find_clusters
from equipoise.metrics.facts import metric_facts, metrics_where
from equipoise.metrics.influence import COMPARED_KEYS
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.intervals import check_settings
from equipoise.metrics.resample import Resampler
from equipoise.metrics.row_draws import draw_rows, shared_metrics
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.target import POSITIVE_KEYS, TOP, Target, find_target
from equipoise.metrics.values import sketch_metrics, state_metrics

__all__ = ["PairedDifferences", "UnpairedDifferences", "compare", "compare_states", "correct_for_many"]

_WHERE, _STATES = "compare", "compare_states"
K = TypeVar("K", bound=Hashable)


@final
class PairedDifferences(Differences):
    """Differences of two models on the same rows, one per metric; print it for a table.

    Example:
        >>> before = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> found = compare(before, before.with_scores(probs=[[0.6, 0.4]] * 40))
        >>> found.of("ece").verdict
        'better'
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
        >>> before = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> found = compare(before, before.with_scores(probs=[[0.6, 0.4]] * 40), n_resamples=99)
        >>> both = correct_for_many({"a": found, "b": compare(before, before, n_resamples=99)})
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
    before: Predictions,
    after: Predictions,
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
        before: Predictions of one model, the baseline.
        after: Predictions of the other, on the same rows in the same order. With ids in both, the order of rows does
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
        One difference per metric, after minus before, with interval, p-value and verdict.

    Raises:
        DataError: If the rows are not the same.
        SpecError: If the target does not fit the classes.

    Example:
        >>> before = Predictions(probs=[[0.99, 0.01]] * 40, labels=[0] * 24 + [1] * 16)
        >>> after = before.with_scores(probs=[[0.6, 0.4]] * 40)
        >>> [row.verdict for row in compare(before, after, metrics=["accuracy", "ece"])]
        ['tie', 'better']
    """
    settings = ScoreSettings(n_bins, closed, level, n_resamples, seed)
    check_settings(settings, where=_WHERE)
    before, after = align(before, after, where=_WHERE)
    _check_paired(before, after)
    chosen = [
        find_target(
            target,
            positive,
            n_classes=part.n_classes or 0 if part.has_scores else 0,
            class_names=part.class_names or before.class_names,
            where=_WHERE,
        )
        or TOP
        for part in (before, after)
    ]
    acting = [key for key in COMPARED_KEYS if chosen[0].kind == "top" or key in POSITIVE_KEYS]
    known = dict.fromkeys((*shared_metrics(before, after), *acting))
    if chosen[0].kind == "classwise":
        acting = []
        known = dict.fromkeys(("accuracy", "nll", "brier", "ece"))
    for key in metrics or ():
        look_up(key, known, what="metric to compare")
    codes = None if clusters is None else find_clusters(clusters, before, after, where=_WHERE).codes
    one, two = (
        draw_rows(
            as_predictions(part, None, where=_WHERE),
            settings,
            clusters=codes,
            target=judged,
            acting=[key for key in metrics or known if key in acting],
        )
        for part, judged in zip((before, after), chosen, strict=True)
    )
    return PairedDifferences(
        paired_difference(key, [one], [two], level=level)._replace(target=chosen[0].label)
        for key in metrics or known
    )


def _check_paired(before: Predictions, after: Predictions) -> None:
    if not same_outcomes(before, after):
        raise DataError(
            f"{_WHERE}: both predictions must be of the same rows in the same order, got {before!r} and {after!r} "
            "with other labels. Save both models' outputs for the same data."
        )
    one, two = (np.ones(len(part)) if part.weights is None else part.weights for part in (before, after))
    if not np.array_equal(one, two):
        raise DataError(
            f"{_WHERE}: both predictions must have the same weights, or none. Set them with with_weights."
        )


_TAIL = 0.025


@final
class UnpairedDifferences(Differences):
    """Differences of two states of other rows, one per metric; print it for a table.

    Example:
        >>> day, night = CalibrationState(2), CalibrationState(2)
        >>> day.update(probs=[0.9] * 100, labels=[1] * 90 + [0] * 10)
        >>> night.update(probs=[0.9] * 100, labels=[1] * 60 + [0] * 40)
        >>> compare_states(day, night).of("ece").verdict
        'worse'
    """

    __slots__ = ()


def compare_states(
    before: CalibrationState | AuditState,
    after: CalibrationState | AuditState,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    target: str | None = None,
    positive: str | int | None = None,
) -> UnpairedDifferences:
    """Compare two states of other rows, such as last month and today; no rows are needed.

    Difference, interval, p-value and verdict come from one test. The standard error is the larger of two: from
    resampling each state, and from resampling the pooled rows. The first would be zero for a state whose few rows are
    all right. Chance alone gives the smaller state the larger calibration error. The ``difference`` of calibration
    errors has chance taken off both, so it may differ from ``after - before``. Its interval combines the intervals of
    both, and ``error`` is the standard error toward zero. States do not contain which rows they share. If both are of
    the same rows, :func:`equipoise.compare` finds smaller differences.

    Args:
        before: The baseline.
        after: What is compared with it.
        level: Level of the intervals. The verdict is a tie if and only if the interval contains zero.
        n_resamples: Resamples of each.
        seed: The same seed gives the same answer.
        target: What is judged: ``"top"``, ``"positive"`` or ``"classwise"``, as for :func:`equipoise.score`; by default
            the predicted class. The positive class needs states of audits.
        positive: The positive class, by name or number; by default class 1. Naming one means ``target="positive"``.

    Returns:
        One difference per metric, with interval, p-value and verdict.

    Raises:
        DataError: If the states have other bins or classes.
        SpecError: If the target does not fit the classes, or a state keeps too little for it.

    Example:
        >>> day, night = CalibrationState(2), CalibrationState(2)
        >>> day.update(probs=[0.8] * 1000, labels=[1] * 800 + [0] * 200)
        >>> night.update(probs=[0.8] * 50, labels=[1] * 41 + [0] * 9)
        >>> {row.verdict for row in compare_states(day, night)}
        {'tie'}
    """
    settings = ScoreSettings(level=level, n_resamples=n_resamples, seed=seed)
    check_settings(settings, where=_STATES)
    chosen = [_target(state, target, positive) for state in (before, after)]
    if chosen[0] != chosen[1]:
        raise DataError(
            f"{_STATES}: both states must be of the same positive class, got {chosen[0].label} and {chosen[1].label}. "
            "Sum both with the same one."
        )
    sums = [state.calibration if isinstance(state, AuditState) else state for state in (before, after)]
    plain = _compared(sums[0], sums[1], settings)
    kind, label = chosen[0].kind, chosen[0].label
    if kind == "top":
        return UnpairedDifferences(plain)
    shared = [row for row in plain if row.metric in ("accuracy", "nll", "brier")]
    if kind == "classwise":
        errors = [row._replace(metric="ece") for row in plain if row.metric == "classwise_ece"]
    else:
        shared = [_halved(row) if row.metric == "brier" else row for row in shared]
        events = _compared(_event_sums(before), _event_sums(after), settings)
        errors = [row for row in events if row.metric in POSITIVE_KEYS]
    return UnpairedDifferences(row._replace(target=label) for row in (*shared, *errors))


def _target(state: CalibrationState | AuditState, target: str | None, positive: str | int | None) -> Target:
    if isinstance(state, AuditState):
        return state.find_target(target, positive, where=_STATES) or TOP
    chosen = find_target(target, positive, n_classes=state.n_classes, class_names=None, where=_STATES) or TOP
    if chosen.kind == "positive":
        raise SpecError(
            f"{_STATES}: a CalibrationState keeps too little to judge the probability of one class. Pass AuditStates."
        )
    return chosen


def _event_sums(state: CalibrationState | AuditState) -> CalibrationState:
    assert isinstance(state, AuditState)
    assert state.event is not None
    return state.event.calibration


def _halved(row: Difference) -> Difference:
    """Return the Brier score of the event, of which that of two classes counts both."""
    numbers = {name: 0.5 * getattr(row, name) for name in ("before", "after", "difference", "low", "high")}
    return row._replace(error=row.error._replace(rows=0.5 * row.error.rows), **numbers)


def _compared(before: CalibrationState, after: CalibrationState, settings: ScoreSettings) -> list[Difference]:
    if before.settings() != after.settings():
        raise DataError(
            f"{_STATES}: both states must have the same bins and classes, got {before.settings()} and "
            f"{after.settings()}. Sum both with the same settings."
        )
    pooled = deepcopy(before)
    pooled.merge(after)
    states = (before, after)
    values = [{**state_metrics(state), **sketch_metrics(state)} for state in states]
    resamplers = [
        _resampler(state, state, settings, 2 * settings.seed, place) for place, state in enumerate(states)
    ]
    own = [one.bootstrap() for one in resamplers]
    calibrated = [one.calibrated() for one in resamplers]
    null = [
        _resampler(pooled, state, settings, 2 * settings.seed + 1, place).bootstrap()
        for place, state in enumerate(states)
    ]
    sizes = [state.effective_samples for state in states]
    # Parts of a score are left out: chance moves them from one to the other, the more the fewer rows there are.
    known = set.intersection(*map(set, values), *map(set, own))
    keys = [key for key in metrics_where(part_of=None) if key in known]
    found = []
    for key in keys:
        both = [part[key] for part in values]
        drawn, pooled_draws = ([_known(part[key]) for part in parts] for parts in (own, null))
        df = float(min(*sizes, *map(len, (*drawn, *pooled_draws))) - 1)
        if metric_facts(key).is_error:
            by_chance = [part[key] for part in calibrated]
            found.append(_error_difference(key, both, drawn, by_chance, pooled_draws, df, settings.level))
        else:
            variance = max(_variance(drawn, sizes), _variance(pooled_draws, sizes))
            error = StandardError(float(np.sqrt(variance)), df)
            found.append(difference_test(key, both[0], both[1], error, level=settings.level))
    return found


def _resampler(
    state: CalibrationState, size: CalibrationState, settings: ScoreSettings, seed: int, place: int
) -> Resampler:
    """Return what draws samples as large as one state from another."""
    return Resampler(state, settings._replace(seed=2 * seed + place), like=size)


def _known(draws: Array) -> Array:
    known: Array = draws[~np.isnan(draws)]
    return known


class _Debiased(NamedTuple):
    """A calibration error with chance taken off, and how far its 95% interval reaches down and up."""

    value: float
    below: float
    above: float


def _debiased(value: float, own: Array, calibrated: Array, null: Array) -> _Debiased:
    """Take chance off a calibration error.

    The square of an error grows by about the square of what a calibrated model of as many rows scores by chance. A
    bootstrap draw contains this chance twice.
    """
    chance = float(np.mean(calibrated)) ** 2
    debiased = float(np.sqrt(max(0.0, value**2 - chance)))
    low, high = np.quantile(np.sqrt(np.maximum(0.0, own**2 - 2 * chance)), (_TAIL, 1 - _TAIL))
    # Resamples of a few rows that are all right would all be the same.
    above = max(float(high) - debiased, float(null.std() * ndtri(1 - _TAIL)))
    could_be_calibrated = value <= np.quantile(calibrated, 1 - _TAIL)
    # Near zero chance moves an error up only, so the distance from zero says little about its scatter.
    below = max(debiased, above) if could_be_calibrated else max(0.0, debiased - float(low))
    return _Debiased(debiased, below, above)


def _error_difference(
    key: str,
    values: Sequence[float],
    own: Sequence[Array],
    calibrated: Sequence[Array],
    null: Sequence[Array],
    df: float,
    level: float,
) -> Difference:
    """Compare two calibration errors by their own intervals (method of variance estimates recovery).

    Reference:
        Zou and Donner (2008), Construction of confidence limits about effect measures: a general approach.
    """
    before, after = (_debiased(*parts) for parts in zip(values, own, calibrated, null, strict=True))
    below, above = (
        difference_test(
            key, before.value, after.value, StandardError(reach / float(ndtri(1 - _TAIL)), df), level=level
        )
        for reach in (math.hypot(after.below, before.above), math.hypot(after.above, before.below))
    )
    # The end toward zero decides.
    decisive = below if below.difference > 0 else above
    return decisive._replace(before=values[0], after=values[1], low=below.low, high=above.high)


def _variance(draws: Sequence[Array], sizes: Sequence[float]) -> float:
    """Return the variance of the difference of two independent samples; few rows resample too narrowly."""
    return sum(
        float(part.var(ddof=1)) * size / (size - 1)
        for part, size in zip(draws, sizes, strict=True)
        if len(part) > 1 and size > 1
    )
