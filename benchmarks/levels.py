"""How far verdicts and intervals can be trusted: levels, powers and coverages by simulation with known truth.

Run: python benchmarks/statistics.py [--repeats 1000] [--quick] [--only level power ...] [--workers 2]

Every table is in percent, names its bar, and lists the cells that miss it. Bars are for 1,000 repetitions or more: a
share of 5% then has a standard error of 0.7 points. ``--quick`` runs 40 repetitions, to see that everything works.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from helpers import statistics_trials as trials

Key = tuple[object, ...]
Shares = dict[Key, float]


def _task(job: tuple[str, range]) -> list[Shares]:
    name, repetitions = job
    return [getattr(trials, name)(np.random.default_rng([2024, number])) for number in repetitions]


def average(name: str, repeats: int, *, workers: int) -> Shares:
    """Run a trial many times and return the mean of every number that it gives, in percent."""
    jobs = [(name, range(start, min(start + 5, repeats))) for start in range(0, repeats, 5)]
    found = defaultdict(list)
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        for results in pool.map(_task, jobs):
            for one in results:
                for key, value in one.items():
                    found[key].append(float(value))
    return {key: 100 * float(np.mean(values)) for key, values in found.items()}


def show(title: str, cells: Shares, heads: Sequence[str], *, bar: tuple[float, float] = (-1, 101)) -> None:
    """Print cells by all but the last part of their keys in rows and by the last in columns, and those off the bar."""
    columns = list(dict.fromkeys(key[-1] for key in cells))
    rows = dict.fromkeys(key[:-1] for key in cells)
    lines = [[*heads, *map(str, columns)]]
    for row in rows:
        values = [cells.get((*row, column)) for column in columns]
        lines.append([*map(str, row), *("" if value is None else f"{value:.1f}" for value in values)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(f"\n{title}")
    for line in lines:
        print("  " + "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    if bar != (-1, 101):
        misses = [
            f"{' '.join(map(str, key))}: {v:.1f}" for key, v in cells.items() if not bar[0] <= v <= bar[1]
        ]
        print(f"  {'FAIL' if misses else 'pass'}: bar {bar[0]:g} to {bar[1]:g}%", *misses, sep="\n    ")


def pick(cells: Shares, what: str) -> Shares:
    """Return the cells of one kind, without its name."""
    return {key[1:]: value for key, value in cells.items() if key[0] == what}


LEVEL, COVERAGE = (0.0, 7.0), (93.0, 97.0)


def level(average_of: Callable[[str], Shares]) -> None:
    found = average_of("null_tables")
    heads = ("noise", "seeds", "methods", "factor")
    several = {key: value for key, value in found.items() if key[2] != 1}
    show("Equal methods: tables with any 'better' or 'worse'", pick(several, "verdict"), heads, bar=LEVEL)
    show(
        "Equal methods: tables with a method neither best nor tied", pick(several, "loser"), heads, bar=LEVEL
    )
    one = {key: value for key, value in found.items() if key[2] == 1}
    show("One seed: verdicts about methods", pick(one, "verdict"), heads, bar=(0, 0))
    show("One seed: '(+)' or '(-)' about two networks, which may differ", pick(one, "networks"), heads)
    show("Mean over seeds: intervals that hold the truth", pick(found, "mean"), heads, bar=COVERAGE)


def power(average_of: Callable[[str], Shares]) -> None:
    found = average_of("power_against_t_test")
    show("A true difference, noise from seeds only; equal methods, noise from rows", found, ("", "", "seeds"))
    ratio = {
        key[2:]: 100 * value / max(found["t-test", *key[1:]], 1e-9)
        for key, value in found.items()
        if key[:2] == ("ours", "seeds only") and key[2] in (5, 10)
    }
    show("Power relative to the t-test", ratio, ("seeds",), bar=(90, 1000))


def families(average_of: Callable[[str], Shares]) -> None:
    found = average_of("families")
    heads = ("differ", "noise", "factor", "seeds")
    title = "Five methods against a baseline"
    show(f"{title}: all intervals hold the truth at once", pick(found, "at once"), heads, bar=(93, 100))
    show(f"{title}: share of intervals that hold the truth", pick(found, "each"), heads, bar=(93, 100))
    show(f"{title}: false coverage among calls", pick(found, "false coverage"), heads, bar=LEVEL)
    show(f"{title}: false discoveries among calls", pick(found, "false discovery"), heads, bar=LEVEL)
    show(f"{title}: true differences found", pick(found, "power"), heads)


def scorecards(average_of: Callable[[str], Shares]) -> None:
    found = average_of("single_scorecards")
    heads = ("rows", "sharpness")
    show("One network: intervals that hold the truth", pick(found, "inside"), heads, bar=COVERAGE)
    show("Gate with its limit at the truth: passes", pick(found, "gate"), heads, bar=(0, 4.5))
    show("Consistency test of a calibrated network", pick(found, "consistency"), heads, bar=LEVEL)


def networks(average_of: Callable[[str], Shares]) -> None:
    found = average_of("equal_networks")
    different = {key: value for key, value in found.items() if key[0] == "different"}
    gates = {key: value for key, value in found.items() if key[0] != "different"}
    show("Two equal networks on the same rows", different, ("",), bar=LEVEL)
    show("Gates 'not worse' that decide wrongly", gates, ("",), bar=(0, 4.5))


def slices(average_of: Callable[[str], Shares]) -> None:
    found = average_of("calibrated_slices")
    show("A calibrated network: any slice flagged (Holm)", found, ("rows",), bar=LEVEL)


def states(average_of: Callable[[str], Shares]) -> None:
    found = average_of("two_states")
    heads = ("rows", "sharpness", "rows", "sharpness")
    show("Equal states called different", pick(found, "different"), heads, bar=LEVEL)
    show("State against state: intervals that hold the truth", pick(found, "inside"), heads, bar=(93, 100))


def detectable(average_of: Callable[[str], Shares]) -> None:
    found = average_of("detectable_differences")
    show("Power at the difference called detectable (80%)", found, ("noise",), bar=(70, 90))


def path(average_of: Callable[[str], Shares]) -> None:
    found = average_of("whole_path")
    verdicts = {key: value for key, value in found.items() if key[0] == "verdict"}
    agree = {key: value for key, value in found.items() if key[0] == "agree"}
    show("compare_seeds, 3 equal methods, 3 seeds: tables with a verdict", verdicts, ("",))
    show("compare_seeds agrees with the tables above", agree, ("",), bar=(100, 100))


PARTS = {
    part.__name__: part
    for part in (level, power, families, scorecards, networks, slices, states, detectable, path)
}
#: Parts that are slow, and prove something else than a share: a tenth of the repetitions is enough.
FEWER = ("path",)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=1000, help="repetitions of each trial")
    parser.add_argument("--quick", action="store_true", help="40 repetitions")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    args = parser.parse_args()
    repeats = 40 if args.quick else args.repeats
    for name in args.only:
        start, number = time.perf_counter(), max(1, repeats // 10) if name in FEWER else repeats
        print(f"\n== {name}: {number} repetitions")
        PARTS[name](lambda trial, number=number: average(trial, number, workers=args.workers))
        print(f"\n  {time.perf_counter() - start:.0f} s", flush=True)
