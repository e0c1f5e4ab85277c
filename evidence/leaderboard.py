"""The leaderboard: one row per method and benchmark of the second edition, made from its files and from submissions.

python evidence/leaderboard.py                                        write leaderboard/board.csv again
python evidence/leaderboard.py splits e2 --data ~/data -o e2.npz      write the rows of a benchmark, to train on
python evidence/leaderboard.py add e2 my_method predictions/ --name "A. Author" --link https://... --command "..."
python evidence/leaderboard.py reference e2 --runs ~/evidence-runs/runs   what submissions are compared with

Submitted predictions are checked and scored here: no number of a submission is taken from somebody else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from differences import DECAY, differences
from pairs import BASELINE, METRICS, SCALED, base_of, paired_row
from tidy import HERE, SECOND, folder_of, read, write

from equipoise.core.errors import EquipoiseError
from equipoise.evaluate import Score
from equipoise.evaluate.standard_error import mean_over_seeds, seed_error
from equipoise.experiments.runs.json_files import read_json

FILE = "leaderboard/board.csv"
SUBMISSIONS = "leaderboard/submissions"
#: After which calibrator methods are ranked, and what else a row holds.
CALIBRATOR = SCALED
SECONDARY = (
    "accuracy",
    "brier",
    "ece",
    "aurc",
    "augrc",
    "coverage_at_5",
    "error_at_5",
    "set_size_90",
    "set_coverage_90",
)
US = "Equipoise"

Rows = list[dict[str, Any]]


def board() -> Iterator[dict[str, Any]]:
    """Yield the rows of all benchmarks, the lowest NLL after temperature scaling first within each."""
    for benchmark in SECOND:
        found = list(board_rows(benchmark))
        yield from sorted(found, key=lambda row: row["difference"])


def board_rows(benchmark: str) -> Iterator[dict[str, Any]]:
    """Yield one row per method of a benchmark; nothing if it was not run yet."""
    folder = folder_of(benchmark)
    scores = read(f"{folder}/scores.csv")
    if not scores:
        return
    fresh = read(f"{folder}_fresh/differences.csv")
    judged = {row["method"] for row in fresh}
    others = [row for row in read(f"{folder}/differences.csv") if row["method"] not in judged]
    # Endpoints of decisions are known on `test` alone.
    found = [*scores, *read(f"{folder}_fresh/scores.csv")]
    yield from _rows(benchmark, "", found, [*fresh, *others], _own_facts(benchmark))
    for family, file in (
        ("boosting", "second/boosting/scores.csv"),
        ("seeds", f"{folder}/seed_ensembles.csv"),
    ):
        more = [row for row in read(file) if row["benchmark"] == benchmark]
        pairs = list(unpaired(scores, more))
        facts = {row["method"]: _script_facts(family, benchmark, more) for row in more}
        yield from _rows(benchmark, family, more, list(differences(benchmark, pairs)), facts)
    found = [{**row, "calibrator": CALIBRATOR} for row in read(f"{folder}/auto.csv")]  # it fits its own
    compared = list(differences(benchmark, read(f"{folder}/auto_paired.csv")))
    facts = {row["method"]: {**_script_facts("auto", benchmark, found), "cost": row["cost"]} for row in found}
    yield from _rows(benchmark, "auto", found, compared, facts)
    yield from _submitted(benchmark)


def _rows(
    benchmark: str,
    family: str,
    scores: Sequence[Mapping[str, Any]],
    compared: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Yield the rows of methods, in the order of their scores; later scores of the same kind replace earlier ones."""
    known: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = {}
    for row in scores:
        if (row["calibrator"], row["split"]) == (CALIBRATOR, "test"):
            known.setdefault((row["method"], row["metric"]), {})[row["seed"]] = row
    against = {(row["method"], row["metric"]): row for row in compared if is_ranking(row)}
    for method in dict.fromkeys(method for method, _ in known):
        found = list(known[method, "nll"].values())
        one = against.get((method, "nll"), {})
        ece = against.get((method, "ece"), {})
        if not one and method != BASELINE:
            continue
        mean = mean_over_seeds("nll", [Score(row["value"], row["low"], row["high"]) for row in found])
        yield {
            "benchmark": benchmark,
            "method": method,
            "family": family or one.get("family", "tuned"),
            "n_seeds": len(found),
            "n_rows": found[0]["n"],
            "nll": mean.value,
            "nll_low": mean.low,
            "nll_high": mean.high,
            "difference": one.get("difference", 0.0),
            **{key: one.get(key) for key in ("low", "high", "low_90", "high_90", "margin", "detectable")},
            "test": one.get("verdict"),
            "conclusion": one.get("conclusion", "baseline"),
            "ece_difference": ece.get("difference"),
            "ece_conclusion": ece.get("conclusion"),
            **dict(_secondary(method, known)),
            **facts[method],
        }


def _secondary(
    method: str, known: Mapping[tuple[str, str], Mapping[int, Any]]
) -> Iterator[tuple[str, float | None]]:
    for metric in SECONDARY:
        found = [row["value"] for row in known.get((method, metric), {}).values()]
        yield metric, float(np.mean(found)) if found else None
        yield f"{metric}_error", seed_error(found) if found else None


def is_ranking(row: Mapping[str, Any]) -> bool:
    """Whether a difference is that from cross-entropy on ``test``, both after temperature scaling."""
    keys = ("question", "split", "calibrator", "versus", "versus_calibrator")
    return tuple(row[key] for key in keys) == ("baseline", "test", CALIBRATOR, BASELINE, CALIBRATOR)


def costs(benchmark: str) -> dict[str, float]:
    """Return the processor time of a training of each method, in trainings of cross-entropy: the median over seeds."""
    seconds: dict[str, dict[int, float]] = {}
    for row in read(f"{folder_of(benchmark)}/runs.csv"):
        seconds.setdefault(row["method"], {})[row["seed"]] = row["epoch_cpu_seconds"] * row["epochs"]
    base = seconds.get(BASELINE, {})
    ratios = {
        method: float(np.median([taken / base[seed] for seed, taken in found.items() if seed in base]))
        for method, found in seconds.items()
        if found.keys() & base.keys()
    }
    # The supplement ran on other days, and weight decay costs nothing.
    decayed = {method: ratios[base_of(method)] for method in ratios if method.endswith(DECAY)}
    return ratios | decayed


def _own_facts(benchmark: str) -> dict[str, dict[str, Any]]:
    seeds: dict[str, list[int]] = {}
    for row in read(f"{folder_of(benchmark)}/runs.csv"):
        seeds.setdefault(row["method"], []).append(row["seed"])
    return {
        method: {
            "cost": cost,
            "submitted_by": US,
            "link": None,
            "command": f"python evidence/run.py {benchmark} --methods '{method}' --seeds {_range(seeds[method])} "
            "--data ~/data --out ~/evidence-runs/runs",
        }
        for method, cost in costs(benchmark).items()
    }


def _script_facts(family: str, benchmark: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    seeds = _range([row["seed"] for row in rows])
    commands = {
        "boosting": f"python evidence/boosting.py {benchmark} --seeds {seeds} --data ~/data",
        "auto": f"python evidence/auto_cells.py {benchmark} --seeds {seeds} --data ~/data --out ~/evidence-runs/auto",
        "seeds": f"python evidence/seed_ensembles.py {benchmark} --runs ~/evidence-runs/runs",
    }
    return {"cost": None, "submitted_by": US, "link": None, "command": commands[family]}


def _range(seeds: Sequence[int]) -> str:
    """Write seeds as the shell takes them."""
    known = sorted(set(seeds))
    whole = known == list(range(known[0], known[-1] + 1))
    return f"$(seq {known[0]} {known[-1]})" if whole and len(known) > 3 else " ".join(map(str, known))


def unpaired(
    scores: Sequence[Mapping[str, Any]], more: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield paired rows of methods whose predictions were not compared row by row with cross-entropy.

    Their row error is that of two independent samples, which is more than that of the same rows.

    Args:
        scores: Scores of the benchmark, cross-entropy among them.
        more: Scores of the other methods.
    """
    base = {
        (row["seed"], row["metric"]): row for row in scores if row["method"] == BASELINE and _is_scaled(row)
    }
    for row in more:
        versus = base.get((row["seed"], row["metric"]))
        if versus and _is_scaled(row) and row["metric"] in METRICS:
            half = float(np.hypot(row["high"] - row["low"], versus["high"] - versus["low"])) / 2
            gap = row["value"] - versus["value"]
            yield paired_row(
                row["method"], row["metric"], row["seed"], row["value"], versus["value"], gap, half
            )


def _is_scaled(row: Mapping[str, Any]) -> bool:
    return (row["calibrator"], row["split"]) == (CALIBRATOR, "test")


def _submitted(benchmark: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of submissions, which are corrected together for their number."""
    folders = sorted((HERE / SUBMISSIONS / benchmark).glob("*/about.json"))
    about = {one["method"]: one for one in map(read_json, folders)}
    names = [str(file.parent.relative_to(HERE)) for file in folders]
    scores = [row for name in names for row in read(f"{name}/scores.csv")]
    pairs = [row for name in names for row in read(f"{name}/paired.csv")]
    facts = {
        method: {key: one[key] for key in ("cost", "submitted_by", "link", "command")}
        for method, one in about.items()
    }
    yield from _rows(benchmark, "submitted", scores, list(differences(benchmark, pairs)), facts)


def build() -> None:
    """Write the file of the leaderboard."""
    write(FILE, board())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="action")
    one = commands.add_parser("splits", help="write the rows of a benchmark, to train anything on")
    one.add_argument("benchmark", choices=SECOND)
    one.add_argument("--data", default=".", help="folder that holds the datasets")
    one.add_argument("-o", "--out", type=Path, required=True, help=".npz file to write")
    one = commands.add_parser("add", help="check predictions, score them and add a method")
    one.add_argument("benchmark", choices=SECOND)
    one.add_argument("method", help="its name on the leaderboard")
    one.add_argument(
        "folder", type=Path, help="predictions: <seed>/tune, calib and test (.npz, .csv, .parquet)"
    )
    one.add_argument("--name", required=True, help="who submits it")
    one.add_argument("--link", required=True, help="address of code or paper")
    one.add_argument("--command", required=True, help="the command that repeats it")
    one.add_argument("--cost", type=float, help="one training, in trainings of cross-entropy")
    one = commands.add_parser("reference", help="write what submissions to a benchmark are compared with")
    one.add_argument("benchmark", choices=SECOND)
    one.add_argument("--runs", type=Path, required=True, help="folder of runs, as given to run.py")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    args = _parser().parse_args(arguments)
    import submissions

    try:
        if args.action == "splits":
            submissions.write_splits(args.benchmark, args.data, args.out)
        elif args.action == "reference":
            submissions.write_reference(args.benchmark, args.runs)
        else:
            if args.action == "add":
                submissions.add_submission(args)
            build()
    except (EquipoiseError, OSError) as error:
        print(f"leaderboard: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
