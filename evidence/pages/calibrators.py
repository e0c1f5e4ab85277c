"""The page on calibrators other than temperature scaling: what every candidate of the advisor gives on test."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from pages.results import (
    SPACE,
    amount,
    benchmarks,
    count_words,
    difference,
    effect,
    entrants,
    is_run,
    letter,
    mark_of,
    marked,
    rows,
    table,
)

#: The calibrator that is compared with temperature scaling.
FIXED = "sms"
ENSEMBLE = "deep_ensemble(n_members=3)"


@cache
def trials(benchmark: str) -> dict[tuple[str, int], dict[str, dict[str, Any]]]:
    """Return the candidates of every run that the advisor was asked about, by method and seed."""
    found: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for row in rows(f"{benchmark}/advisor.csv"):
        found.setdefault((row["method"], row["seed"]), {})[row["candidate"]] = row
    return found


def is_chosen(row: dict[str, Any]) -> bool:
    """Whether the advisor chose a candidate."""
    return str(row["chosen"]) == "True"


def _nll(benchmark: str, method: str, candidate: str) -> list[float]:
    """Return the NLL on test of a candidate after a method, by seed."""
    runs = [run for (label, _), run in trials(benchmark).items() if label == method]
    return [run[candidate]["test_nll"] for run in runs if candidate in run]


def best_after(benchmark: str, method: str) -> str:
    """Write the NLL of the fixed calibrator against that of temperature scaling; nothing if it was not run."""
    found = [_nll(benchmark, method, candidate) for candidate in (FIXED, "temperature")]
    if not all(found):
        return ""
    return f"{letter(benchmark)}: {np.mean(found[0]):.4f} against {np.mean(found[1]):.4f}"


def chosen_words(known: Sequence[str]) -> str:
    """Write how often the advisor chose the fixed calibrator after cross-entropy."""
    parts = []
    for benchmark in known:
        runs = [run for (label, _), run in trials(benchmark).items() if label == "ce"]
        taken = sum(is_chosen(run[FIXED]) for run in runs)
        parts.append(f"{taken} of {len(runs)} runs in {letter(benchmark)}")
    return (
        f"All were fitted on `calib` and judged on `test`; cross-validation on `calib` chose `{FIXED}` in "
        f"{', '.join(parts)}."
    )


def lower_words(known: Sequence[str]) -> str:
    """Write in how many runs the fixed calibrator has a lower NLL on test than temperature scaling."""
    gaps = [
        run[FIXED]["test_nll"] - run["temperature"]["test_nll"]
        for benchmark in known
        for run in trials(benchmark).values()
    ]
    return f"{sum(gap < 0 for gap in gaps)} of {len(gaps)} runs"


def calibrators() -> str:
    """Write what calibrators other than temperature scaling give."""
    known = [benchmark for benchmark in benchmarks() if is_run(benchmark) and trials(benchmark)]
    parts = [
        "# Calibrators",
        "",
        "Cross-entropy with temperature scaling is hard to beat by another loss. It is not hard to beat by another "
        "calibrator. The advisor chooses a calibrator by cross-validation on `calib`. The tables show what every "
        "candidate gives on `test`, so the lowest number of a column is not the result of a choice.",
        "",
        chosen_words(known),
        "",
        "## After cross-entropy",
        "",
        "Mean NLL on `test` over seeds. In parentheses: in how many of the runs the advisor chose this calibrator.",
        "",
        *_after("ce", known),
    ]
    with_ensemble = [benchmark for benchmark in known if _nll(benchmark, ENSEMBLE, FIXED)]
    if with_ensemble:
        parts += [
            "## After an ensemble",
            "",
            "The same after the mean of three networks.",
            "",
            *_after(ENSEMBLE, with_ensemble),
        ]
    parts += [
        "## Over all methods",
        "",
        "Runs of all methods and seeds in which a calibrator has a lower NLL on `test` than temperature scaling, and "
        "the mean difference over these runs. Runs of one benchmark share their rows, so these are counts and not a "
        "test.",
        "",
        *_over_runs(known),
        "## Tested",
        "",
        "The advisor's choice against temperature scaling, by the paired test of [Losses](losses.md), after each "
        "method.",
        "",
        *(f"- {letter(benchmark)}: {_tested(benchmark)}" for benchmark in known),
        "",
        *(line for benchmark in known for line in _fresh(benchmark)),
    ]
    return "\n".join(parts)


def _after(method: str, known: Sequence[str]) -> list[str]:
    names = list(
        dict.fromkeys(name for benchmark in known for run in trials(benchmark).values() for name in run)
    )
    names.sort(
        key=lambda name: float(np.mean([np.mean(_nll(benchmark, method, name)) for benchmark in known]))
    )
    lines = []
    for name in names:
        cells = []
        for benchmark in known:
            runs = [run[name] for (label, _), run in trials(benchmark).items() if label == method]
            taken = sum(map(is_chosen, runs))
            text = f"{np.mean([row['test_nll'] for row in runs]):.4f}"
            cells.append(f"{text} ({taken} of {len(runs)})" if taken else text)
        lines.append([f"`{name}`", *cells])
    return table(["calibrator", *map(letter, known)], lines)


def _over_runs(known: Sequence[str]) -> list[str]:
    names = [
        name for name in next(iter(trials(known[0]).values())) if name not in ("identity", "temperature")
    ]
    lines = []
    for name in names:
        cells = []
        for benchmark in known:
            gaps = [
                run[name]["test_nll"] - run["temperature"]["test_nll"] for run in trials(benchmark).values()
            ]
            lower = sum(gap < 0 for gap in gaps)
            cells.append(f"{lower} of {len(gaps)},{SPACE}{np.mean(gaps):+.4f}".replace("-", "−"))
        lines.append([f"`{name}`", *cells])
    return table(["calibrator", *map(letter, known)], lines)


def _tested(benchmark: str) -> str:
    where = [
        (one, {"calibrator": "advised", "versus": one, "versus_calibrator": "temperature"})
        for one in entrants(benchmark)
    ]
    found = [row for one, about in where if (row := difference(benchmark, one, "nll", **about))]
    same = [row for row in found if row["low"] == row["high"] == 0]
    differ = [row for row in found if row not in same]
    verdicts = [row["verdict"] for row in differ]
    tied = [row["detectable"] for row in differ if row["verdict"] == "tie"]
    counted = count_words({name: verdicts.count(name) for name in ("better", "tie", "worse")})
    base = difference(
        benchmark, "ce", "nll", calibrator="advised", versus="ce", versus_calibrator="temperature"
    )
    own = f" After cross-entropy: {marked(effect(base), mark_of(base))}." if base and base not in same else ""
    least = f" Detectable among the ties: {amount('nll', float(np.median(tied)))}." if tied else ""
    chosen = f" For {len(same)} methods it chose temperature scaling with every seed." if same else ""
    return f"{counted} in NLL ({found[0]['n_seeds']} seeds).{own}{least}{chosen}"


def _fresh(benchmark: str) -> list[str]:
    """Write the fixed calibrator against temperature scaling on fresh rows."""
    name = f"{benchmark}_fresh"
    if not rows(f"{name}/differences.csv"):
        return []
    labels = entrants(benchmark)
    found = {"better": 0, "tie": 0, "worse": 0}
    tied, lines = [], []
    for label in labels:
        about = {"calibrator": FIXED, "versus": label, "versus_calibrator": "temperature"}
        row = difference(name, label, "nll", **about)
        if row is None:
            continue
        found[row["verdict"]] += 1
        tied += [row["detectable"]] if row["verdict"] == "tie" else []
        ece = difference(name, label, "ece", **about)
        lines.append([f"`{label}`", marked(effect(row), mark_of(row)), marked(effect(ece), mark_of(ece))])
    n_rows = rows(f"{name}/scores.csv")[0]["n"]
    least = f" Detectable among the ties: {amount('nll', float(np.median(tied)))} NLL." if tied else ""
    return [
        f"## {letter(benchmark)} on {n_rows:,} fresh rows",
        "",
        f"`{FIXED}` against temperature scaling after each method, both fitted on the same rows of `calib`: "
        f"{count_words(found)} in NLL.{least} Differences with simultaneous 95% intervals, ECE in points:",
        "",
        *table(["method", "NLL", "ECE"], lines),
    ]
