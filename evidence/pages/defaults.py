"""The page on our own defaults: what is chosen, the advisor, the intervals."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from pages.calibrators import FIXED, is_chosen, trials
from pages.results import (
    FOLDER,
    SPACE,
    amount,
    benchmarks,
    count_words,
    difference,
    effect,
    is_run,
    letter,
    methods,
    pick,
    rows,
    seeds_of,
    table,
)
from scipy.special import ndtri

from equipoise.metrics.facts import metric_facts


def defaults() -> str:
    """Write how good our own defaults are."""
    parts = [
        "# Our own defaults",
        "",
        "## Does `choose` beat the settings of the papers?",
        "",
        "Differences of the chosen setting from the paper's, on test rows that took no part in the choice, with "
        "simultaneous 95% intervals. The simplest setting whose score on `tune` is within one standard error of the "
        "best is chosen, for each seed on its own. Where the paper's setting is chosen for every seed, the runs are "
        "the same. Below each table: the smallest true difference that a tie could have found with 80% power.",
        "",
    ]
    lines = [
        line
        for benchmark in ("a", "ap")
        if is_run(benchmark)
        for line in _variant_lines(benchmark, chosen=True)
    ]
    heads = (
        "benchmark",
        "method",
        "seeds",
        "tried",
        "chosen",
        "ECE, points",
        "",
        "NLL",
        "",
        "NLL, scaled",
        "",
    )
    parts += [*table(heads, lines), *_variant_power(("a", "ap"))] if lines else ["Not yet run.", ""]
    parts += [
        "## Which epoch to keep?",
        "",
        "The best epoch on `tune` by NLL, or by NLL after scaling, against the last.",
        "",
    ]
    lines = [
        line for benchmark in ("a",) if is_run(benchmark) for line in _variant_lines(benchmark, chosen=False)
    ]
    parts += [*table(heads, lines), *_variant_power(("a",))] if lines else ["Not yet run.", ""]
    return "\n".join([*parts, *_advisor(), *_coverage()])


def _variant_lines(benchmark: str, *, chosen: bool) -> Iterator[list[str]]:
    for label in methods(benchmark):
        base = label.partition("(")[0]
        if ("(" not in label) or ((" by " in label) != chosen) or (not chosen and "keep" not in label):
            continue
        cells = [letter(benchmark), f"`{label}`", str(len(seeds_of(benchmark)[label]))]
        picked = [row["chosen"] or "–" for row in pick(rows(f"{benchmark}/runs.csv"), method=label)]
        cells += [_tried(benchmark, label), ", ".join(map(str, picked))] if chosen else ["–", "–"]
        if chosen and _is_papers(benchmark, label, base):
            yield [*cells, "the same runs", "", "", "", "", ""]
            continue
        for metric, calibrator in (("ece", "identity"), ("nll", "identity"), ("nll", "temperature")):
            found = difference(benchmark, label, metric, calibrator=calibrator, versus=base)
            cells += [effect(found), found["verdict"]] if found else ["–", ""]
        yield cells


def _variant_power(known: Sequence[str]) -> list[str]:
    """Write the smallest differences that ties between settings could have found."""
    parts = []
    for benchmark in known:
        found = [row for row in rows(f"{benchmark}/differences.csv") if row["question"] == "variant"]
        cells = []
        for metric, calibrator, name in (
            ("ece", "identity", "points of ECE"),
            ("nll", "identity", "NLL"),
            ("nll", "temperature", "scaled NLL"),
        ):
            tied = [
                row["detectable"]
                for row in pick(found, metric=metric, calibrator=calibrator, verdict="tie")
                if row["detectable"] > 0
            ]
            cells += [f"{amount(metric, float(np.median(tied)))} {name}"] if tied else []
        parts.append(f"{', '.join(cells)} in {letter(benchmark)}")
    return [f"Detectable (median over the ties): {'; '.join(parts)}.", ""]


def _tried(benchmark: str, label: str) -> str:
    """Write the settings that a hyperparameter was chosen among."""
    base, _, setting = label.partition("(")
    for choice in _choices(benchmark):
        if choice["name"] == base and setting.startswith(next(iter(choice["choose"]))):
            return ", ".join(f"{one:g}" for one in next(iter(choice["choose"].values())))
    raise ValueError(f"{benchmark}: no comparison in evidence/specs chooses {label!r}.")


@cache
def _choices(benchmark: str) -> list[dict[str, Any]]:
    found = []
    for file in sorted((FOLDER / "specs").glob(f"{benchmark}-*.toml")):
        asked = tomllib.loads(file.read_text("utf-8"))["method"]
        found += [one for one in asked if isinstance(one, dict) and "choose" in one]
    return found


def _is_papers(benchmark: str, label: str, base: str) -> bool:
    """Whether the paper's setting was chosen for every seed."""
    runs = [[row["run"] for row in pick(rows(f"{benchmark}/runs.csv"), method=one)] for one in (label, base)]
    return set(runs[0]) <= set(runs[1])


def _advisor() -> list[str]:
    parts = ["## Is the advisor's calibrator right?", ""]
    lines = [_advisor_line(benchmark) for benchmark in _advised()]
    if not lines:
        return [*parts, "Not yet run.", ""]
    heads = (
        "benchmark",
        "runs",
        "chosen",
        "best on test",
        "NLL lost by it",
        "by the best on calib",
        "by always temperature scaling",
        f"by always `{FIXED}`",
        "by no calibrator",
        "the advisor's choice against temperature scaling",
    )
    return [
        *parts,
        "The advisor chose a calibrator on `calib`, for the runs that are counted here. All its candidates were fitted "
        "on the same rows and judged on `test`; [Calibrators](calibrators.md) shows them all. What is lost is the NLL "
        "above the best of them, mean over runs with its standard error, as if runs were independent. The advisor "
        "takes the simplest candidate within one standard error of the best in cross-validation; "
        '`choose(calib, rule="best")` takes that best. The last column counts the methods whose NLL the advisor\'s '
        "choice makes better or worse than temperature scaling does, by the paired test.",
        "",
        *table(heads, lines),
        *_advisor_words(),
    ]


def _advisor_words() -> list[str]:
    """Write where another rule than the advisor's would have lost less."""
    better = {}
    for benchmark, runs in _advised().items():
        lost = {name: float(np.mean(_lost(benchmark, name))) for name in ("advisor", "temperature", FIXED)}
        best = min(lost, key=lambda name: lost[name])
        if lost[best] < lost["advisor"] and runs:
            better[letter(benchmark)] = f"{letter(benchmark)} (always `{best}` loses {lost[best]:.4f})"
    caution = _caution()
    if not better:
        return [f"Always the same calibrator would have lost less in no benchmark. {caution}", ""]
    return [
        f"{caution} In {' and '.join(better.values())} a fixed rule would have lost less than the advisor did: "
        "choosing by cross-validation on a few hundred rows of `calib` costs something itself, and in B the posts of "
        "`calib` are earlier than those of `test`.",
        "",
    ]


def _caution() -> str:
    """Say what taking the best on calib would have gained, where that is more than chance between runs."""
    gains = {
        letter(benchmark): np.subtract(_lost(benchmark, "advisor"), _lost(benchmark, "best"))
        for benchmark in _advised()
    }
    means = {
        benchmark: (float(gain.mean()), float(gain.std(ddof=1) / len(gain) ** 0.5))
        for benchmark, gain in gains.items()
    }
    clear = {benchmark: (gain, error) for benchmark, (gain, error) in means.items() if abs(gain) > 2 * error}
    words = ", ".join(
        f"{gain:+.4f}{SPACE}±{SPACE}{error:.4f} in {benchmark}" for benchmark, (gain, error) in clear.items()
    )
    if not words:
        return "Taking the best on `calib` or the simplest near it makes no difference beyond chance."
    others = [benchmark for benchmark in means if benchmark not in clear]
    rest = f"; no difference beyond chance in {' and '.join(others)}" if others else ""
    return f"Taking the best on `calib`, not the simplest near it, would have gained: {words}{rest}."


@cache
def _advised() -> dict[str, list[list[dict[str, Any]]]]:
    """Give the candidates of every run that the advisor was asked about, benchmark by benchmark."""
    found = {}
    for benchmark in benchmarks():
        if trials(benchmark):
            found[benchmark] = [list(run.values()) for run in trials(benchmark).values()]
    return found


def _lost(benchmark: str, name: str) -> list[float]:
    """Give the NLL above the best candidate, for each run: of a fixed one, or of one that a rule takes."""
    rules = {"advisor": lambda run: next(filter(is_chosen, run)), "best": _best_on_calib}
    take = rules.get(name, lambda run: next(row for row in run if row["candidate"] == name))
    return [take(run)["test_nll"] - min(row["test_nll"] for row in run) for run in _advised()[benchmark]]


def _best_on_calib(run: list[dict[str, Any]]) -> dict[str, Any]:
    tried = [row for row in run if row["cross_validated_nll"] is not None]
    return min(tried, key=lambda row: row["cross_validated_nll"])


def _advisor_line(benchmark: str) -> list[str]:
    runs = _advised()[benchmark]
    best = [min(run, key=lambda row: row["test_nll"]) for run in runs]
    taken = [next(filter(is_chosen, run)) for run in runs]

    def regret(name: str) -> str:
        lost = _lost(benchmark, name)
        return f"{np.mean(lost):.4f}{SPACE}±{SPACE}{np.std(lost, ddof=1) / np.sqrt(len(lost)):.4f}"

    def named(found: list[dict[str, Any]]) -> str:
        names = [row["candidate"] for row in found]
        ordered = sorted(set(names), key=lambda one: (-names.count(one), one))
        return ", ".join(f"`{one}` {names.count(one)}" for one in ordered)

    versus = [
        difference(benchmark, one, "nll", calibrator="advised", versus=one, versus_calibrator="temperature")
        for one in methods(benchmark)
    ]
    verdicts = [row["verdict"] for row in versus if row]
    return [
        letter(benchmark),
        str(len(runs)),
        named(taken),
        named(best),
        *map(regret, ("advisor", "best", "temperature", FIXED, "identity")),
        count_words({name: verdicts.count(name) for name in ("better", "tie", "worse")}),
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
            f"{100 * row['covers_ece']:.1f}%",
            f"{100 * row['below']:.1f}% / {100 * row['above']:.1f}%",
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
    error = float(np.sqrt(0.05 * 0.95 / first["repeats"]))
    return [
        "## Does the interval of the ECE hold the truth?",
        "",
        f"Predictors on a mixture whose posterior is known; {first['repeats']} samples of each size, "
        f"{first['resamples']} resamples each. A 95% "
        "interval should hold the truth in 95% of them, with a standard error of "
        f"{100 * error:.1f} points here. " + _coverage_words(found, error),
        "",
        *table(heads, lines),
    ]


def _coverage_words(found: list[dict[str, Any]], error: float) -> str:
    """Say whether the intervals hold the truth as often as they should."""
    held = [row["covers_ece"] for row in found]
    # So many standard errors hold all of them at once in nineteen of twenty cases.
    bound = float(ndtri(1 - 0.025 / len(held)))
    short = [
        f"{row['predictor']} with {row['n']:,} rows"
        for row in found
        if row["covers_ece"] < 0.95 - bound * error
    ]
    words = f"It does in {100 * min(held):.1f} to {100 * max(held):.1f}%"
    if not short:
        return f"{words}, and none of the {len(held)} shares differs significantly from 95%."
    return (
        f"{words}. Less than chance explains among {len(held)} shares: {', '.join(short)}, where the estimate is "
        "pushed up from zero by chance and the interval, which allows for that, still lies too high now and then."
    )
