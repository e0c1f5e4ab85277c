"""Trials of the statistics: each simulates data with known truth once and reports what was wrong or found.

A trial takes a random generator and returns numbers by name. Averages over many trials are levels, powers and
coverages: ``benchmarks/statistics.py`` prints them, and tests hold them against bounds.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Literal

import numpy as np
from scipy.stats import ttest_rel

from equipoise import compare, compare_seeds, score
from equipoise.evaluate import Limit, check_limits, check_not_worse, compare_states, score_by_class
from equipoise.evaluate.differences import correct_family, paired_difference
from equipoise.evaluate.slices import SliceSums, slices_off
from equipoise.experiments.results.tables import TableRow
from equipoise.metrics import CalibrationState
from helpers.simulated_trainings import (
    METRICS,
    ROWS_DOMINATED,
    SEEDS_DOMINATED,
    Method,
    Source,
    calibrated_rows,
    draw_trainings,
    make_table,
    resample,
    true_scores,
    true_values,
)

SEEDS = (1, 2, 3, 5, 10)


def null_tables(
    rng: np.random.Generator,
    *,
    sources: tuple[Source, ...] = (ROWS_DOMINATED, SEEDS_DOMINATED),
    seeds: tuple[int, ...] = SEEDS,
    methods: tuple[int, ...] = (2, 6),
    factors: tuple[float, ...] = (1.0, 4.0),
) -> dict[tuple[object, ...], float]:
    """Compare methods that are equal: every verdict is false, and every interval should hold the truth.

    Fewer seeds and methods are the first of the same trainings, and only the noisier method is drawn anew.

    Returns:
        ``(what, source, seeds, methods, factor, metric)``: whether a table has a ``verdict`` about methods, a verdict
        about ``networks``, a method that is a ``loser``, and for the ``mean`` of a method whether its interval holds
        the truth.
    """
    truth = true_values(Method())
    found: dict[tuple[object, ...], float] = {}
    for source in sources:
        noisy = [Method(factor=factor) for factor in factors if factor != 1]
        drawn = resample(
            draw_trainings(rng, [Method()] * max(methods) + noisy, n_seeds=max(seeds), source=source)
        )
        others = drawn[: max(methods)]
        for n_seeds, n_methods, factor in itertools.product(seeds, methods, factors):
            place = 1 if factor == 1 else max(methods) + [one.factor for one in noisy].index(factor)
            parts = [others[0], drawn[place], *others[2:n_methods]]
            table = make_table([part[:n_seeds] for part in parts])
            for metric in METRICS:
                key = (source.name, n_seeds, n_methods, factor, metric)
                words = {row.versus[metric] for row in table.rows}
                marks = {row.marks[metric] for row in table.rows}
                found["verdict", *key] = bool(words & {"better", "worse"})
                found["networks", *key] = bool(words & {"network better", "network worse"})
                found["loser", *key] = n_seeds > 1 and "" in marks
                if n_methods == min(methods) and n_seeds > 1:
                    cell = table.rows[1].cells[metric]
                    found["mean", *key] = cell.low <= truth[metric] <= cell.high
    return found


# Many rows and no shared choice of rows: noise that a t-test over seeds accounts for in full.
_SEEDS_ONLY = Source("seeds only", 0.0, 0.045)
_POWER_SHIFT = {3: 0.2, 5: 0.1, 10: 0.057}


def power_against_t_test(
    rng: np.random.Generator, *, seeds: tuple[int, ...] = (3, 5, 10), n_rows: int = 2000
) -> dict[tuple[object, ...], float]:
    """Compare two methods that differ, beside a paired t-test on the scores of the seeds, which ignores the rows.

    Returns:
        ``(test, source, seeds, metric)``: whether ``ours`` or the ``t-test`` finds the difference, where noise is from
        ``seeds only``; and for equal methods in the rows-dominated case whether they call them different (``null``).
    """
    found: dict[tuple[object, ...], float] = {}
    for n_seeds in seeds:
        cases = [(_SEEDS_ONLY, Method(0.5 + _POWER_SHIFT[n_seeds]), "seeds only")]
        cases += [(ROWS_DOMINATED, Method(), "null, rows")]
        for source, other, name in cases:
            drawn = resample(
                draw_trainings(rng, [Method(), other], n_seeds=n_seeds, source=source, n_rows=n_rows)
            )
            for metric in METRICS:
                one = paired_difference(metric, *drawn)
                first, second = ([part.values[metric] for part in parts] for parts in drawn)
                found["ours", name, n_seeds, metric] = one.verdict != "tie"
                found["t-test", name, n_seeds, metric] = ttest_rel(first, second).pvalue < 0.05
    return found


# The baseline first: no method differs from it, two of five do, and four of five do.
_FAMILIES = {
    "none": (0.5, 0.5, 0.5, 0.5, 0.5, 0.5),
    "two": (0.5, 0.4, 0.5, 0.5, 0.5, 0.62),
    "four": (0.5, 0.38, 0.45, 0.5, 0.55, 0.62),
}


def families(
    rng: np.random.Generator,
    *,
    sources: tuple[Source, ...] = (ROWS_DOMINATED, SEEDS_DOMINATED),
    seeds: tuple[int, ...] = (2, 3, 5, 10),
    factors: tuple[float, ...] = (1.0, 4.0),
) -> dict[tuple[object, ...], float]:
    """Compare five methods with a baseline, from which ``none``, ``two`` or ``four`` differ.

    Returns:
        ``(what, differing, source, factor, seeds, metric)``, where the fourth method, which does not differ, scatters
        by the factor more. With none: whether all intervals hold the truth ``at once``. Otherwise: the share of
        intervals that hold it (``each``), the share of calls whose interval does not (``false coverage``), the share
        of calls of methods that do not differ (``false discovery``), and the share of differences found (``power``).
    """
    found: dict[tuple[object, ...], float] = {}
    for (name, shares), source, factor in itertools.product(_FAMILIES.items(), sources, factors):
        methods = [Method(share, factor if number == 3 else 1.0) for number, share in enumerate(shares)]
        truth = [true_values(method) for method in methods]
        differs = np.array([share != shares[0] for share in shares[1:]])
        drawn = resample(draw_trainings(rng, methods, n_seeds=max(seeds), source=source))
        for n_seeds, metric in itertools.product(seeds, METRICS):
            parts = [part[:n_seeds] for part in drawn]
            rows = correct_family([paired_difference(metric, parts[0], part) for part in parts[1:]])
            true = [one[metric] - truth[0][metric] for one in truth[1:]]
            holds = np.array([row.low <= one <= row.high for row, one in zip(rows, true, strict=True)])
            called = np.array([row.verdict != "tie" for row in rows])
            key, calls = (name, source.name, factor, n_seeds, metric), max(1, int(called.sum()))
            if name == "none":
                found["at once", *key] = bool(holds.all())
                continue
            found["each", *key] = float(holds.mean())
            found["false coverage", *key] = float((called & ~holds).sum() / calls)
            found["false discovery", *key] = float((called & ~differs).sum() / calls)
            found["power", *key] = float(called[differs].mean())
    return found


def single_scorecards(
    rng: np.random.Generator,
    *,
    cases: tuple[tuple[int, float], ...] = ((100, 1.6), (1000, 1.0), (1000, 1.2), (1000, 1.6)),
) -> dict[tuple[object, ...], float]:
    """Score one network with known truth.

    Returns:
        ``(what, rows, sharpness, metric)``: whether the interval is ``inside``: holds the truth; whether a gate with
        its limit at the truth passes (``gate``), which half of the misses may do; and for a calibrated network whether
        the ``consistency`` test calls it miscalibrated.
    """
    found: dict[tuple[object, ...], float] = {}
    for n_rows, sharpness in cases:
        card = score(calibrated_rows(rng, n_rows, sharpness=sharpness))
        truth = true_scores(sharpness)
        for metric, true in truth.items():
            one = card[metric]
            found["inside", n_rows, sharpness, metric] = one.low - 1e-9 <= true <= one.high + 1e-9
            side: Literal["min", "max"] = "min" if metric == "accuracy" else "max"
            if metric != "confidence_gap" and true > 0:
                gate = check_limits(card, [Limit(metric, side, true)])[0]
                found["gate", n_rows, sharpness, metric] = gate.passed
        if sharpness == 1:
            found["consistency", n_rows, sharpness, "ece"] = card.consistency.p_value < 0.05
    return found


def equal_networks(rng: np.random.Generator) -> dict[tuple[object, ...], float]:
    """Compare two networks that are equal in expectation on the same rows.

    Returns:
        ``(what, metric)``: whether they are called ``different``, a gate ``not worse`` fails, and a gate with a margin
        passes although the second is worse by just that ``margin``.
    """
    source = Source("", 0.95, 0.0)
    first, second, worse = (
        part[0]
        for part in draw_trainings(
            rng, [Method(), Method(), Method(0.6)], n_seeds=1, source=source
        ).predictions()
    )
    equal = compare(first, second, n_bins=10, metrics=METRICS, n_resamples=200)
    unequal = compare(first, worse, n_bins=10, metrics=METRICS, n_resamples=200)
    found: dict[tuple[object, ...], float] = {}
    for metric in METRICS:
        lost = abs(true_values(Method(0.6))[metric] - true_values(Method())[metric])
        found["different", metric] = equal.of(metric).verdict != "tie"
        found["not worse", metric] = not check_not_worse(equal, [(metric, None)])[0].passed
        found["margin", metric] = check_not_worse(unequal, [(metric, lost)])[0].passed
    return found


def calibrated_slices(rng: np.random.Generator) -> dict[tuple[object, ...], float]:
    """Look at the slices of a calibrated network: is any of them flagged?

    Returns:
        ``(rows, slices)``.
    """
    found: dict[tuple[object, ...], float] = {}
    for n_rows, n_groups in ((1000, 20), (1000, 200)):
        rows = calibrated_rows(rng, n_rows)
        groups = SliceSums()
        groups.update(rows, rng.integers(n_groups, size=n_rows))
        found[n_rows, f"{n_groups} groups"] = bool(slices_off(groups.slices()))
        found[n_rows, "4 classes"] = bool(slices_off(score_by_class(rows)))
    return found


def two_states(
    rng: np.random.Generator,
    *,
    cases: tuple[tuple[int, float, int, float], ...] = (
        (1000, 1.6, 1000, 1.6),
        (4000, 1.6, 200, 1.6),
        (4000, 1.0, 50, 1.0),
        (1000, 1.2, 1000, 1.6),
        (2000, 1.0, 300, 1.6),
        (300, 1.0, 2000, 1.6),
    ),
) -> dict[tuple[object, ...], float]:
    """Compare states of different rows.

    Returns:
        ``(what, rows, sharpness, rows, sharpness, metric)``: whether equal states are called ``different``, and whether
        the interval is ``inside``: holds the true difference.
    """
    found: dict[tuple[object, ...], float] = {}
    for case in cases:
        states = [
            CalibrationState.of(calibrated_rows(rng, rows, sharpness=sharpness))
            for rows, sharpness in (case[:2], case[2:])
        ]
        truth = [true_scores(sharpness) for sharpness in (case[1], case[3])]
        differences = compare_states(*states, n_resamples=200)
        for metric in ("accuracy", "nll", "brier", "ece", "confidence_gap"):
            one, true = differences.of(metric), truth[1][metric] - truth[0][metric]
            if case[1] == case[3]:
                found["different", *case, metric] = one.verdict != "tie"
            found["inside", *case, metric] = one.low <= true <= one.high
    return found


@cache
def _printed_detectable(source: Source, n_seeds: int, metric: str, pilots: int = 60) -> float:
    """Return the median detectable difference that comparisons of two equal methods print."""
    rng = np.random.default_rng(1)
    drawn = [
        resample(draw_trainings(rng, [Method(), Method()], n_seeds=n_seeds, source=source))
        for _ in range(pilots)
    ]
    return float(np.median([paired_difference(metric, *one).detectable() for one in drawn]))


def detectable_differences(
    rng: np.random.Generator, *, metric: str = "nll"
) -> dict[tuple[object, ...], float]:
    """Compare two methods that differ by as much as a comparison calls detectable: is the difference found?

    Returns:
        ``(source, seeds)``.
    """
    found: dict[tuple[object, ...], float] = {}
    slope = true_values(Method(1.0))[metric] - true_values(Method(0.0))[metric]
    for source, n_seeds in itertools.product((ROWS_DOMINATED, SEEDS_DOMINATED), (3, 5, 10)):
        shift = _printed_detectable(source, n_seeds, metric) / slope
        drawn = resample(
            draw_trainings(rng, [Method(0.45), Method(0.45 + shift)], n_seeds=n_seeds, source=source)
        )
        found[source.name, n_seeds] = paired_difference(metric, *drawn).verdict != "tie"
    return found


def whole_path(rng: np.random.Generator) -> dict[tuple[object, ...], float]:
    """Compare methods by :func:`equipoise.compare_seeds`, as users do.

    Returns:
        ``(what, metric)``: whether equal methods get a ``verdict``; and whether verdict, marks and intervals ``agree``
        with those of :func:`make_table`, from which the other trials read theirs.
    """
    trainings = draw_trainings(rng, [Method()] * 3, n_seeds=3, source=SEEDS_DOMINATED)
    quick = make_table(resample(trainings))
    named = {f"method {number}": part for number, part in enumerate(trainings.predictions())}
    table = compare_seeds(named, metrics=METRICS, n_bins=10, n_resamples=200).table
    found: dict[tuple[object, ...], float] = {}
    for metric in METRICS:
        found["verdict", metric] = any(row.versus[metric] in ("better", "worse") for row in table.rows)
        found["agree", metric] = all(
            (one.versus[metric], one.marks[metric]) == (other.versus[metric], other.marks[metric])
            and np.allclose(_ends(one, metric), _ends(other, metric), atol=1e-7)
            for one, other in zip(table.rows, quick.rows, strict=True)
        )
    return found


def _ends(row: TableRow, metric: str) -> list[float]:
    cell, one = row.cells[metric], row.differences.get(metric)
    return [cell.low, cell.high, *([one.low, one.high] if one else [])]
