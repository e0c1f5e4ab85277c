"""Run the comparisons of a benchmark, seed by seed; what is finished is left alone, what was stopped goes on.

python evidence/run.py a ap --seeds 0 1 2 --data ~/data --out ~/evidence-runs/runs --workers 2
python evidence/run.py e2 --methods focal --seeds 0 --data ~/data --out ~/evidence-runs/runs --commit
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tidy import folder_of

from equipoise.experiments import ComparisonSpec, Execution, ScoringOptions, Spec, prepare, read_comparison
from equipoise.experiments.engines import run_locally
from equipoise.experiments.tuning.samplers import first_settings

HERE = Path(__file__).resolve().parent
SPECS = HERE / "specs"
BASELINE = "ce"


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
    tuned = [one for one in comparison.tuned if one.label in methods]
    return {*methods} | {one.method_at(setting).label for one in tuned for setting in first_settings(one)}


def scoring_of(comparison: ComparisonSpec, args: argparse.Namespace) -> ScoringOptions:
    """Give how the runs of a comparison are scored."""
    return ScoringOptions(
        calibrators=comparison.calibrators, shift=comparison.shift, n_resamples=args.resamples
    )


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
    failed = {}
    todo = list(queue(args.benchmarks, args.seeds, args.methods))
    execution = Execution(root=args.data, threads=1, keep_memory=True)
    for scoring, group in groupby(todo, key=lambda pair: scoring_of(pair[0], args)):
        specs = prepare([spec for _, spec in group], execution=execution)
        summary = run_locally(specs, args.out, scoring=scoring, execution=execution, workers=args.workers)
        failed.update(summary.failed)
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
