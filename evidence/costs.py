"""Measure what a step of every method costs: epochs of all methods in turn, in the processor's time.

python evidence/costs.py a --data ~/data

Runs of evidence share their machine, and what one of them took says as much about the others: the same training took a
quarter more or less. Here all methods take turns, and each is compared with cross-entropy in the same turn.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from run import comparisons
from tidy import write

from equipoise.core.progress import progress
from equipoise.experiments import Execution, Spec
from equipoise.experiments.build.run_parts import Built, build
from equipoise.training import Hardware, fit

BASELINE = "ce"
KEPT = Hardware(accelerator="cpu", devices=1, keep_memory=True)


def methods(benchmark: str) -> dict[str, Spec]:
    """Give one spec per method; other settings of the same method cost what it costs."""
    found: dict[str, Spec] = {}
    for comparison in comparisons(benchmark, [0]):
        for spec in comparison.specs:
            if spec.training == comparison.specs[0].training:
                found.setdefault(spec.method.name, spec)
    return {spec.method.label: spec for spec in found.values()}


def epoch_seconds(built: Built) -> float:
    """Train for one epoch and give the processor's time from its first batch to its last, without scoring on tune."""
    stamps = []

    def stamped(batches: Any) -> Iterator[Any]:
        stamps.append(time.process_time())
        yield from batches
        stamps.append(time.process_time())

    fit(
        built.objective,
        lambda **where: stamped(built.train(**where)),
        epochs=1,
        tune=built.tune,
        hardware=KEPT,
        quiet=True,
    )
    return stamps[-1] - stamps[0]


def costs(benchmark: str, turns: Sequence[Mapping[str, float]]) -> Iterator[dict[str, Any]]:
    """Give one row per method: its step in steps of cross-entropy, the median over turns and their middle half."""
    for label in turns[0]:
        ratios = [turn[label] / turn[BASELINE] for turn in turns]
        low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
        yield {
            "benchmark": benchmark,
            "method": label,
            "step": middle,
            "low": low,
            "high": high,
            "turns": len(turns),
        }


def main() -> int:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark")
    parser.add_argument("--data", required=True, help="folder that holds the datasets")
    parser.add_argument("--turns", type=int, default=9)
    args = parser.parse_args()
    torch.set_num_threads(1)
    built = {label: build(spec, Execution(root=args.data)) for label, spec in methods(args.benchmark).items()}
    turns = [
        {label: epoch_seconds(one) for label, one in built.items()}
        for _ in progress(range(args.turns + 1), label="turns", unit="turns")
    ]
    write(f"{args.benchmark}/costs.csv", costs(args.benchmark, turns[1:]))  # the first turn warms up
    return 0


if __name__ == "__main__":
    sys.exit(main())
