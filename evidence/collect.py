"""Collect the finished runs of benchmarks into tidy files: scores, curves, paired differences, what the advisor chose.

python evidence/collect.py a ap --runs ~/evidence-runs

What is there of other seeds stays; differences and ranks are made anew from all seeds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from acting import acting_scores
from differences import differences
from pairs import KEYS, Judge, families, paired
from ranks import ranks, wins
from run import choices_of, comparisons, finished_runs, has_intervals, trials_of
from tidy import HERE, SECOND, add, folder_of, read, write
from truth import truth_of, truth_scores

from equipoise import __version__
from equipoise.experiments import RunFolder, RunGroup, Spec, group_runs
from equipoise.experiments.runs.json_files import read_json, write_json
from equipoise.experiments.tuning.choices import SeedChoice

#: What is kept of a scorecard: of test, and of additional test sets.
TEST = (
    "accuracy",
    "nll",
    "brier",
    "ece",
    "debiased_ece",
    "ada_ece",
    "classwise_ece",
    "smece",
    "confidence_gap",
    "auroc",
    "aurc",
)
SHIFTED = ("accuracy", "nll", "brier", "ece", "aurc")
FOREIGN = ("confidence", "energy")
CURVES = ("loss", "tune_accuracy", "tune_nll", "tune_ece", "tune_nll_scaled", "tune_temperature")


def gather(benchmark: str, runs: Path) -> RunGroup:
    """Group the finished runs of a benchmark over all seeds; hyperparameters are chosen on tune among them."""
    there = finished_runs(runs)
    seeds = sorted({run.spec().seed for run in there.values()})
    if not seeds:
        raise SystemExit(f"{runs}: no finished run here. evidence/run.py makes them.")
    asked: dict[str, Spec] = {}
    choices: dict[tuple[str, int], SeedChoice] = {}
    runs_by_name = {run.name: run for run in there.values()}
    for comparison in comparisons(benchmark, seeds):
        found = [
            choice
            for choice in choices_of(comparison, seeds, there)
            if choice.index is not None and has_intervals(runs_by_name[choice.runs[choice.index]])
        ]
        whole = {name for choice in found for name in choice.runs}
        trials = trials_of(comparison.tuned) - {*comparison.methods}
        for spec in comparison.specs:
            run = there.get(spec.identity)
            if run is None or (spec.method.label in trials and run.name not in whole):
                continue  # a cell of a tuned method is whole, or it is left out
            if spec.identity not in asked or spec.method.title:
                asked[spec.identity] = spec
        for choice in found:  # comparisons share their baseline
            choices.setdefault((choice.label, choice.seed), choice)
    done = [there[name] for name in asked]
    groups = group_runs(
        done, list(choices.values()), specs={there[name].name: spec for name, spec in asked.items()}
    )
    if len(groups) != 1:
        raise SystemExit(
            f"benchmark {benchmark}: expected one dataset, network and recipe, got {len(groups)}."
        )
    return groups[0]


def members(group: RunGroup, *, tried: bool = True) -> Iterator[tuple[str, int, RunFolder]]:
    """Give every method with its seeds and runs.

    Args:
        group: Runs of a benchmark.
        tried: Whether settings that were tried and not chosen come along, under their own name.
    """
    shown = set()
    for label, runs in group.methods.items():
        for run in runs:
            shown.add(run.name)
            yield label, group.specs[run.name].seed, run
    for name, spec in group.specs.items():
        if tried and name not in shown:
            yield spec.method.label, spec.seed, group_run(group, name)


def once(group: RunGroup) -> Iterator[tuple[str, int, RunFolder]]:
    """Give every run once: a chosen one under the name of its setting, if that is a method of its own."""
    known = list(members(group))
    own = {run.name for label, _, run in known if label not in group.choices}
    yield from (
        (label, seed, run) for label, seed, run in known if label not in group.choices or run.name not in own
    )


def group_run(group: RunGroup, name: str) -> RunFolder:
    """Find a run that is of no method, because another setting was chosen."""
    return RunFolder(group.runs[0].path.parent / name)


def run_rows(benchmark: str, group: RunGroup, commit: str) -> Iterator[dict[str, Any]]:
    """Give one row per run: what it is, what it took, what made it."""
    for label, seed, run in members(group):
        record = run.record("trained") or {}
        history = run.history()
        of_cpu = [
            row["cpu_seconds"] for row in history if "cpu_seconds" in row
        ]  # earlier versions did not record them
        chosen = [one for seeds in group.choices.get(label, ()) for one in [seeds] if one.run == run.name]
        yield {
            "benchmark": benchmark,
            "method": label,
            "seed": seed,
            "run": run.name,
            "chosen": "; ".join(
                f"{k}={v}" for one in chosen for k, v in one.settings[one.index or 0].items()
            ),
            "temperature": run.scores("temperature").temperature,
            "epochs": record["epochs"],
            "seconds": record["seconds"],
            "epoch_seconds": float(np.quantile([row["seconds"] for row in history], 0.25)),
            "epoch_cpu_seconds": float(np.median(of_cpu)) if of_cpu else None,
            "version": __version__,
            "commit": commit,
        }


def score_rows(benchmark: str, group: RunGroup, judge: Judge, folder: str | None) -> Iterator[dict[str, Any]]:
    """Give one row per method, seed, calibrator, test set and metric."""
    truth = truth_of(group.runs[0].spec(), folder)
    for label, seed, run in members(group, tried=benchmark not in SECOND):
        about = {"benchmark": benchmark, "method": label, "seed": seed}
        for calibrator in (*run.calibrators(), *(["advised"] if judge.asks(seed) else [])):
            here = {**about, "calibrator": calibrator}
            cards = judge.cards(run, calibrator)
            for split, card in cards.items():
                for metric in TEST if split == "test" else SHIFTED:
                    one = card[metric]
                    yield {**here, "split": split, "metric": metric, **_ends(one), "n": card.n_samples}
            tune = judge.predictions(run, calibrator, "tune")
            for split, card in cards.items():
                found = acting_scores(tune, judge.predictions(run, calibrator, split))
                for metric, value in found.items():
                    yield {**here, "split": split, "metric": metric, **_exactly(value), "n": card.n_samples}
            if truth is not None:
                found = truth_scores(judge.predictions(run, calibrator, "test"), truth)
                for metric, value in found.items():
                    yield {**here, "split": "test", "metric": metric, **_exactly(value), "n": len(truth)}
        for name, scores in run.scores().detection.items():
            for by in FOREIGN:
                one = scores[by]["ood_auroc"]
                yield {
                    **about,
                    "calibrator": "identity",
                    "split": f"test-{name}",
                    "metric": f"ood_auroc_{by}",
                    **_ends(one),
                    "n": "",
                }


def _exactly(value: float) -> dict[str, float]:
    """Give a number without an interval of its own; its scatter is that over seeds."""
    return {"value": value, "low": value, "high": value}


def _ends(one: Any) -> dict[str, float]:
    return {"value": one.value, "low": one.low, "high": one.high}


def curve_rows(benchmark: str, group: RunGroup) -> Iterator[dict[str, Any]]:
    """Give one row per run and epoch."""
    for label, seed, run in once(group):
        for row in run.history():
            kept = {key: float(f"{row[key]:.5g}") for key in CURVES if row.get(key) is not None}
            yield {"benchmark": benchmark, "method": label, "seed": seed, "epoch": row["epoch"], **kept}


def advisor_rows(benchmark: str, group: RunGroup, judge: Judge) -> Iterator[dict[str, Any]]:
    """Give one row per run and candidate of the advisor."""
    for label, seed, run in once(group):
        if judge.asks(seed):
            for trial in judge.advised(run).trials:
                yield {"benchmark": benchmark, "method": label, "seed": seed, **trial}


def further_sets(run: RunFolder) -> list[str]:
    """Name the test sets of a run on which calibration can be judged, beside test."""
    return [f"test-{name}" for name, shift in run.shifts().items() if shift.kind != "ood"]


def write_machines(benchmark: str, runs: Sequence[RunFolder], commit: str) -> None:
    """Write down where and with what the seeds were run, in place of what was known of them."""
    environment = read_json(runs[0].path / "environment.json")
    fresh = {
        "seeds": sorted({run.spec().seed for run in runs}),
        "commit": commit,
        "torch": environment["packages"]["torch"],
        "capability": torch.backends.cpu.get_cpu_capability(),
        **{key: environment[key] for key in ("python", "packages", "system", "cores", "threads", "data")},
    }
    file = HERE / folder_of(benchmark) / "machines.json"
    known = read_json(file)["machines"] if file.exists() else []
    kept = [{**one, "seeds": sorted({*one["seeds"]} - {*fresh["seeds"]})} for one in known]
    write_json(file, {"machines": [one for one in kept if one["seeds"]] + [fresh]})


def main() -> int:
    """Write the files of each benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmarks", nargs="+")
    parser.add_argument("--runs", type=Path, required=True, help="folder of runs, as given to run.py")
    parser.add_argument(
        "--advise", type=int, nargs="*", help="seeds whose runs the advisor is asked about; all by default"
    )
    parser.add_argument(
        "--data", help="folder that holds the datasets, for human votes on those of benchmark c"
    )
    parser.add_argument("--commit", help="what the runs were made with; by default what is checked out")
    args = parser.parse_args()
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    )
    commit = args.commit or head.stdout.strip()
    for benchmark in args.benchmarks:
        group = gather(benchmark, args.runs)
        judge = Judge(args.runs.parent / "advised", further_sets(group.runs[0]), args.advise)
        by, folder = ("method", "seed"), folder_of(benchmark)
        add(
            f"{folder}/runs.csv",
            run_rows(benchmark, group, commit),
            by=by,
            repeated=("run", "chosen", "temperature"),
        )
        if benchmark not in SECOND:  # whose thousands of trials would fill megabytes
            add(f"{folder}/curves.csv", curve_rows(benchmark, group), by=by)
            add(f"{folder}/advisor.csv", advisor_rows(benchmark, group, judge), by=by)
        scores = add(
            f"{folder}/scores.csv", score_rows(benchmark, group, judge, args.data), by=(*by, "calibrator")
        )
        asked = families(group, judge.further)
        pairs = add(f"{folder}/paired.csv", paired(asked, group, judge), by=(*KEYS, "seed"))
        found = list(differences(benchmark, pairs))
        write(f"{folder}/differences.csv", found)
        write(f"{folder}/ranks.csv", ranks(benchmark, scores, {row["method"] for row in found}))
        write_machines(benchmark, group.runs, commit)
    for home in (HERE, HERE / "second"):
        tasks = {
            file.parent.name: read(str(file.with_name("scores.csv")))
            for file in sorted(home.glob("*/runs.csv"))
        }
        if tasks:
            write(str((home / "wins.csv").relative_to(HERE)), wins(tasks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
