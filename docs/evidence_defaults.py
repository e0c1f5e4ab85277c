"""The page on our own defaults: what is chosen, the advisor, the intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from evidence_data import arenas, difference, effect, is_run, letter, methods, pick, rows, seeds_of, table

from equipoise.metrics.facts import metric_facts


def defaults() -> str:
    """Write how good our own defaults are."""
    parts = [
        "# Our own defaults",
        "",
        "## Does `choose` beat the settings of the papers?",
        "",
        "Differences of the chosen setting from the paper's, on test rows that took no part in the choice.",
        "",
    ]
    lines = [line for arena in ("a", "ap") if is_run(arena) for line in _variant_lines(arena, chosen=True)]
    heads = ("arena", "method", "seeds", "chosen", "ECE, points", "", "NLL", "", "NLL, scaled", "")
    parts += table(heads, lines) if lines else ["Not yet run.", ""]
    parts += [
        "## Which epoch to keep?",
        "",
        "The best epoch on tune by NLL, or by NLL after scaling, against the last.",
        "",
    ]
    lines = [line for arena in ("a",) if is_run(arena) for line in _variant_lines(arena, chosen=False)]
    parts += table(heads, lines) if lines else ["Not yet run.", ""]
    return "\n".join([*parts, *_advisor(), *_coverage()])


def _variant_lines(arena: str, *, chosen: bool) -> Iterator[list[str]]:
    for label in methods(arena):
        base = label.partition("(")[0]
        if ("(" not in label) or ((" by " in label) != chosen) or (not chosen and "keep" not in label):
            continue
        cells = [letter(arena), f"`{label}`", str(len(seeds_of(arena)[label]))]
        picked = [row["chosen"] or "–" for row in pick(rows(f"{arena}/runs.csv"), method=label)]
        cells.append(", ".join(str(one) for one in picked) if chosen else "–")
        for metric, calibrator in (("ece", "identity"), ("nll", "identity"), ("nll", "temperature")):
            found = difference(arena, label, metric, calibrator=calibrator, versus=base)
            cells += [effect(found), found["verdict"]] if found else ["–", ""]
        yield cells


def _advisor() -> list[str]:
    parts = ["## Is the advisor's map right?", ""]
    lines = []
    for arena in arenas():
        groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in rows(f"{arena}/advisor.csv"):
            groups.setdefault((row["method"], row["seed"]), []).append(row)
        if groups:
            lines.append(_advisor_line(arena, list(groups.values())))
    if not lines:
        return [*parts, "Not yet run.", ""]
    heads = (
        "arena",
        "runs",
        "chosen",
        "best on test",
        "NLL lost by it",
        "by always a temperature",
        "by no map",
    )
    return [
        *parts,
        "For every run the advisor chose a map on calib. All its candidates were fitted on the same rows and "
        "judged on test; regret is the "
        "NLL above the best of them, mean over runs.",
        "",
        *table(heads, lines),
    ]


def _advisor_line(arena: str, runs: list[list[dict[str, Any]]]) -> list[str]:
    best = [min(run, key=lambda row: row["test_nll"]) for run in runs]
    taken = [next(row for row in run if row["chosen"] in (True, "True")) for run in runs]

    def regret(rivals: list[dict[str, Any]]) -> str:
        lost = [rival["test_nll"] - top["test_nll"] for rival, top in zip(rivals, best, strict=True)]
        return f"{np.mean(lost):.4f}"

    def named(found: list[dict[str, Any]]) -> str:
        names = [row["candidate"] for row in found]
        ordered = sorted(set(names), key=lambda one: (-names.count(one), one))
        return ", ".join(f"`{one}` {names.count(one)}" for one in ordered)

    fixed = [
        [row for run in runs for row in run if row["candidate"] == name]
        for name in ("temperature", "identity")
    ]
    return [
        letter(arena),
        str(len(runs)),
        named(taken),
        named(best),
        regret(taken),
        *map(regret, fixed),
    ]


def _coverage() -> list[str]:
    found = rows("e/coverage.csv")
    if not found:
        return ["## Does the interval of the ECE hold the truth?", "", "Not yet run.", ""]
    percent = metric_facts("ece")
    lines = [
        (
            row["predictor"],
            f"{row['n']:,}",
            percent.number(row["true_ece"]),
            percent.number(row["mean_ece"]),
            percent.number(row["mean_debiased_ece"]),
            percent.number(row["mean_width"]),
            f"{100 * row['covers_ece']:.1f} %",
            f"{100 * row['below']:.1f} % / {100 * row['above']:.1f} %",
        )
        for row in found
    ]
    heads = (
        "predictor",
        "rows",
        "true ECE %",
        "mean estimate",
        "debiased",
        "mean width",
        "intervals that hold it",
        "too low / too high",
    )
    first = found[0]
    return [
        "## Does the interval of the ECE hold the truth?",
        "",
        f"Predictors on a mixture whose posterior is known; {first['repeats']} samples of each size, "
        f"{first['resamples']} resamples each. A 95 % "
        "interval should hold the truth in 95 % of them, with a standard error of "
        f"{100 * np.sqrt(0.05 * 0.95 / first['repeats']):.1f} points here.",
        "",
        *table(heads, lines),
    ]
