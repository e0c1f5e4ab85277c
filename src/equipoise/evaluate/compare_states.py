"""Unpaired comparison: is one state better than another, of other rows, when only their sums are left?"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.evaluate.differences import Difference, Differences, difference_test
from equipoise.evaluate.standard_error import StandardError
from equipoise.evaluate.values import sketched_values
from equipoise.metrics.facts import metric_facts, metrics_where
from equipoise.metrics.intervals import check_resamples
from equipoise.metrics.readings import read_state
from equipoise.metrics.resample import Resampler
from equipoise.metrics.state import CalibrationState

__all__ = ["UnpairedDifferences", "compare_states"]

_WHERE = "compare_states"


@final
class UnpairedDifferences(Differences):
    """Differences of two states of other rows, one per metric; print it for a table.

    Example:
        >>> day, night = CalibrationState(2), CalibrationState(2)
        >>> day.update(probs=[0.9] * 100, labels=[1] * 90 + [0] * 10)
        >>> night.update(probs=[0.9] * 100, labels=[1] * 60 + [0] * 40)
        >>> compare_states(day, night).of("ece").verdict
        'first better'
    """

    __slots__ = ()


def compare_states(
    first: CalibrationState,
    second: CalibrationState,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> UnpairedDifferences:
    """Compare two states of other rows, such as last month and today; no rows are needed.

    Difference, interval, p-value and verdict come from one test. Chance alone gives the smaller state the larger
    calibration error; the ``difference`` has this bias taken off, so it may differ from ``second - first``. Its
    standard error is the larger of two: from resampling each state, and from resampling the pooled rows. The first
    would be zero for a state whose few rows are all right. States do not know which rows they share. If both are of
    the same rows, :func:`equipoise.compare` finds smaller differences.

    Args:
        first: The baseline.
        second: What is compared with it.
        level: Level of the intervals. The verdict is a tie if and only if the interval contains zero.
        n_resamples: Resamples of each.
        seed: The same seed gives the same answer.

    Returns:
        One difference per metric, with interval, p-value and verdict.

    Raises:
        DataError: If the states have other bins or classes.

    Example:
        >>> day, night = CalibrationState(2), CalibrationState(2)
        >>> day.update(probs=[0.8] * 1000, labels=[1] * 800 + [0] * 200)
        >>> night.update(probs=[0.8] * 50, labels=[1] * 41 + [0] * 9)
        >>> {row.verdict for row in compare_states(day, night)}
        {'tie'}
    """
    check_resamples(n_resamples, where=_WHERE)
    if first.settings() != second.settings():
        raise DataError(
            f"{_WHERE}: both states must have the same bins and classes, got {first.settings()} and "
            f"{second.settings()}. Sum both with the same settings."
        )
    pooled = deepcopy(first)
    pooled.merge(second)
    states = (first, second)
    values = [{**read_state(state), **sketched_values(state)} for state in states]
    own = _draws(states, states, n_resamples, 2 * seed)
    null = _draws((pooled, pooled), states, n_resamples, 2 * seed + 1)
    sizes = [state.effective_samples for state in states]
    # Parts of a score are left out: chance moves them from one to the other, the more the fewer rows there are.
    common = set.intersection(*(set(part) for part in values), *(set(part) for part in own))
    keys = [key for key in metrics_where(part_of=None) if key in common]
    return UnpairedDifferences(
        _difference(
            key,
            [part[key] for part in values],
            [part[key] for part in own],
            [part[key] for part in null],
            sizes,
            level,
        )
        for key in keys
    )


def _draws(
    states: Sequence[CalibrationState], sizes: Sequence[CalibrationState], n_resamples: int, seed: int
) -> list[dict[str, Array]]:
    """Draw samples as large as two states from two states, and return their metrics."""
    return [
        Resampler(state, n_resamples=n_resamples, seed=2 * seed + number, like=size).bootstrap()
        for number, (state, size) in enumerate(zip(states, sizes, strict=True))
    ]


def _difference(
    key: str,
    values: Sequence[float],
    own: Sequence[Array],
    null: Sequence[Array],
    sizes: Sequence[float],
    level: float,
) -> Difference:
    own, null = ([part[~np.isnan(part)] for part in parts] for parts in (own, null))
    first, second = values
    bias = float(null[1].mean() - null[0].mean()) if metric_facts(key).is_error else 0.0
    variance = max(_variance(own, sizes), _variance(null, sizes))
    df = min(*sizes, *map(len, (*own, *null))) - 1
    error = StandardError(float(np.sqrt(variance)), float(df))
    return difference_test(key, first + bias, second, error, level=level)._replace(first=first)


def _variance(draws: Sequence[Array], sizes: Sequence[float]) -> float:
    """Return the variance of the difference of two independent samples; few rows resample too narrowly."""
    return sum(
        float(part.var(ddof=1)) * size / (size - 1)
        for part, size in zip(draws, sizes, strict=True)
        if len(part) > 1 and size > 1
    )
