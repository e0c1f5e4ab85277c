"""How an audit grows with its rows: generated Parquet files, streamed, on one and two threads and on Ray.

    python benchmarks/scale.py [--most 1e7] [--files 8] [--no-ray]

The rows are a predicted class, its confidence and the true class, in several files that count as one stream. Every line
is one process from start to end. Time per row should fall or stay flat, and memory should not grow. Ray starts a worker
per CPU, whose CPU time and memory are not in the table. `--most 1e8` writes 600 MB.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from pathlib import Path

from files import cost_of, write_top1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=float, default=1e7, help="rows of the largest audit")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--no-ray", action="store_true")
    options = parser.parse_args()
    ways = {"1 thread": (1, []), "2 threads": (2, [])}
    if not options.no_ray:
        ways["Ray"] = (1, ["--engine", "ray"])
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    print(f"{'rows':>12} {'on':14}{'seconds':>9}{'CPU s':>8}{'ns per row':>12}{'MB':>7}")
    n_rows = 100_000
    while n_rows <= options.most:
        with tempfile.TemporaryDirectory() as folder:
            paths = write_top1(Path(folder) / "rows.parquet", n_rows, n_files=options.files)
            for name, (threads, words) in ways.items():
                command = ["-m", "equipoise", "audit", *map(str, paths), *words]
                cost = cost_of(command, threads=threads)
                print(
                    f"{n_rows:>12,} {name:14}{cost.wall:>9.1f}{cost.cpu:>8.1f}{1e9 * cost.cpu / n_rows:>12,.0f}"
                    f"{cost.memory / 1e6:>7.0f}",
                    flush=True,
                )
        n_rows *= 10


if __name__ == "__main__":
    main()
