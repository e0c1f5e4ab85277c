"""The second edition in rows: benchmarks, methods, comparisons with cross-entropy."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from pages.results import FOLDER, pick, rows

from equipoise.evaluate import Difference, StandardError
from equipoise.evaluate.differences import correct_family, difference_test
from equipoise.evaluate.standard_error import seed_error

#: Endpoints of decisions.
DECISIONS = ("coverage_at_5", "set_size_90", "aurc", "augrc")
#: Ending of methods that have the weight decay of cross-entropy: the supplement.
DECAY = "@decay"
#: Trainings that an answer allows per setting.
BUDGETS = (1, 3, 10)
#: A method fits a budget if it costs at most this much more: times on a shared machine are not exact.
SLACK = 0.25


@cache
def titles() -> dict[str, str]:
    """Return the benchmarks of the second edition with their titles."""
    return tomllib.loads((FOLDER / "second.toml").read_text("utf-8"))


@cache
def board(benchmark: str) -> list[Mapping[str, Any]]:
    """Return the rows of the leaderboard of a benchmark; none if it was not run yet."""
    return pick(rows("leaderboard/board.csv"), benchmark=benchmark)


@cache
def spec(name: str) -> dict[str, Any]:
    """Read a spec; nothing if there is none."""
    file = FOLDER / "specs" / f"{name}.toml"
    return tomllib.loads(file.read_text("utf-8")) if file.exists() else {}


def done() -> list[str]:
    """Return the benchmarks that have all seeds of the design."""
    return [benchmark for benchmark in titles() if n_seeds(benchmark) >= designed_seeds(benchmark)]


def n_seeds(benchmark: str) -> int:
    """Return how many seeds of cross-entropy there are."""
    return int(base(benchmark)["n_seeds"]) if board(benchmark) else 0


def designed_seeds(benchmark: str) -> int:
    """Return how many seeds the design has."""
    return len(spec(f"{benchmark}-1-tuned")["seed"])


def rivals(benchmark: str, family: str = "tuned") -> list[Mapping[str, Any]]:
    """Return the rows of a family other than the baseline, the lowest NLL first; none of an unfinished supplement."""
    if family == "decay" and not has_supplement(benchmark):
        return []
    return [row for row in pick(board(benchmark), family=family) if row["conclusion"] != "baseline"]


def has_supplement(benchmark: str) -> bool:
    """Whether all seeds of every method of the supplement were run: with few seeds, verdicts say little."""
    design = spec(f"{benchmark}-3-decay")
    n_seeds = len(design.get("seed", ()))
    found = {row["method"] for row in pick(board(benchmark), family="decay") if row["n_seeds"] >= n_seeds}
    wanted = {one["title"] for one in design.get("method", ())} - {"ce"}
    return bool(wanted) and wanted <= found


def base(benchmark: str) -> Mapping[str, Any]:
    """Return the row of cross-entropy."""
    [row] = pick(board(benchmark), conclusion="baseline")
    return row


def needs_decay(benchmark: str) -> bool:
    """Whether rivals train without the weight decay that cross-entropy chooses, so that there is a supplement."""
    return bool(spec(f"{benchmark}-3-decay"))


def choose_decay() -> list[str]:
    """Return the tuned methods that choose their weight decay."""
    return [one["title"] for one in spec("e2-1-tuned")["method"] if "recipe.weight_decay" in one["choose"]]


def same_decay(benchmark: str) -> list[Mapping[str, Any]]:
    """Return the rows of methods that have as much weight decay as cross-entropy; none before the supplement is run."""
    if not needs_decay(benchmark):
        return rivals(benchmark)
    found = rivals(benchmark, "decay")
    own = [row for row in rivals(benchmark) if row["method"] in choose_decay()]
    return [*found, *own] if found else []


def plain_name(row: Mapping[str, Any]) -> str:
    """Return the name of a method without the ending of the supplement."""
    return str(row["method"]).removesuffix(DECAY)


def chosen_decay(benchmark: str) -> tuple[str, int, int]:
    """Return the weight decay that cross-entropy chose most often, how often, and in how many seeds."""
    found = pick(rows(f"second/{benchmark}/runs.csv"), method="ce")
    counted = Counter(row["chosen"].partition("=")[2] for row in found)
    return (*counted.most_common(1)[0], len(found))


def share(row: Mapping[str, Any], key: str = "difference") -> float:
    """Return a difference in percent of the NLL of cross-entropy."""
    return 100 * float(row[key]) / (float(row["nll"]) - float(row["difference"]))


def detectable(found: Sequence[Mapping[str, Any]]) -> float:
    """Return the median of the detectable differences, in percent of the NLL of cross-entropy."""
    return float(np.median([share(row, "detectable") for row in found]))


def compared(benchmark: str, question: str, metric: str, family: str = "tuned") -> list[Mapping[str, Any]]:
    """Return the differences that answer a question."""
    found = rows(f"second/{benchmark}/differences.csv")
    return pick(found, question=question, metric=metric, family=family)


def shifts(benchmark: str) -> list[str]:
    """Return the shifted test sets that methods were compared on."""
    found = (row["split"] for row in compared(benchmark, "baseline", "nll"))
    return [split for split in dict.fromkeys(found) if split != "test"]


@cache
def by_seed(benchmark: str) -> dict[tuple[str, str], dict[int, float]]:
    """Return the endpoints of decisions on ``test`` after temperature scaling, by method and metric, of each seed."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in pick(rows(f"second/{benchmark}/scores.csv"), calibrator="temperature", split="test"):
        if row["metric"] in DECISIONS:
            found.setdefault((row["method"], row["metric"]), {})[row["seed"]] = row["value"]
    return found


def decisions(benchmark: str, metric: str, family: str = "tuned") -> dict[str, Difference]:
    """Compare the methods of a family with cross-entropy by an endpoint of decisions, paired by seed.

    Only the scatter over seeds is known, so the verdicts are about other trainings on these test rows.

    Args:
        benchmark: Its name.
        metric: The endpoint.
        family: The family, which is corrected for its size.
    """
    known, found = by_seed(benchmark), {}
    for row in rivals(benchmark, family):
        versus, own = (known.get((label, metric), {}) for label in ("ce", row["method"]))
        pairs = np.array([(versus[seed], own[seed]) for seed in own if seed in versus])
        if len(pairs) > 1:
            error = StandardError(0.0, np.inf, seed_error(pairs[:, 1] - pairs[:, 0]), len(pairs) - 1.0)
            before, after = pairs.mean(axis=0).tolist()
            found[row["method"]] = difference_test(metric, before, after, error, n_seeds=len(pairs))
    return dict(zip(found, correct_family(list(found.values())), strict=True))


@cache
def networks() -> dict[str, int]:
    """Return how many networks a tuned method trains, by its spec."""
    return {one["title"]: one.get("options", {}).get("n_members", 1) for one in spec("e2-1-tuned")["method"]}


def best_within(budget: int, families: Sequence[Sequence[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """Return the rows of the method with the lowest mean NLL that a budget allows in all benchmarks.

    Args:
        budget: In trainings of cross-entropy per setting.
        families: The methods that are compared in each benchmark.
    """
    known = [{plain_name(row): row for row in found} for found in families]
    allowed = [
        [found[label] for found in known]
        for label, many in networks().items()
        if all(label in found and max(many, found[label]["cost"]) <= budget + SLACK for found in known)
    ]
    return min(allowed, key=lambda found: np.mean([share(row) for row in found]), default=[]) if known else []
