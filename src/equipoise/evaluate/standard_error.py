"""The error of a number over seeds: how far other test rows and other trainings would move it.

The mean of a metric over S trainings varies for two reasons. Trainings differ: this part is the variance over seeds
divided by S, known with S - 1 degrees of freedom. And all trainings are scored on the same test rows: this part does
not shrink with S. It is the covariance of two trainings under resampling of the rows they share. The variance of a
single training would be too much: the chance of one network on these rows is in the scatter over seeds already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit

from equipoise.core.arrays import Array
from equipoise.evaluate.scorecard import Score
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.intervals import error_interval
from equipoise.metrics.row_draws import RowDraws

__all__ = [
    "StandardError",
    "error_over_seeds",
    "mean_over_seeds",
    "one_run_error",
    "seed_error",
    "shared_draws",
]

# Beyond so many standard normal deviations probabilities leave the range of floating-point numbers.
_FARTHEST = 37.0
#: Smaller differences come from the order in which numbers were added.
_ROUNDING = 1e-9


class StandardError(NamedTuple):
    """The standard error of a mean over seeds, by source.

    Attributes:
        rows: From the test rows, which all seeds share.
        rows_df: Its degrees of freedom: resampled units minus one.
        seeds: From the scatter over seeds; zero for one seed, of which nothing is known.
        seeds_df: Its degrees of freedom: seeds minus one.

    Example:
        >>> error = StandardError(rows=0.3, seeds=0.4, seeds_df=2.0)
        >>> error.total, round(error.half_width(0.05), 3)
        (0.5, 1.73)
    """

    rows: float
    rows_df: float = np.inf
    seeds: float = 0.0
    seeds_df: float = np.inf

    @property
    def total(self) -> float:
        """Both sources together."""
        return float(np.hypot(self.rows, self.seeds))

    def half_width(self, alpha: float) -> float:
        """Return half of the width of an interval that misses the truth with probability ``alpha``.

        The critical value is the mean of Student's for the two sources, weighted by their variances (Cochran 1964), but
        the interval is never narrower than either source alone would make it. With normal noise this misses the truth
        at most as often as stated, whatever the share of the sources: 2 to 5% at ``alpha`` = 5% and two seeds, 3.7 to
        5% with five. A common number of degrees of freedom (Satterthwaite) misses it in up to 13% with two seeds, and
        Cochran's mean alone in two to four times a corrected ``alpha``.
        """
        sources = [(self.rows, self.rows_df), (self.seeds, self.seeds_df)]
        alone = [error * _student(df, 1 - alpha / 2) for error, df in sources if error > 0]
        if len(alone) < 2:
            return sum(alone)
        cochran = (self.rows * alone[0] + self.seeds * alone[1]) / self.total
        return max(cochran, *alone)

    def p_value(self, difference: float) -> float:
        """Return the level at which the interval of a difference would end at zero."""
        if abs(difference) <= _ROUNDING:
            return 1.0
        if self.total == 0:
            return 0.0

        def excess(deviations: float) -> float:
            return self.half_width(2 * float(ndtr(-deviations))) - abs(difference)

        if excess(0.0) >= 0:  # with no degree of freedom every interval is infinite
            return 1.0
        is_beyond = excess(_FARTHEST) <= 0
        return float(2 * ndtr(-(_FARTHEST if is_beyond else brentq(excess, 0.0, _FARTHEST, xtol=1e-12))))

    def detectable(self, alpha: float, *, power: float = 0.8) -> float:
        """Return the smallest true difference that a test at level ``alpha`` finds with this probability."""
        if self.total == 0:
            return 0.0
        loose = self.rows**4 / max(self.rows_df, 1.0) + self.seeds**4 / self.seeds_df
        df = self.total**4 / loose if loose > 0 else np.inf
        return self.half_width(alpha) + _student(df, power) * self.total


def _student(df: float, probability: float) -> float:
    """Return a quantile of Student's distribution; with no degree of freedom nothing is known."""
    if df < 1:
        return np.inf
    return float(ndtri(probability) if np.isinf(df) else stdtrit(df, probability))


def error_over_seeds(values: Sequence[float], draws: Sequence[Array], n_units: int) -> StandardError:
    """Return the standard error of a mean over seeds.

    Args:
        values: One per seed: a metric, or a difference of two methods.
        draws: How far resamples of the rows move them, ``(n_resamples,)`` per seed, with the same resamples for all.
        n_units: How many rows or clusters were resampled.

    Example:
        >>> draws = [np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0])]
        >>> error = error_over_seeds([1.0, 3.0], draws, 100)  # no row moves both: only the seeds are left
        >>> error.rows, error.seeds, error.seeds_df
        (0.0, 1.0, 1.0)
    """
    table, n_seeds = np.asarray(draws, dtype=np.float64), len(values)
    df = float(min(n_units, table.shape[1]) - 1)
    single = float(table.var(axis=1, ddof=1).mean()) if df >= 1 else 0.0
    rows, seeds, seeds_df = single, 0.0, np.inf
    if n_seeds > 1:
        joint = float(table.mean(axis=0).var(ddof=1)) if df >= 1 else 0.0
        rows = max(0.0, (n_seeds * joint - single) / (n_seeds - 1))
        seeds, seeds_df = seed_error(values), float(n_seeds - 1)
    # A bootstrap of few units is too narrow by this factor.
    return StandardError(float(np.sqrt(rows * n_units / max(1, n_units - 1))), df, seeds, seeds_df)


def seed_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean over seeds that their scatter gives; zero for one seed.

    Example:
        >>> seed_error([1.0, 3.0]), seed_error([1.0])
        (1.0, 0.0)
    """
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def one_run_error(score: Score, level: float) -> float:
    """Return the standard error behind the interval of one run's score.

    Example:
        >>> round(one_run_error(Score(0.5, 0.402, 0.598), 0.95), 3)
        0.05
    """
    return (score.high - score.low) / (2 * float(ndtri((1 + level) / 2)))


def shared_draws(metric: str, runs: Sequence[RowDraws | None]) -> list[Array]:
    """Return a metric of several runs in the resamples that they share; nothing if they share none.

    Example:
        >>> shared_draws("ece", [None])
        []
    """
    known = [run for run in runs if run is not None and metric in run.draws]
    is_shared = len(known) == len(runs) and len({run.plan for run in known}) == 1
    return [run.draws[metric] for run in known] if is_shared else []


def mean_over_seeds(
    metric: str, scores: Sequence[Score], *, level: float = 0.95, draws: Sequence[RowDraws | None] = ()
) -> Score:
    """Return the mean of a metric over seeds, with an interval for other trainings and other rows.

    Args:
        metric: Key of the metric.
        scores: One per seed. A single one is returned as it is: its interval is for other rows only.
        level: Level of the interval.
        draws: What each run scored in shared resamples of the rows. Without them the error of one run's rows is taken
            to be the same for all runs, which makes the interval a little wider.

    Example:
        >>> mean_over_seeds("ece", [Score(0.25, 0.2, 0.3)]).value
        0.25
        >>> both = mean_over_seeds("accuracy", [Score(0.8, 0.79, 0.81), Score(0.82, 0.81, 0.83)])
        >>> round(both.value, 3), round(both.high, 3)
        (0.81, 0.937)
    """
    if len(scores) == 1:
        return scores[0]
    values, alpha = [score.value for score in scores], 1 - level
    value, facts = float(np.mean(values)), metric_facts(metric)
    drawn = shared_draws(metric, draws) if len(draws) == len(scores) else []
    if drawn and draws[0] is not None:
        error = error_over_seeds(values, drawn, draws[0].plan.n_units)
        below = above = error.half_width(alpha)
        if facts.is_error:
            below, above = _skewed(
                value, value + np.asarray(drawn, dtype=np.float64).mean(axis=0), error, alpha
            )
    else:
        seeds, df = seed_error(values), len(values) - 1.0
        below, above = (
            StandardError(
                float(np.mean(reach)) / _student(np.inf, 1 - alpha / 2), np.inf, seeds, df
            ).half_width(alpha)
            for reach in ([s.value - s.low for s in scores], [s.high - s.value for s in scores])
        )
    return Score(value, max(facts.low, value - below), min(facts.high, value + above))


def _skewed(value: float, draws: Array, error: StandardError, alpha: float) -> tuple[float, float]:
    """Return how far the interval of a calibration error reaches down and up: chance pushes it up, never down."""
    scatter = float(draws.std(ddof=1))
    shrunk = draws.mean() + (draws - draws.mean()) * (error.rows / scatter if scatter > 0 else 0.0)
    low, high = error_interval(value, shrunk, None, level=1 - alpha)
    below, above = (
        StandardError(
            reach / _student(np.inf, 1 - alpha / 2), error.rows_df, error.seeds, error.seeds_df
        ).half_width(alpha)
        for reach in (value - low, high - value)
    )
    return below, above
