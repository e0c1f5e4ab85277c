"""Gradient boosting on the two table tasks: the rows, budget and endpoints of the networks there.

python evidence/boosting.py t1 t2 --seeds 0 1 2 3 4 5 6 7 8 9 --data ~/data --commit

Splits are those of the specs of t1 and t2. What is written for a seed stays; the same command goes on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from acting import endpoint_rows
from numpy.typing import NDArray
from run import comparisons
from sklearn.ensemble import HistGradientBoostingClassifier
from tidy import HERE, add, read

from equipoise import Predictions
from equipoise.data import Dataset
from equipoise.experiments import Execution
from equipoise.experiments.build.data import data_of
from equipoise.experiments.tuning.study import scale_half
from equipoise.metrics import negative_log_likelihood

FILE = "second/boosting/scores.csv"
#: As many settings as every method has.
LEARNING_RATES = (0.02, 0.05, 0.1, 0.2)
N_TREES, N_MEMBERS = 200, 5

Scores = dict[str, NDArray[np.float64]]


def rows_of(data: Dataset, split: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return features and labels of a split."""
    rows = data.rows(split)
    return np.asarray(data.inputs[rows]), data.labels[rows].numpy()


def probabilities(data: Dataset, rate: float, seed: int) -> Scores:
    """Train once, and return the probabilities of the other splits."""
    model = HistGradientBoostingClassifier(
        learning_rate=rate, max_iter=N_TREES, max_features=0.5, early_stopping=False, random_state=seed
    )
    model.fit(*rows_of(data, "train"))
    return {split: model.predict_proba(rows_of(data, split)[0]) for split in ("tune", "calib", "test")}


def predictions(data: Dataset, probs: Scores) -> dict[str, Predictions]:
    """Return probabilities with their labels."""
    return {
        split: Predictions(
            probs=part, labels=rows_of(data, split)[1], ids=data.rows(split).numpy(), split=split
        )
        for split, part in probs.items()
    }


def score_cell(
    benchmark: str, data: Dataset, method: str, seed: int, settings: Sequence[Scores]
) -> Iterator[dict[str, Any]]:
    """Choose a setting on ``tune`` and score it after each calibrator."""
    tried = [predictions(data, probs) for probs in settings]
    best = int(np.argmin([negative_log_likelihood(scale_half(one["tune"])[0]) for one in tried]))
    found = tried[best]
    about = {
        "benchmark": benchmark,
        "method": method,
        "seed": seed,
        "chosen": f"learning_rate={LEARNING_RATES[best]}",
    }
    yield from endpoint_rows(about, found)


def main() -> int:
    """Do what is left."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmarks", nargs="+", choices=["t1", "t2"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--data", required=True, help="folder that holds the datasets")
    parser.add_argument("--commit", action="store_true", help="commit the file after each seed")
    args = parser.parse_args()
    args.data = str(Path(args.data).expanduser().resolve())
    os.chdir(args.data)  # paths of tables in specs are relative to it
    done = {(row["benchmark"], int(row["seed"])) for row in read(FILE)}
    for benchmark in args.benchmarks:
        data = data_of(comparisons(benchmark, [0])[0].specs[0], Execution(root=args.data))
        for seed in args.seeds:
            if (benchmark, seed) in done:
                continue
            members = [
                [probabilities(data, rate, N_MEMBERS * seed + one) for one in range(N_MEMBERS)]
                for rate in LEARNING_RATES
            ]
            means = [
                {split: np.mean([one[split] for one in some], axis=0) for split in some[0]}
                for some in members
            ]
            rows = [
                *score_cell(benchmark, data, "boosting", seed, [some[0] for some in members]),
                *score_cell(benchmark, data, "boosting_ensemble", seed, means),
            ]
            add(FILE, rows, by=("benchmark", "method", "seed", "calibrator"))
            if args.commit:
                _commit(benchmark, seed)
    return 0


def _commit(benchmark: str, seed: int) -> None:
    subprocess.run(["git", "add", "--", FILE], cwd=HERE, check=True)
    message = f"Add evidence of boosting on {benchmark}, seed {seed}"
    subprocess.run(["git", "commit", "--quiet", "-m", message, "--", FILE], cwd=HERE, check=True)


if __name__ == "__main__":
    sys.exit(main())
