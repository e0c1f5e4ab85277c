"""What the pages of evidence are made from: the tidy files, read once, and how their numbers are written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.evaluate import Score, StandardError
from equipoise.evaluate.differences import difference_test
from equipoise.evaluate.standard_error import mean_over_seeds, one_run_error, seed_error
from equipoise.experiments.runs.rows import read_rows
from equipoise.metrics.facts import learn_facts, metric_facts

#: Known where true probabilities stand in place of labels: on a mixture, and where people voted.
learn_facts("true_error", {"title": "true error", "percent": True, "low": 0.0, "high": 1.0})
learn_facts("true_nll", {"title": "NLL of the truth", "percent": False, "low": 0.0})

FOLDER = Path(__file__).resolve().parent.parent
#: Between the parts of a number, which stay on one line.
SPACE = "\N{NO-BREAK SPACE}"
SIGNS = {"better": "+", "worse": "−", "tie": ""}


@cache
def rows(name: str) -> list[dict[str, Any]]:
    """Read a file of evidence; nothing if it was not made yet."""
    return read_rows(FOLDER / name) if (FOLDER / name).exists() else []


@cache
def benchmarks() -> dict[str, dict[str, Any]]:
    """Give what is known about each benchmark, those that were not run yet among them."""
    return tomllib.loads((FOLDER / "benchmarks.toml").read_text("utf-8"))


def letter(benchmark: str) -> str:
    """Return what the pages call a benchmark."""
    return benchmark.upper().replace("P", "′")


def is_run(benchmark: str) -> bool:
    """Whether there are results."""
    return bool(rows(f"{benchmark}/runs.csv"))


def split_sizes(benchmark: str) -> list[int]:
    """Give the rows of train, tune, calib and test."""
    machines = json.loads((FOLDER / benchmark / "machines.json").read_text("utf-8"))["machines"]
    return [machines[0]["data"]["rows"][split] for split in ("train", "tune", "calib", "test")]


def seeds_text(*counted: int) -> str:
    """Write how many seeds there are, or the range."""
    few, many = min(counted), max(counted)
    if few != many:
        return f"{few} to {many} seeds"
    return f"{many} seeds" if many > 1 else "1 seed"


def pick(table: Iterable[Mapping[str, Any]], **wanted: Any) -> list[Mapping[str, Any]]:
    """Give the rows with these values."""
    return [row for row in table if all(row[key] == value for key, value in wanted.items())]


@cache
def seeds_of(benchmark: str) -> dict[str, list[int]]:
    """Give the seeds of each method, in the order of the file."""
    found: dict[str, list[int]] = {}
    for row in rows(f"{benchmark}/runs.csv"):
        found.setdefault(row["method"], []).append(row["seed"])
    return found


@cache
def methods(benchmark: str) -> list[str]:
    """Name the methods that were compared; settings that were tried and not chosen are none."""
    compared = {row["method"] for row in rows(f"{benchmark}/differences.csv")}
    return [label for label in seeds_of(benchmark) if label in compared]


@cache
def entrants(benchmark: str) -> list[str]:
    """Name the methods as their papers set them; other settings of these, and chosen ones, have a page of their own."""
    variants = {row["method"] for row in rows(f"{benchmark}/differences.csv") if row["question"] == "variant"}
    return [label for label in methods(benchmark) if label not in variants]


def rivals(benchmark: str) -> list[str]:
    """Name the entrants that are compared with cross-entropy."""
    return [label for label in entrants(benchmark) if label != "ce"]


@cache
def _values(benchmark: str) -> dict[tuple[str, str, str, str], list[tuple[float, float, float]]]:
    found: dict[tuple[str, str, str, str], list[tuple[float, float, float]]] = {}
    for row in rows(f"{benchmark}/scores.csv"):
        place = (row["method"], row["calibrator"], row["split"], row["metric"])
        found.setdefault(place, []).append((row["value"], row["low"], row["high"]))
    return found


def values(benchmark: str, method: str, calibrator: str, metric: str, split: str = "test") -> np.ndarray:
    """Give a number of each seed with the ends of its interval ``(seeds, 3)``."""
    return np.array(_values(benchmark).get((method, calibrator, split, metric), []), dtype=float).reshape(
        -1, 3
    )


def mean(benchmark: str, method: str, calibrator: str, metric: str, split: str = "test") -> float:
    """Give the mean over seeds."""
    found = values(benchmark, method, calibrator, metric, split)
    return float(found[:, 0].mean()) if len(found) else float("nan")


def interval(
    benchmark: str, method: str, calibrator: str, metric: str, split: str = "test"
) -> tuple[float, float, float]:
    """Return the mean over seeds with its 95% interval, from rows and seeds together."""
    found = [Score(*ends) for ends in values(benchmark, method, calibrator, metric, split)]
    joined = mean_over_seeds(metric, found)
    return joined.value, joined.low, joined.high


def unpaired(
    benchmark: str, method: str, metric: str, *, calibrator: str, versus: str
) -> dict[str, Any] | None:
    """Compare two methods by their means, where they were not compared row by row; None if one was not run."""
    known = [values(benchmark, label, calibrator, metric) for label in (versus, method)]
    if not all(map(len, known)):
        return None
    seeds = min(map(len, known))
    of_rows = [np.mean([one_run_error(Score(*ends), 0.95) for ends in found]) for found in known]
    of_seeds = [seed_error(found[:, 0]) if seeds > 1 else 0.0 for found in known]
    error = StandardError(
        float(np.hypot(*of_rows)), np.inf, float(np.hypot(*of_seeds)), seeds - 1 if seeds > 1 else np.inf
    )
    one = difference_test(metric, *(float(found[:, 0].mean()) for found in known), error, n_seeds=seeds)
    ends = {"difference": one.difference, "low": one.low, "high": one.high}
    return {"metric": metric, **ends, "n_seeds": seeds, "verdict": one.verdict}


def written(benchmark: str, method: str, calibrator: str, metric: str, split: str = "test") -> str:
    """Write a mean over seeds, with its standard error if there are several."""
    found = values(benchmark, method, calibrator, metric, split)[:, 0]
    if not len(found):
        return "–"
    facts = metric_facts("ece" if metric == "true_error" else metric)
    text = facts.number(float(found.mean()))
    if len(found) > 1:
        text += f"{SPACE}±{SPACE}{facts.number(seed_error(found))}"
    return text


def knows_truth(benchmark: str) -> bool:
    """Whether true probabilities are known of the test rows."""
    return ("ce", "identity", "test", "true_error") in _values(benchmark)


@cache
def costs(benchmark: str) -> dict[str, dict[str, Any]]:
    """Give what a step of each method costs, in steps of cross-entropy; nothing where it was not measured."""
    return {row["method"]: row for row in rows(f"{benchmark}/costs.csv")}


@cache
def _verdicts(benchmark: str) -> dict[tuple[str, ...], dict[str, Any]]:
    keys = ("split", "method", "calibrator", "versus", "versus_calibrator", "metric")
    return {tuple(row[key] for key in keys): row for row in rows(f"{benchmark}/differences.csv")}


def difference(
    benchmark: str,
    method: str,
    metric: str,
    *,
    calibrator: str = "identity",
    versus: str = "ce",
    versus_calibrator: str | None = None,
    split: str = "test",
) -> dict[str, Any] | None:
    """Find a paired difference; None if it was not measured."""
    place = (split, method, calibrator, versus, versus_calibrator or calibrator, metric)
    return _verdicts(benchmark).get(place)


def signed(value: float, digits: int) -> str:
    """Write a number with its sign."""
    return f"{value:+.{digits}f}".replace("-", "−")


def with_interval(middle: str, low: str, high: str) -> str:
    """Write a number with its interval, on one line."""
    return f"{middle}{SPACE}[{low},{SPACE}{high}]"


def effect(row: Mapping[str, Any]) -> str:
    """Write a difference with its interval."""
    facts = metric_facts(row["metric"])
    digits = 2 if facts.percent else 4
    return with_interval(*(signed(facts.scale * row[key], digits) for key in ("difference", "low", "high")))


def sign(benchmark: str, method: str, metric: str, **where: Any) -> str:
    """Write + where a method is better than cross-entropy, − where it is worse, nothing for a tie; (+) for one seed."""
    found = difference(benchmark, method, metric, **where)
    return mark_of(found) if found else ""


def mark_of(found: Mapping[str, Any]) -> str:
    """Write the verdict of a difference as a sign, in parentheses if there is one seed."""
    mark = SIGNS[found["verdict"]]
    return f"({mark})" if mark and found["n_seeds"] == 1 else mark


def marked(number: str, mark: str) -> str:
    """Write a number with its sign behind it."""
    return f"{number}{SPACE}{mark}" if mark else number


def counts(benchmark: str, metric: str, labels: Sequence[str], **where: Any) -> dict[str, int]:
    """Count verdicts over methods."""
    found = [difference(benchmark, label, metric, **where) for label in labels]
    verdicts = [row["verdict"] for row in found if row]
    return {name: verdicts.count(name) for name in SIGNS}


def summed(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up counted verdicts."""
    known = list(found)
    return {name: sum(one[name] for one in known) for name in SIGNS}


def count_words(found: Mapping[str, int]) -> str:
    """Write counted verdicts."""
    return f"{found['better']} better, {found['tie']} tied, {found['worse']} worse"


def detectable(benchmark: str, metric: str, labels: Sequence[str], **where: Any) -> list[float]:
    """Return the smallest differences that the tied comparisons could have found, in ascending order."""
    found = [difference(benchmark, label, metric, **where) for label in labels]
    return sorted(row["detectable"] for row in found if row and row["verdict"] == "tie")


def amount(metric: str, value: float) -> str:
    """Write an unsigned difference: points, or a number of NLL."""
    facts = metric_facts(metric)
    return f"{facts.scale * value:.{2 if facts.percent else 4}f}"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Write a table."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(line) + " |" for line in lines),
        "",
    ]
