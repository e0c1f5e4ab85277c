"""Results over seeds: the numbers of a table, and what the difference of two methods is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from equipoise.evaluate import Difference, Score, StandardError
from equipoise.evaluate.differences import difference_test, paired_difference
from equipoise.evaluate.standard_error import error_over_seeds, mean_over_seeds, seed_error, shared_draws
from equipoise.experiments.runs.scores import RunScores
from equipoise.metrics.row_draws import RowDraws

__all__ = ["Cell", "cell_of", "chosen_kinds", "compare_methods", "fit_warnings", "score_over_seeds"]


@final
@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of a table: a metric over seeds.

    Attributes:
        mean: Over seeds.
        error: Standard error, from trainings and test rows together; None for one seed, which knows no scatter.
        low: Lower end of the interval; for one seed that of other rows only.
        high: Upper end.
        n_seeds: How many seeds.
        temperature: Mean temperature, for calibrators that have one.

    Example:
        >>> Cell(mean=0.5).n_seeds
        1
    """

    mean: float
    error: float | None = None
    low: float = np.nan
    high: float = np.nan
    n_seeds: int = 1
    temperature: float | None = None


def cell_of(scores: Sequence[RunScores], metric: str) -> Cell | None:
    """Return a metric of ``test`` over the seeds of a method; None if no seed has it.

    Example:
        >>> cell_of([], "ece") is None
        True
    """
    known = [part for part in scores if np.isfinite(part.value(metric))]
    if not known:
        return None
    found = score_over_seeds(known, metric)
    temperatures = [part.temperature for part in scores if part.temperature is not None]
    return Cell(
        mean=found.value,
        error=_error(known, metric).total if len(known) > 1 else None,
        low=found.low,
        high=found.high,
        n_seeds=len(known),
        temperature=float(np.mean(temperatures)) if temperatures else None,
    )


def score_over_seeds(scores: Sequence[RunScores], metric: str) -> Score:
    """Return the mean of a metric of ``test`` over runs that have it, with its interval."""
    return mean_over_seeds(
        metric,
        [part.score(metric) for part in scores],
        level=scores[0].test.level,
        draws=[part.draws for part in scores],
    )


def fit_warnings(seeds: Mapping[int, RunScores]) -> tuple[str, ...]:
    """Return what the fits of a calibrator warned of, each warning once, with the seeds that it is about.

    Args:
        seeds: What a method scored after the calibrator, by seed.

    Example:
        >>> fit_warnings({})
        ()
    """
    return _by_seed({seed: part.warnings for seed, part in seeds.items()})


def chosen_kinds(seeds: Mapping[int, RunScores]) -> tuple[str, ...]:
    """Return which calibrators the advisor chose, each once, with the seeds that it was chosen for."""
    return _by_seed({seed: (part.kind,) for seed, part in seeds.items()})


def _by_seed(texts: Mapping[int, Sequence[str]]) -> tuple[str, ...]:
    """Return every text once; with several seeds it says of how many it is, or of which."""
    found: dict[str, list[int]] = {}
    for seed, parts in texts.items():
        for text in parts:
            found.setdefault(text, []).append(seed)
    if len(texts) == 1:
        return tuple(found)
    return tuple(
        f"{text} ({f'all {len(texts)} seeds' if len(own) == len(texts) else _listed_seeds(own)})"
        for text, own in found.items()
    )


def _listed_seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _error(scores: Sequence[RunScores], metric: str) -> StandardError:
    """Return the standard error of a mean over seeds."""
    values = [part.value(metric) for part in scores]
    runs = _shared_runs(metric, scores)
    if runs:
        return error_over_seeds(values, [run.draws[metric] for run in runs], runs[0].plan.n_units)
    return _error_by_intervals(values, float(np.mean([part.row_error(metric) for part in scores])))


def _shared_runs(metric: str, scores: Sequence[RunScores]) -> list[RowDraws]:
    """Return the resamples of runs, one each, if all have a metric in the same ones; else nothing."""
    draws = [part.draws for part in scores]
    return [run for run in draws if run is not None] if shared_draws(metric, draws) else []


def _error_by_intervals(values: Sequence[float], rows: float) -> StandardError:
    """Return the standard error of a mean over seeds whose runs share no resamples: rows as if of one run."""
    if len(values) == 1:
        return StandardError(rows)
    return StandardError(rows, np.inf, seed_error(values), len(values) - 1.0)


def compare_methods(
    metric: str,
    first: Mapping[int, RunScores],
    second: Mapping[int, RunScores],
    *,
    level: float = 0.95,
) -> Difference | None:
    """Compare two methods by what their seeds scored on the same rows.

    Methods with two or more seeds in common are compared seed by seed, others by their means. If either has only one
    seed, the networks of one seed are compared: then ``n_seeds`` is 1, and the verdict is about these two networks.

    Args:
        metric: Key of the metric.
        first: Scores of one method by seed.
        second: Scores of the other.
        level: Level of the interval.

    Returns:
        Second minus first; None if a method has no such metric.
    """
    first, second = (
        {seed: part for seed, part in one.items() if np.isfinite(part.value(metric))}
        for one in (first, second)
    )
    if not first or not second:
        return None
    common = sorted(first.keys() & second.keys())
    if len(common) < 2 and min(len(first), len(second)) > 1:
        return _unpaired(metric, list(first.values()), list(second.values()), level)
    seeds = [(seed, seed) for seed in common] or [(min(first), min(second))]
    before, after = [first[one] for one, _ in seeds], [second[other] for _, other in seeds]
    runs = _shared_runs(metric, [*before, *after])
    if runs:
        return paired_difference(metric, runs[: len(seeds)], runs[len(seeds) :], level=level)
    values = [two.value(metric) - one.value(metric) for one, two in zip(before, after, strict=True)]
    rows = [float(np.mean([part.row_error(metric) for part in parts])) for parts in (before, after)]
    error = _error_by_intervals(values, math.hypot(*rows))
    return difference_test(
        metric,
        float(np.mean([part.value(metric) for part in before])),
        float(np.mean([part.value(metric) for part in after])),
        error,
        n_seeds=len(seeds),
        level=level,
    )


def _unpaired(
    metric: str, first: Sequence[RunScores], second: Sequence[RunScores], level: float
) -> Difference:
    """Compare the means of two methods that have no seeds in common."""
    errors = [_error(parts, metric) for parts in (first, second)]
    error = StandardError(
        math.hypot(*(one.rows for one in errors)),
        min(one.rows_df for one in errors),
        math.hypot(*(one.seeds for one in errors)),
        min(one.seeds_df for one in errors),
    )
    before, after = (float(np.mean([part.value(metric) for part in parts])) for parts in (first, second))
    n_seeds = min(len(first), len(second))
    return difference_test(metric, before, after, error, n_seeds=n_seeds, level=level)
