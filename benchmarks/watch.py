"""Monitors over a year: how often they alarm without a reason, and how soon after a shift.

Run: python benchmarks/watch.py [--repeats 200]

Every day has 500 labelled rows with confidences uniform from 0.6 to 1. Without a shift, outcomes are as frequent as
claimed. A fixed-level test looks at each day by itself (two-sided z-test at 5%).

A second table shows intervals for accuracy from few labels: how often they contain the truth, and their width relative
to intervals from the labelled rows alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from equipoise import Predictions
from equipoise.decisions import powered_rate
from equipoise.decisions.monitor import SHIFTS

ALPHA, ROWS, DAYS, GROUPS = 0.05, 500, 365, 20
BOTH = np.concatenate([-SHIFTS[::-1], SHIFTS])


def daily_growth(
    outcome: np.ndarray, claimed: np.ndarray, shifts: np.ndarray, member: np.ndarray, n_members: int
) -> np.ndarray:
    """Return the growth of the logarithm of wealth ``(members, bettors)`` in one day."""
    growth = shifts * outcome[:, None] - np.log1p(claimed[:, None] * np.expm1(shifts))
    total = np.zeros((n_members, len(shifts)))
    np.add.at(total, member, growth)
    return total


def first_alarm(growth: np.ndarray, alpha: float) -> int | None:
    """Return the first day on which the mean wealth of all members reaches the limit."""
    wealth = logsumexp(np.cumsum(growth, axis=0), axis=(1, 2)) - np.log(growth.shape[1] * growth.shape[2])
    hit = np.flatnonzero(wealth >= -np.log(alpha))
    return int(hit[0]) if len(hit) else None


def one_year(rng: np.random.Generator, shift: float, start: int, days: int) -> dict[str, int | None]:
    names = ("calibration", "groups", "promise", "accuracy")
    growth: dict[str, list[np.ndarray]] = {name: [] for name in names}
    fixed = None
    for day in range(days):
        claimed = rng.uniform(0.6, 1, ROWS)
        right = rng.random(ROWS) < np.clip(claimed - (shift if day >= start else 0.0), 0, 1)
        group = rng.integers(0, GROUPS, ROWS)
        outcome, all_rows = right.astype(float), np.zeros(ROWS, int)
        growth["calibration"].append(daily_growth(outcome, claimed, BOTH, all_rows, 1))
        growth["groups"].append(daily_growth(outcome, claimed, BOTH, group, GROUPS))
        # Predictions above 0.9 are accepted, of which 5% are wrong; the accuracy is 80%.
        wrong, kept = 1 - outcome, claimed >= 0.9
        limit = np.full(ROWS, 0.05)
        growth["promise"].append(daily_growth(wrong[kept], limit[kept], SHIFTS, all_rows[kept], 1))
        growth["accuracy"].append(daily_growth(wrong, np.full(ROWS, 0.2), SHIFTS, all_rows, 1))
        z = (outcome - claimed).sum() / np.sqrt((claimed * (1 - claimed)).sum())
        if fixed is None and abs(z) > 1.96 and day >= start:
            fixed = day
    found = {name: first_alarm(np.array(one), ALPHA) for name, one in growth.items()}
    return {**found, "daily test": fixed}


def print_alarms(repeats: int) -> None:
    names = ("calibration", "groups", "promise", "accuracy", "daily test")
    print(
        f"{repeats} years of {DAYS} days, {ROWS} rows a day, alpha {ALPHA:.0%}. False alarms in percent of years:"
    )
    years = [one_year(np.random.default_rng([0, seed]), 0.0, 0, DAYS) for seed in range(repeats)]
    for name in names:
        rate = np.mean([year[name] is not None for year in years])
        print(f"  {name:12}{100 * rate:8.1f}", flush=True)
    print("\nMedian delay in days after a shift on day 30 (and alarms before it, in percent):")
    print(f"{'points':>8}" + "".join(f"{name:>20}" for name in names))
    for shift in (0.03, 0.05, 0.1):
        years = [one_year(np.random.default_rng([1, seed]), shift, 30, 90) for seed in range(repeats)]
        cells = []
        for name in names:
            days = [year[name] for year in years]
            after = [np.inf if day is None else day - 29 for day in days if day is None or day >= 30]
            early = np.mean([day is not None and day < 30 for day in days])
            cells.append(f"{np.median(after):.0f} ({100 * early:.1f})")
        print(f"{100 * shift:8.0f}" + "".join(f"{one:>20}" for one in cells), flush=True)


def print_few_labels(repeats: int, answers: Path | None) -> None:
    """Print the coverage of intervals on simulated rows, and on files of confidence and correctness."""
    sources: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    rng = np.random.default_rng(0)
    for name, (a, b, power) in {
        "calibrated": (4, 1, 1.0),
        "overconfident": (8, 1, 2.0),
        "weak": (30, 8, 1.0),
    }.items():
        confidence = rng.beta(a, b, 20000)
        sources[name] = (confidence, rng.random(20000) < confidence**power)
    for path in sorted(answers.glob("*.npz"))[:15] if answers is not None else []:
        content = np.load(path)
        sources[path.stem[:40]] = (content["confidence"], content["correct"].astype(bool))
    print("\nAccuracy from few labels, 95% intervals: coverage in percent (width relative to labels alone)")
    sizes = (50, 100, 300, 1000)
    print(f"{'source':42}" + "".join(f"{n:>16}" for n in sizes))
    for name, (confidence, right) in sources.items():
        rows = Predictions(
            predicted=np.ones(len(right), int),
            confidence=confidence,
            labels=right.astype(int),
            ids=np.arange(len(right)),
        )
        cells = []
        for n in sizes:
            hits, ratios = [], []
            for seed in range(repeats):
                order = np.random.default_rng([n, seed]).permutation(len(right))
                found = powered_rate(rows.take(order[:n]), rows.take(order[n:]))
                hits.append(found.low <= right.mean() <= found.high)
                ratios.append(found.width_ratio)
            cells.append(f"{100 * np.mean(hits):.1f} ({np.mean(ratios):.2f})")
        print(f"{name:42}" + "".join(f"{one:>16}" for one in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--answers", type=Path, help="folder of .npz files with `confidence` and `correct`")
    parser.add_argument("--skip-alarms", action="store_true")
    arguments = parser.parse_args()
    if not arguments.skip_alarms:
        print_alarms(arguments.repeats)
    print_few_labels(arguments.repeats, arguments.answers)


if __name__ == "__main__":
    main()
