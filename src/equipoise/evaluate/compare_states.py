"""Unpaired comparison: is one state better than another, of other rows, when only their sums are left?"""

from __future__ import annotations

from copy import deepcopy
from typing import final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.evaluate.differences import Difference, Differences, verdict_of
from equipoise.evaluate.values import sketched_values
from equipoise.metrics.facts import metric_facts, metrics_where
from equipoise.metrics.intervals import check_resamples, mean_interval
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

    The p-value says how often two samples of these sizes differ so much when both are drawn from the pooled rows. That
    takes into account that chance alone gives the smaller state the larger calibration error: the ``difference`` and
    its interval have this taken off, so it may differ from ``second - first``. The interval comes from resampling each
    state by itself. Rows that both states share are not known, so paired rows are compared more sharply by
    :func:`equipoise.compare`.

    Args:
        first: The baseline.
        second: What is compared with it.
        level: Level of the intervals; the verdict is a tie unless the p-value is below ``1 - level``.
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
    values = [{**read_state(state), **sketched_values(state)} for state in (first, second)]
    own = _difference_of_draws(first, second, (first, second), n_resamples, 2 * seed)
    null = _difference_of_draws(pooled, pooled, (first, second), n_resamples, 2 * seed + 1)
    # Parts of a score are left out: chance moves them from one to the other, the more the fewer rows there are.
    keys = [key for key in metrics_where(part_of=None) if key in own and all(key in part for part in values)]
    return UnpairedDifferences(
        _difference(key, values[0][key], values[1][key], own[key], null[key], level) for key in keys
    )


def _difference_of_draws(
    first: CalibrationState,
    second: CalibrationState,
    sizes: tuple[CalibrationState, CalibrationState],
    n_resamples: int,
    seed: int,
) -> dict[str, Array]:
    """Draw samples as large as two states from two states, and return how much they differ in each metric."""
    one, two = (
        Resampler(state, n_resamples=n_resamples, seed=2 * seed + place, like=size).bootstrap()
        for place, (state, size) in enumerate(zip((first, second), sizes, strict=True))
    )
    return {key: two[key] - one[key] for key in one if key in two}


def _difference(key: str, first: float, second: float, own: Array, null: Array, level: float) -> Difference:
    known = null[~np.isnan(null)]
    expected = float(known.mean()) if metric_facts(key).is_error and len(known) else 0.0
    difference = second - first - expected
    low, high = mean_interval(difference, own, level=level)
    far = np.abs(known - known.mean()) >= abs(difference) - 1e-12 if len(known) else np.ones(1)
    p_value = float((1 + np.count_nonzero(far)) / (1 + len(far)))
    verdict = verdict_of(key, first + expected, second, significant=p_value < 1 - level)
    return Difference(key, first, second, difference, low, high, p_value, verdict)
