"""Cells of ``auto``: data, network and recipe of a benchmark, with the budget of four trainings of cross-entropy.

python evidence/auto_cells.py e2 --seeds 0 1 2 --data ~/data --out ~/evidence-runs/auto

Specs of comparisons cannot name ``auto``, since it is not one training. It fits a calibrator of its own on ``tune`` and
``calib`` together, so no rows are left for thresholds and sets, and its cells have no endpoints of decisions.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from run import comparisons
from submissions import in_order, paired_rows, read_reference, shared_draws
from tidy import add, folder_of, read

from equipoise import Predictions, auto, load_model, score
from equipoise.data import Dataset
from equipoise.experiments import Execution, Spec
from equipoise.experiments.build.data import data_of

METRICS = ("accuracy", "nll", "brier", "ece", "debiased_ece", "smece", "auroc", "aurc")
#: Trainings of cross-entropy: as many as every tuned method has settings.
BUDGET = 4
#: Trainings of one cell have seeds in a row, and no two cells share one.
SEEDS_APART = 100


def predictions(
    spec: Spec, data: Dataset, seed: int, root: str, folder: Path
) -> tuple[Predictions, dict[str, Any]]:
    """Return the predictions on ``test`` of what ``auto`` chose, and what it took.

    Args:
        spec: Of cross-entropy on the benchmark.
        data: Its data.
        seed: Of the cell.
        root: Folder that holds the datasets.
        folder: Where the answer goes.
    """
    table = spec.to_table()
    found = auto(
        table["data"],
        table["model"],
        budget=BUDGET,
        folder=folder,
        recipe=table["recipe"],
        overrides=[("seed", SEEDS_APART * seed)],
        execution=Execution(root=root, threads=1),
        quiet=True,
    )
    rows = data.rows("test")
    probs = load_model(found.artifact).predict_proba(data.inputs[rows])
    made = Predictions(probs=probs, labels=data.labels[rows].numpy(), ids=rows.numpy(), split="test")
    about = {
        "chosen": found.test.answer.label,
        "cost": found.cost["trainings"],
        "seconds": found.cost["seconds"],
    }
    return in_order(made), about


def score_rows(about: dict[str, Any], found: Predictions) -> Iterator[dict[str, Any]]:
    """Yield the scores of a cell."""
    card = score(found, n_resamples=300)
    for metric in METRICS:
        ends = {key: getattr(card[metric], key) for key in ("value", "low", "high")}
        yield {**about, "calibrator": "own", "split": "test", "metric": metric, **ends, "n": len(found)}


def main() -> int:
    """Do what is left."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--data", required=True, help="folder that holds the datasets")
    parser.add_argument("--out", type=Path, required=True, help="folder of answers")
    args = parser.parse_args()
    root, out = str(Path(args.data).expanduser().resolve()), args.out.expanduser().resolve()
    os.chdir(root)  # paths of tables in specs are relative to it
    benchmark, folder = args.benchmark, folder_of(args.benchmark)
    spec, reference = comparisons(benchmark, [0])[0].specs[0], read_reference(benchmark)
    data, done = data_of(spec, Execution(root=root)), {row["seed"] for row in read(f"{folder}/auto.csv")}
    for seed in args.seeds:
        if seed not in done:
            found, facts = predictions(spec, data, seed, root, out / benchmark / str(seed))
            about = {"benchmark": benchmark, "method": "auto", "seed": seed, **facts}
            by = ("method", "seed", "metric")
            add(f"{folder}/auto.csv", score_rows(about, found), by=by)
            add(
                f"{folder}/auto_paired.csv",
                paired_rows("auto", {seed: shared_draws(found)}, reference),
                by=by,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
