"""Coverage and level where rows depend on each other: pixels of 20 images, posts of 100 authors of uneven diligence.

Run: python benchmarks/cluster_coverage.py [--sets 1000]

Data sets are drawn whose rows are correlated within clusters, and scored with and without clusters. A 95% interval
should contain the true value in 95% of data sets, and a test at the 5% level should reject a true hypothesis in 5%.
Columns: coverage by metric; how often calibration is rejected, of all rows and of any predicted class; and how often
two equally good models are called different, by metric. Overconfident models should be rejected.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from helpers.cluster_trials import AUTHORS, IMAGES, METRICS, simulate


def print_table(n_sets: int) -> None:
    """Print coverage and levels of both designs, with clusters and without."""
    print(f"{n_sets} data sets per line; percent")
    heads = [*METRICS, "reject", "class", *(f"!{key}" for key in ("accuracy", "nll", "brier", "ece"))]
    print(f"{'':48}" + " ".join(f"{head:>9}" for head in heads), flush=True)
    for design in (IMAGES, AUTHORS):
        for sharpness, what in ((1.0, "calibrated"), (2.0, "overconfident")):
            for clustered in (True, False):
                found = simulate(design, sharpness=sharpness, n_sets=n_sets, clustered=clustered)
                shares = (*found.coverage.values(), found.consistency, found.slices, *found.compare.values())
                line = f"{design.name}, {what}, {'clusters' if clustered else 'rows'}"
                print(f"{line:48}" + " ".join(f"{100 * share:9.1f}" for share in shares), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100, help="Data sets per line.")
    print_table(parser.parse_args().sets)
