"""Run the comparisons of a benchmark, seed by seed; what is finished is left alone, what was stopped goes on.

python evidence/run.py a ap --seeds 0 1 2 --data ~/data --out ~/evidence-runs/runs --workers 2
python evidence/run.py e2 --methods focal --seeds 0 --data ~/data --out ~/evidence-runs/runs --commit
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from tidy import folder_of

from equipoise.experiments import (
    ComparisonSpec,
    Execution,
    RunFolder,
    ScoringOptions,
    Spec,
    find_runs,
    prepare,
    read_comparison,
)
from equipoise.experiments.engines import run_locally
from equipoise.experiments.specs.tuning import TunedMethod
from equipoise.experiments.tuning.choices import SeedChoice
from equipoise.experiments.tuning.samplers import first_settings
from equipoise.experiments.tuning.study import Study, choose_setting

HERE = Path(__file__).resolve().parent
SPECS = HERE / "specs"
BASELINE = "ce"
#: Settings that are only tried need no intervals.
TRIAL_RESAMPLES = 1

Failed = dict[str, str]


def comparisons(benchmark: str, seeds: Sequence[int] | None = None) -> list[ComparisonSpec]:
    """Read the comparisons of a benchmark, in the order of their names; with other seeds than they say, if given."""
    files = sorted(SPECS.glob(f"{benchmark}-*.toml"))
    if not files:
        known = sorted({file.name.partition("-")[0] for file in SPECS.glob("*.toml")})
        raise SystemExit(f"no benchmark {benchmark!r}; there are {', '.join(known)}")
    overrides = [] if seeds is None else [f"seed={list(seeds)}"]
    return [read_comparison(file, overrides=overrides) for file in files]


def queue(
    benchmarks: Sequence[str], seeds: Sequence[int], methods: Sequence[str] = ()
) -> Iterator[tuple[ComparisonSpec, Spec]]:
    """Give every run once, all of the first seed before any of the next, so that whoever stops has whole seeds."""
    seen = set()
    for seed in seeds:
        for benchmark in benchmarks:
            for comparison in comparisons(benchmark, [seed]):
                wanted = labels_of(comparison, methods)
                for spec in comparison.specs:
                    if spec.identity not in seen and (not methods or spec.method.label in wanted):
                        seen.add(spec.identity)
                        yield comparison, spec


def labels_of(comparison: ComparisonSpec, methods: Sequence[str]) -> set[str]:
    """Return the labels of the runs of methods: of one whose setting is chosen, all settings."""
    return {*methods} | trials_of([one for one in comparison.tuned if one.label in methods])


def trials_of(tuned: Sequence[TunedMethod]) -> set[str]:
    """Return the labels of the settings that are tried."""
    return {one.method_at(setting).label for one in tuned for setting in first_settings(one)}


def finished_runs(folder: Path) -> dict[str, RunFolder]:
    """Return the finished runs of a folder by the identity of what was asked for."""
    found = find_runs(folder) if folder.is_dir() and any(folder.iterdir()) else []
    return {asked(run.spec()).identity: run for run in found if run.is_finished()}


def has_intervals(run: RunFolder) -> bool:
    """Whether a run was scored to be shown, and not only to be chosen among."""
    scored = run.record("scored") or {}
    return bool(scored) and scored["settings"]["n_resamples"] > TRIAL_RESAMPLES


def asked(spec: Spec) -> Spec:
    """Give a stored spec as it was asked for: without the digest of its data."""
    return replace(spec, data=replace(spec.data, digest=None))


def choices_of(
    comparison: ComparisonSpec, seeds: Sequence[int], there: Mapping[str, RunFolder]
) -> Iterator[SeedChoice]:
    """Choose a setting of every tuned method for each seed that has all of its runs.

    Args:
        comparison: The comparison.
        seeds: The seeds.
        there: Finished runs by the identity of what was asked for.
    """
    runs = {run.name: run for run in there.values()}
    listed = [
        there[s.identity].name
        for s in comparison.specs
        if s.identity in there and s.method.label in comparison.methods
    ]
    for tuned in comparison.tuned:
        for seed in seeds:
            study = Study(tuned, replace(comparison.specs[0], seed=seed))
            tried = [spec.identity for spec in study.ask()]
            names = [there[name].name if name in there else name for name in tried]
            if all(name in runs for name in names):
                yield choose_setting(study, names, runs, listed)


def scoring_of(comparison: ComparisonSpec, args: argparse.Namespace) -> ScoringOptions:
    """Give how the runs of a comparison are scored."""
    return ScoringOptions(
        calibrators=comparison.calibrators, shift=comparison.shift, n_resamples=args.resamples
    )


def do_trials(todo: Sequence[tuple[ComparisonSpec, Spec]], args: argparse.Namespace) -> Failed:
    """Train the settings that are tried and not yet finished; they are scored without intervals and shifts."""
    there = finished_runs(Path(args.out))
    left = [
        (comparison, spec)
        for comparison, spec in todo
        if spec.identity not in there and spec.method.label in trials_of(comparison.tuned)
    ]

    def plain(comparison: ComparisonSpec) -> ScoringOptions:
        return ScoringOptions(calibrators=comparison.calibrators, n_resamples=TRIAL_RESAMPLES)

    return do(left, plain, args)


def do_shown(todo: Sequence[tuple[ComparisonSpec, Spec]], args: argparse.Namespace) -> Failed:
    """Run what results are shown of: methods of their own, and the chosen settings."""
    there = finished_runs(Path(args.out))
    chosen = {
        choice.runs[choice.index]
        for comparison in {id(comparison): comparison for comparison, _ in todo}.values()
        for choice in choices_of(comparison, [comparison.specs[0].seed], there)
        if choice.index is not None
    }
    shown = [
        (comparison, spec)
        for comparison, spec in todo
        if spec.method.label not in trials_of(comparison.tuned)
        or (spec.identity in there and there[spec.identity].name in chosen)
    ]
    return do(shown, lambda comparison: scoring_of(comparison, args), args)


def do(
    todo: Sequence[tuple[ComparisonSpec, Spec]],
    scoring_of: Callable[[ComparisonSpec], ScoringOptions],
    args: argparse.Namespace,
) -> Failed:
    """Do what is left of runs, and return what failed and why."""
    failed = {}
    execution = Execution(root=args.data, threads=1, keep_memory=True)
    for scoring, group in groupby(todo, key=lambda pair: scoring_of(pair[0])):
        specs = prepare([spec for _, spec in group], execution=execution)
        summary = run_locally(specs, args.out, scoring=scoring, execution=execution, workers=args.workers)
        failed.update(summary.failed)
    return failed


def main() -> int:
    """Do what is left."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmarks", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", default=[], help="labels of methods; by default all")
    parser.add_argument("--data", required=True, help="folder that holds the datasets")
    parser.add_argument("--out", required=True, help="folder of runs")
    parser.add_argument("--workers", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument(
        "--commit",
        action="store_true",
        help="then collect the finished runs and commit the files of the benchmarks",
    )
    args = parser.parse_args()
    if args.commit and args.methods and BASELINE not in args.methods:
        args.methods = [BASELINE, *args.methods]  # differences are paired with it
    args.data, args.out = (str(Path(path).expanduser().resolve()) for path in (args.data, args.out))
    os.chdir(args.data)  # paths of tables in specs are relative to it
    failed: Failed = {}
    for seed in args.seeds:  # whoever stops has whole seeds
        todo = list(queue(args.benchmarks, [seed], args.methods))
        failed |= do_trials(todo, args)
        failed |= do_shown(todo, args)
    for label, why in failed.items():
        print(f"failed: {label}: {why}", file=sys.stderr)
    if failed:
        return 1
    if args.commit:
        commit(args)
    return 0


def commit(args: argparse.Namespace) -> None:
    """Collect what is finished, and commit the files of the benchmarks."""
    words = [*args.benchmarks, "--runs", args.out, "--data", args.data, "--advise", *map(str, args.seeds)]
    subprocess.run([sys.executable, str(HERE / "collect.py"), *words], check=True)
    folders = [folder_of(one) for one in args.benchmarks]
    wins = {HERE / Path(folder).parent / "wins.csv" for folder in folders}
    paths = [*folders, *(str(file) for file in wins if file.exists())]
    subprocess.run(["git", "add", "--", *paths], cwd=HERE, check=True)
    seeds = ", ".join(map(str, args.seeds))
    message = f"Add evidence of {', '.join(args.benchmarks)}, seeds {seeds}"
    subprocess.run(["git", "commit", "--quiet", "-m", message, "--", *paths], cwd=HERE, check=True)


if __name__ == "__main__":
    sys.exit(main())
