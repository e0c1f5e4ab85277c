"""Monitors over a year: how often they alarm without a reason, and how soon after a shift.

    python benchmarks/watch.py [--years 2000] [--delays 400]

Every day has 500 labelled rows in 20 groups, with confidences from 0.605 to 0.995 in steps of 0.01. Without a shift,
outcomes are exactly as frequent as claimed. Predictions from 0.9 on are accepted: 5% of them are wrong, which is the
promise. The accuracy is 80%, which is the reference. After a shift, outcomes are so many points rarer than claimed: in
all groups, or in one group only. "Together" is the alarm of `DailyMonitor` and `equipoise watch`: the mean evidence of
the five. The others are what each of them would do alone, and "any of them" is the first of these. Compared with a
z-test at 5% that looks at every day by itself.

Rows without labels are compared with 2,000 reference rows every day by `compare_unlabelled`, at 5% per day and at 5%
for 365 looks (`level / 365`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from equipoise import Predictions
from equipoise.decisions import compare_unlabelled
from equipoise.decisions.monitor import BANDS, SHIFTS

ALPHA, ROWS, DAYS, GROUPS = 0.05, 500, 365, 20
BOTH = np.concatenate([-SHIFTS[::-1], SHIFTS])
CLAIMED = np.arange(0.605, 1, 0.01)
NAMES = (
    "calibration",
    "bands",
    "20 groups",
    "promise",
    "accuracy",
    "any of them",
    "together",
    "daily z-test",
)


def growth_of(counts: np.ndarray, right: np.ndarray, claimed: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return the daily growth of every bettor's log-wealth, from rows and right rows by claim (last axis)."""
    return right.sum(axis=-1)[..., None] * shifts - counts @ np.log1p(claimed[:, None] * np.expm1(shifts))


def log_wealth(growth: np.ndarray) -> np.ndarray:
    """Return the logarithm of the mean wealth after each day, over all axes of daily growth but days."""
    growth = growth.reshape(len(growth), -1)
    until, days = np.cumsum(growth, axis=0), np.arange(1, len(growth) + 1)
    fresh = -np.log(days * (days + 1))[:, None] - (until - growth)
    at_stake = until + np.logaddexp.accumulate(fresh, axis=0)
    return np.logaddexp(logsumexp(at_stake, axis=1) - np.log(growth.shape[1]), -np.log(days + 1))


def first_day(wealth: np.ndarray) -> int | None:
    """Return the first day on which the limit is reached."""
    days = np.flatnonzero(wealth >= -np.log(ALPHA))
    return int(days[0]) if len(days) else None


def one_year(
    rng: np.random.Generator, shift: float, start: int, days: int, *, one_group: bool
) -> list[int | None]:
    """Return the day of the first alarm of every monitor; None without one."""
    counts = rng.multinomial(ROWS, np.full(GROUPS * len(CLAIMED), 1 / GROUPS / len(CLAIMED)), size=days)
    counts = counts.reshape(days, GROUPS, len(CLAIMED))
    loss = np.zeros((days, GROUPS, 1))
    loss[start:, : 1 if one_group else GROUPS] = shift
    right = rng.binomial(counts, CLAIMED - loss).astype(float)
    all_counts, all_right = counts.sum(axis=1), right.sum(axis=1)
    band = np.searchsorted(BANDS, CLAIMED, side="right") - 1
    members = [
        growth_of(all_counts[:, band == one], all_right[:, band == one], CLAIMED[band == one], BOTH)
        for one in range(len(BANDS))
    ]
    kept = CLAIMED > 0.9
    wrong, n_kept = (all_counts - all_right), all_counts[:, kept].sum(axis=1, keepdims=True)
    promise = growth_of(n_kept, wrong[:, kept].sum(axis=1, keepdims=True), np.array([0.05]), SHIFTS)
    n_rows = all_counts.sum(axis=1, keepdims=True)
    accuracy = growth_of(n_rows, wrong.sum(axis=1, keepdims=True), np.array([0.2]), SHIFTS)
    wealths = [
        log_wealth(growth_of(all_counts, all_right, CLAIMED, BOTH)),
        log_wealth(np.stack(members, axis=1)),
        log_wealth(growth_of(counts, right, CLAIMED, BOTH)),
        log_wealth(promise),
        log_wealth(accuracy),
    ]
    together = logsumexp(wealths, axis=0) - np.log(len(wealths))
    z = (all_right - all_counts * CLAIMED).sum(axis=1) / np.sqrt(all_counts @ (CLAIMED * (1 - CLAIMED)))
    daily = np.flatnonzero(np.abs(z[start:]) > 1.959964)
    first = [first_day(one) for one in (*wealths, np.max(wealths, axis=0), together)]
    return [*first, start + int(daily[0]) if len(daily) else None]


def print_false_alarms(years: int) -> None:
    found = [
        one_year(np.random.default_rng([0, seed]), 0.0, 0, DAYS, one_group=False) for seed in range(years)
    ]
    print(
        f"{years} years of {DAYS} days, {ROWS} rows a day, alpha {ALPHA:.0%}. Years with a false alarm, in percent:"
    )
    for name, days in zip(NAMES, zip(*found, strict=True), strict=True):
        rate = np.mean([day is not None for day in days])
        print(f"  {name:14}{100 * rate:6.2f} ± {100 * (rate * (1 - rate) / years) ** 0.5:.2f}", flush=True)


def print_delays(repeats: int, start: int) -> None:
    print(
        f"\nMedian delay in days after a shift on day {start + 1} ({repeats} repetitions; - is above 150 days):"
    )
    print(f"{'shift':>22}" + "".join(f"{name:>14}" for name in NAMES))
    for one_group in (False, True):
        for shift in (0.03, 0.05, 0.1):
            years = [
                one_year(np.random.default_rng([1, seed]), shift, start, start + 150, one_group=one_group)
                for seed in range(repeats)
            ]
            cells = []
            for days in zip(*years, strict=True):
                after = [
                    np.inf if day is None else day + 1 - start for day in days if day is None or day >= start
                ]
                cells.append("-" if np.isinf(np.median(after)) else f"{np.median(after):.0f}")
            where = "one group" if one_group else "all"
            print(
                f"{100 * shift:6.0f} points, {where:9}" + "".join(f"{one:>14}" for one in cells), flush=True
            )


def unlabelled_rows(rng: np.random.Generator, shape: tuple[int, ...], moved: float) -> tuple[np.ndarray, ...]:
    """Return confidences, predicted classes and groups."""
    confidence = np.clip(rng.beta(6, 2, shape) - moved, 0.01, 0.99)
    group = rng.choice(GROUPS, shape, p=np.arange(1, GROUPS + 1) / np.arange(1, GROUPS + 1).sum())
    return confidence, rng.integers(0, 10, shape), group


def as_predictions(confidence: np.ndarray, predicted: np.ndarray, group: np.ndarray) -> Predictions:
    return Predictions(predicted=predicted, confidence=confidence, groups={"site": group.astype(str)})


def unlabelled_day(rng: np.random.Generator, n: int, moved: float) -> Predictions:
    return as_predictions(*unlabelled_rows(rng, (n,), moved))


def smallest_p_value(rng: np.random.Generator) -> float:
    """Return the smallest corrected p-value of the days of a year without a shift.

    All days have as many rows, so the smallest p-value of a test is on a day with a large statistic: only the three
    days with the largest of each test are compared.
    """
    reference, days = unlabelled_rows(rng, (2000,), 0.0), unlabelled_rows(rng, (DAYS, ROWS), 0.0)
    new, old = np.sort(days[0], axis=1), np.sort(reference[0])
    share = np.searchsorted(old, new) / len(old)
    steps = np.arange(ROWS + 1) / ROWS
    statistics = [np.maximum(steps[1:] - share, share - steps[:-1]).max(axis=1)]
    for n_values, one, other in ((10, days[1], reference[1]), (GROUPS, days[2], reference[2])):
        codes = np.arange(DAYS)[:, None] * n_values + one
        counts = np.bincount(codes.ravel(), minlength=DAYS * n_values).reshape(DAYS, n_values)
        before = np.bincount(other, minlength=n_values)
        rare = before * ROWS < 10 * len(old)
        counts, before = (
            np.column_stack([one[:, rare].sum(axis=1), one[:, ~rare]]) for one in (counts, before[None])
        )
        # The chi-squared statistic of two rows of counts.
        gap = counts * len(old) - before * ROWS
        statistics.append((gap**2 / np.maximum(counts + before, 1)).sum(axis=1))
    return min(
        min(
            compare_unlabelled(
                as_predictions(*(one[day] for one in days)), as_predictions(*reference)
            ).p_values.values()
        )
        for day in np.unique(np.argsort(statistics, axis=1)[:, -3:])
    )


def print_unlabelled(years: int) -> None:
    print(
        f"\nWithout labels, {years} years of {DAYS} daily looks: years with a false alarm, in percent; median delay:"
    )
    smallest = [smallest_p_value(np.random.default_rng([2, seed])) for seed in range(years)]
    for name, level in (("5% per day", ALPHA), ("5% for 365 looks", ALPHA / DAYS)):
        delays = []
        for moved in (0.03, 0.05, 0.1):
            days = []
            for seed in range(40):
                rng = np.random.default_rng([3, seed])
                reference = unlabelled_day(rng, 2000, 0.0)
                looks = (
                    compare_unlabelled(unlabelled_day(rng, ROWS, moved), reference, level=level).shifted
                    for _ in range(100)
                )
                days.append(1 + next((day for day, shifted in enumerate(looks) if shifted), 100))
            delays.append(f"{100 * moved:.0f} points {np.median(days):.0f}")
        rate = np.mean(np.array(smallest) <= level)
        error = (rate * (1 - rate) / years) ** 0.5
        print(f"  {name:18}{100 * rate:6.2f} ± {100 * error:.2f}   {', '.join(delays)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--years", type=int, default=2000)
    parser.add_argument("--delays", type=int, default=400)
    parser.add_argument("--unlabelled", type=int, default=1000, help="years without labels")
    options = parser.parse_args()
    print_false_alarms(options.years)
    for start in (30, 300):
        print_delays(options.delays, start)
    print_unlabelled(options.unlabelled)


if __name__ == "__main__":
    main()
