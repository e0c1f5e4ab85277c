"""Ensembles made from networks that were trained anyway: each leaves out one seed of a method.

python evidence/seed_ensembles.py c2 --methods ce ema --runs ~/evidence-runs/runs --commit

Five seeds give five ensembles of four networks. They share members, so they scatter less than new ensembles would.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from acting import endpoint_rows
from collect import gather
from tidy import HERE, add, folder_of

from equipoise import Predictions
from equipoise.experiments import RunFolder

SPLITS = ("tune", "calib", "test")


def mean_of(runs: Sequence[RunFolder], split: str) -> Predictions:
    """Return the mean of the probabilities of several runs, on the same rows."""
    parts = [run.predictions(split) for run in runs]
    if len({part.fingerprint for part in parts}) > 1:
        raise SystemExit(f"{split}: the runs predicted other rows.")
    probs = np.mean([np.asarray(part.probs, np.float64) for part in parts], axis=0)
    return parts[0].with_scores(probs=probs)


def ensemble_rows(benchmark: str, method: str, runs: dict[int, RunFolder]) -> Iterator[dict[str, Any]]:
    """Score the ensembles of a method that leave out one seed each."""
    for left_out in sorted(runs):
        members = [run for seed, run in sorted(runs.items()) if seed != left_out]
        about = {
            "benchmark": benchmark,
            "method": f"{method}_seeds",
            "seed": left_out,
            "members": len(members),
        }
        yield from endpoint_rows(about, {split: mean_of(members, split) for split in SPLITS})


def main() -> int:
    """Write the file of each benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmarks", nargs="+")
    parser.add_argument("--methods", nargs="+", default=["ce", "ema"])
    parser.add_argument("--runs", type=Path, required=True, help="folder of runs, as given to run.py")
    parser.add_argument("--commit", action="store_true", help="commit the files")
    args = parser.parse_args()
    for benchmark in args.benchmarks:
        group = gather(benchmark, args.runs)
        file = f"{folder_of(benchmark)}/seed_ensembles.csv"
        for method in args.methods:
            runs = {group.specs[run.name].seed: run for run in group.methods[method]}
            if len(runs) < 3:
                raise SystemExit(
                    f"{method}: three seeds are needed, got {len(runs)}. evidence/run.py makes them."
                )
            add(file, ensemble_rows(benchmark, method, runs), by=("method", "seed", "calibrator"))
        if args.commit:
            subprocess.run(["git", "add", "--", file], cwd=HERE, check=True)
            message = f"Add ensembles of seeds of {benchmark}"
            subprocess.run(["git", "commit", "--quiet", "-m", message, "--", file], cwd=HERE, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
