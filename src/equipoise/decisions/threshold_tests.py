r"""Which of many thresholds keep their errors below a limit: an exact closed test of all of them.

Rows are sorted from the highest score to the lowest. A threshold accepts the first ``m`` rows, of which ``K(m)`` are
wrong, and its p-value is the probability that a binomial count with ``m`` trials and the error limit is at most
``K(m)``. Testing walks from the strictest threshold to the most lenient, as long as ``K(m)`` is at most an allowed
number ``x(m)``. A failure at rank ``a`` fixes a level ``c(a)``, lower for every further mistake, and later thresholds
must have a p-value of at most ``c(a) * h(m)``. The last threshold that meets all levels is certified.

Why this is valid. A threshold is bad if its true error exceeds the limit. Rows are independent. If scores are
continuous, bad thresholds form open intervals at whose ends the error equals the limit. So inside each interval, and
between two of them, rows are wrong with the probability of the limit on average (in the last one perhaps more often).
Fix the numbers of rows in all these pieces.

1. Inside a bad interval the error never falls below the limit, so that wrong rows stand higher than right ones:
   draw for each row whether it is wrong, with the probability of the limit, and a random place; moving wrong rows up
   and right rows down, to where they belong, gives their true distribution and raises ``K(m)`` at every rank in it.
2. Hence, at all ranks in bad intervals together, ``K(m)`` is at least a count ``B(m)`` of rows that are wrong
   independently, each with the probability of the limit.
3. Let ``a`` be the first tested rank in a bad interval. A promise is broken only if ``B(a) <= x(a)``, or ``B(m)`` at
   ``a`` or later passes the level that ``B(a)`` leaves: more mistakes never pass more, and good ranks do not matter.
4. A backward recursion over ``B`` computes the probability of this event for every ``a``, and the levels are the
   largest that keep it at or below the risk.

The error curve may cross the limit any number of times, before, at or between tested ranks. With tied scores the tested
ranks are ends of groups, which are random. Fix instead the numbers of rows from the first bad value of the score on:
what is tested at a rank depends on later ranks only, so 3 and 4 hold if later values are wrong at least as often as the
limit. Tied scores whose error crosses the limit several times are covered by simulation (``benchmarks/decisions.py``).

If there are many rows, a part of the risk goes to a second walk that starts at a fixed share of the rows.

Reference:
    Angelopoulos et al. (2021), Learn then test (fixed-sequence testing); Marcus, Peritz, Gabriel (1976), closed tests.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import bdtr, bdtri, bdtrik, gammaln

from equipoise.core.arrays import Array, freeze

__all__ = [
    "RankPlan",
    "choose_ranks",
    "error_upper_bound",
    "fewest_rows",
    "last_certified",
    "plan_tests",
    "rank_p_values",
]

#: All ranks up to this one are tested, then ranks that grow by 1%.
_EVERY_RANK = 300
_GROWTH = 1.01
#: From this many times the fewest rows on, a second walk starts at a share of the rows with a part of the risk.
_MANY, _SECOND_START, _SECOND_SHARE = 60, 0.15, 0.45
#: The walk starts where one mistake may pass, unless that is beyond this share of the rows.
_FIRST_SHARE = 0.24
#: With so few rows, ranks at which the walk alone would use more than this share of the risk are not tested.
_MOST_USED = 0.8
#: The share of the risk that the walk has grows with the rank up to this one.
_MOST_SHARE = 0.8
#: Levels after a failure are fifths of a halving apart, down to 1/512 of the risk.
_HALVING, _LEAST_LEVEL = 5, -45
#: Standard deviations around the mean count that the recursion looks at.
_WIDTH = 9
_ROUNDING = 1 + 1e-12


class RankPlan(NamedTuple):
    """What is tested, fixed before any label is looked at.

    Attributes:
        ranks: Numbers of accepted rows, ascending.
        max_error: Error limit.
        allowed: Largest number of mistakes at each rank with which the walk goes on.
        levels: Level after a failure at each rank by one mistake.
        least_level: Smallest level; below it nothing is certified.
        decay: Factor of the level for every further mistake.
        profile: Largest p-value that is certified at each rank, in units of the level.
        second: Index at which a second walk starts; the number of ranks if there is none.
        second_level: Largest p-value with which the second walk goes on.
    """

    ranks: Array
    max_error: float
    allowed: Array
    levels: Array
    least_level: float
    decay: float
    profile: Array
    second: int
    second_level: float


def fewest_rows(max_error: float, risk: float) -> int:
    """Return how many accepted rows without a mistake certify an error limit: log(risk) / log(1 - max_error).

    Example:
        >>> fewest_rows(0.05, 0.05)
        59
    """
    return math.ceil(math.log(risk) / math.log1p(-max_error) - 1e-9)


def rank_p_values(wrong: Any, ranks: Any, max_error: float) -> Array:
    """Return the probability of so few mistakes among so many rows if each is wrong with probability ``max_error``.

    Example:
        >>> float(rank_p_values(np.array([0]), np.array([59]), 0.05).round(4)[0])
        0.0485
    """
    wrong, ranks = np.broadcast_arrays(wrong, np.asarray(ranks).astype(np.int64))
    result: Array = np.where(wrong >= ranks, 1.0, bdtr(np.minimum(wrong, ranks - 1), ranks, max_error))
    return result


def error_upper_bound(wrong: int, rows: int, risk: float) -> float:
    """Return the one-sided Clopper-Pearson bound of an error rate.

    Example:
        >>> round(error_upper_bound(0, 59, 0.05), 4)
        0.0495
    """
    return 1.0 if wrong >= rows else float(bdtri(wrong, rows, risk))


def choose_ranks(n_rows: int, max_error: float, risk: float) -> Array:
    """Return the ranks to test, for rows without ties; none if there are too few rows.

    Example:
        >>> choose_ranks(1000, 0.05, 0.05)[[0, 1, -1]]
        array([  93,   94, 1000])
    """
    settings = _settings(n_rows, max_error, risk)
    first = settings.first
    ranks = np.arange(first, min(n_rows, _EVERY_RANK) + 1)
    if n_rows > _EVERY_RANK:
        steps = int(math.log(n_rows / _EVERY_RANK) / math.log(_GROWTH)) + 1
        grown = np.round(_EVERY_RANK * _GROWTH ** np.arange(steps)).astype(np.int64)
        ranks = np.unique(np.concatenate([ranks, grown, [n_rows]]))
    ranks = ranks[(ranks >= first) & (ranks <= n_rows)]
    if settings.most_used < 1 and len(ranks):
        # A further mistake has just become possible: the walk leaves little risk for thresholds after a failure.
        allowed = _most_wrong(ranks, max_error, np.full(len(ranks), risk))
        used = rank_p_values(allowed, ranks, max_error) / risk
        ranks = ranks[(used <= settings.most_used) | (allowed == allowed[0]) | (ranks == n_rows)]
    return ranks


class _Settings(NamedTuple):
    """What may be chosen freely before labels are looked at; no choice changes the guarantee.

    Attributes:
        first: Rank at which the walk starts.
        share: Share of the risk that the walk has at its start, at least.
        share_power: Power of the rank with which this share grows.
        profile_power: Power of the rank with which the levels after a failure fall.
        halvings: How often every further mistake halves the level after a failure.
        most_used: Largest share of the risk that the walk may use at a rank; other ranks are not tested.
    """

    first: int
    share: float
    share_power: float
    profile_power: float
    halvings: float
    most_used: float = 1.0


@lru_cache(maxsize=256)
def _settings(n_rows: int, max_error: float, risk: float) -> _Settings:
    """Choose the settings by the number of rows in units of the fewest that could be certified.

    With few rows only the most certain ones can be certified: the walk starts at the first rank that could pass and
    has most of the risk; ranks where it would leave little for thresholds after a failure are not tested. With more
    rows it starts where one mistake may pass. With many rows nearly all of the risk is left for later ranks at first,
    whatever the number of mistakes. The numbers were chosen by simulation.
    """
    fewest = fewest_rows(max_error, risk)
    many = math.log(max(n_rows / fewest, 1.0))
    candidates = np.arange(fewest, min(n_rows, 10 * fewest) + 1)
    passed = rank_p_values(np.minimum(1, candidates), candidates, max_error) <= risk
    one_mistake = int(candidates[passed.argmax()]) if passed.any() else n_rows
    if one_mistake > _FIRST_SHARE * n_rows:
        used = float(np.clip(1.9 - 0.65 * many, 0.5, 0.95)) if many > 1.1 else 1.0
        return _Settings(fewest_rows(max_error, risk * used), 1.0, 0.0, 0.6, 2.0, _MOST_USED)
    if many < 2.05:
        return _Settings(one_mistake, 1.0, 0.0, 1.0, 4.0)
    if many < 2.6:
        share, profile_power, halvings = (
            float(np.interp(many, (2.05, 2.21, 2.43), one))
            for one in ((0.8, 0.8, 0.4), (1.0, 0.75, 1.15), (2.2, 1.6, 0.15))
        )
        return _Settings(one_mistake, share, 0.35, profile_power, halvings)
    return _Settings(one_mistake, 0.19, 0.6, 0.1, 0.0)


def plan_tests(ranks: Any, n_rows: int, max_error: float, risk: float) -> RankPlan:
    """Fix the tests for some ranks.

    Args:
        ranks: Numbers of accepted rows, ascending, from :func:`choose_ranks` or the ends of groups of equal scores.
        n_rows: Number of labelled rows.
        max_error: Error limit.
        risk: Probability with which a certified threshold may break the limit.

    Returns:
        The plan; its first rank is the first at which the walk could pass.

    Example:
        >>> plan = plan_tests(choose_ranks(500, 0.1, 0.05), 500, 0.1, 0.05)
        >>> plan.ranks[:2], plan.allowed[:2], (plan.levels[:2] / 0.05).round(2)
        (array([46, 47]), array([0, 0]), array([0.19, 0.19]))
    """
    return _plan(np.asarray(ranks, np.int64).tobytes(), int(n_rows), float(max_error), float(risk))


@lru_cache(maxsize=256)
def _plan(packed: bytes, n_rows: int, max_error: float, risk: float) -> RankPlan:
    settings, fewest = _settings(n_rows, max_error, risk), fewest_rows(max_error, risk)
    ranks = np.frombuffer(packed, np.int64)
    ranks = ranks[ranks >= settings.first]
    has_second = n_rows >= _MANY * fewest
    second = int(np.searchsorted(ranks, _SECOND_START * n_rows)) if has_second else len(ranks)
    second_level = _SECOND_SHARE * risk if has_second else 0.0
    walk_risk = risk - second_level
    # The walk has at least this risk at each rank; what later ranks do not use is added.
    share = settings.share * (ranks / settings.first) ** settings.share_power
    least = walk_risk * np.minimum(share, max(settings.share, _MOST_SHARE))
    profile = (fewest / ranks) ** settings.profile_power
    most = math.ceil(-_HALVING * math.log2(profile.min(initial=1.0)))
    levels = walk_risk * 2.0 ** (np.arange(_LEAST_LEVEL, most + 1) / _HALVING)
    step = round(_HALVING * settings.halvings)
    allowed, found = _exact_levels(ranks, max_error, walk_risk, least, profile, levels, step)
    return RankPlan(
        freeze(ranks),
        max_error,
        freeze(allowed),
        freeze(found),
        float(levels[0]),
        2.0 ** (-step / _HALVING),
        freeze(profile),
        second,
        second_level,
    )


def _exact_levels(
    ranks: Array, max_error: float, risk: float, least: Array, profile: Array, levels: Array, step: int
) -> tuple[Array, Array]:
    """Return the mistakes allowed in the walk and the level after a failure, at each rank.

    Backward over the ranks, ``later[c, k]`` is the probability that this or a later rank passes level ``c``, given
    ``k`` mistakes now and errors at the limit. Every further mistake lowers the level by ``step`` places.
    """
    bound = _most_wrong(ranks, max_error, levels[:, None] * profile)
    allowed, found = _most_wrong(ranks, max_error, least), np.zeros(len(ranks))
    low, high = _window(ranks, max_error)
    later = np.zeros((len(levels), 0))
    for at in range(len(ranks) - 1, -1, -1):
        counts = np.arange(low[at], high[at] + 1)
        if at < len(ranks) - 1:
            later = _step_back(
                later, low[at : at + 2], high[at : at + 2], ranks[at + 1] - ranks[at], max_error
            )
        else:
            later = np.zeros((len(levels), len(counts)))
        later = np.where(counts <= bound[:, at, None], 1.0, later)
        mass = _binomial_mass(counts, ranks[at], max_error)
        every = np.arange(len(levels))
        within = _risk_at(allowed[at], counts, mass, later, every, step) <= risk * _ROUNDING
        if within.any():
            chosen = int(np.flatnonzero(within)[-1])
            found[at] = levels[chosen]
            while (
                _risk_at(allowed[at] + 1, counts, mass, later, every[chosen : chosen + 1], step)[0]
                <= risk * _ROUNDING
            ):
                allowed[at] += 1
    return allowed, found


def _risk_at(allowed: int, counts: Array, mass: Array, later: Array, levels: Array, step: int) -> Array:
    """Return the probability of passing now, or later after more mistakes, for some levels after the first of them."""
    more = counts - allowed - 1
    level = levels[:, None] - step * np.maximum(more, 0)
    passes = np.where(level >= 0, later[np.maximum(level, 0), np.arange(len(counts))], 0.0)
    result: Array = np.where(more < 0, 1.0, passes) @ mass
    return result


def _most_wrong(ranks: Array, max_error: float, level: Array) -> Array:
    """Return the largest number of mistakes with a p-value of at most a level per rank; -1 if there is none."""
    # The inverse knows no level above 1, which every count passes.
    inverse = np.where(level < 1, bdtrik(np.minimum(level, 1.0), ranks, max_error), ranks)
    count = np.floor(np.nan_to_num(inverse, nan=-1.0)).astype(np.int64)
    # The inverse is found numerically, so that one more and one less are tried too.
    candidates = np.maximum(np.stack([count + 1, count, count - 1]), -1)
    passed = (candidates >= 0) & (
        rank_p_values(np.maximum(candidates, 0), ranks, max_error) <= level * _ROUNDING
    )
    most: Array = np.where(passed, candidates, -1).max(axis=0)
    return most


def _window(ranks: Array, max_error: float) -> tuple[Array, Array]:
    mean, reach = ranks * max_error, _WIDTH * np.sqrt(ranks * max_error * (1 - max_error)) + 5
    low = np.maximum(0, np.floor(mean - reach)).astype(np.int64)
    return low, np.minimum(ranks, np.ceil(mean + reach)).astype(np.int64)


def _binomial_mass(counts: Array, trials: int, rate: float) -> Array:
    choose = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    mass: Array = np.exp(choose + counts * math.log(rate) + (trials - counts) * math.log1p(-rate))
    return mass


def _step_back(reached: Array, low: Array, high: Array, step: int, max_error: float) -> Array:
    """Return expected values one rank earlier; counts below the window have passed, and those above it never will."""
    (least,), (most,) = _window(np.array([step]), max_error)
    mass = _binomial_mass(np.arange(least, most + 1), step, max_error)
    start, stop = low[0] + least - low[1], high[0] + most - low[1] + 1
    inside = reached[:, max(start, 0) : min(stop, reached.shape[1])]
    padding = (max(-start, 0), max(stop - reached.shape[1], 0))
    wide = np.concatenate(
        [np.ones((len(reached), padding[0])), inside, np.zeros((len(reached), padding[1]))], axis=1
    )
    if len(mass) <= 8:
        width = wide.shape[1] - len(mass) + 1
        return sum(
            (share * wide[:, j : j + width] for j, share in enumerate(mass)), np.zeros((len(wide), width))
        )
    result: Array = fftconvolve(wide, mass[None, ::-1], mode="valid", axes=1)
    return result


def last_certified(wrong: Array, plan: RankPlan) -> Array:
    """Return the index of the last certified rank, or -1.

    Args:
        wrong: Number of mistakes at every rank of the plan ``(..., m)``.
        plan: The tests.

    Returns:
        One index for every row of counts.

    Example:
        >>> plan = plan_tests(choose_ranks(100, 0.1, 0.05), 100, 0.1, 0.05)
        >>> int(plan.ranks[last_certified(np.zeros(len(plan.ranks), int), plan)])
        100
    """
    wrong = np.asarray(wrong)
    best = np.full(wrong.shape[:-1], -1)
    if wrong.shape[-1] == 0:
        return best
    p_values = rank_p_values(wrong, plan.ranks, plan.max_error)
    more = wrong - plan.allowed
    level = np.where(more > 0, plan.levels * plan.decay ** np.maximum(more - 1.0, 0.0), np.inf)
    level = np.minimum.accumulate(np.where(level < plan.least_level / _ROUNDING, 0.0, level), axis=-1)
    certified = p_values <= level * plan.profile * _ROUNDING
    if plan.second < len(plan.ranks):
        worst = np.maximum.accumulate(p_values[..., plan.second :], axis=-1)
        certified[..., plan.second :] |= worst <= plan.second_level * _ROUNDING
    last = wrong.shape[-1] - 1 - np.argmax(certified[..., ::-1], axis=-1)
    return np.where(certified.any(axis=-1), last, best)
