"""How fast a large Parquet file is audited, and in how much memory, beside a bare read of the same file.

    python benchmarks/audit.py [--rows 2000000] [--classes 10] [--repeats 3]

Every run is a process of its own, so that its peak memory is its own; runs take turns, and the fastest of each counts.
Each loads its libraries and compiled code before the clock starts. `command` is the whole of `equipoise audit`, from
the start of the interpreter to the last line printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BARE = """
import pyarrow.parquet as pq
def work(path):
    for batch in pq.ParquetFile(path).iter_batches(batch_size=1 << 18):
        batch.num_rows
"""
READ = """
from equipoise import iter_predictions
def work(path):
    for chunk in iter_predictions(path):
        len(chunk)
"""
AUDIT = """
from equipoise import iter_predictions
from equipoise.evaluate import audit
def work(path):
    audit(iter_predictions(path))
"""
COMMAND = """
from equipoise.cli import main
def work(path):
    main(["audit", path, "--quiet"])
"""
CLOCK = """
import json, resource, sys, time
path, small = sys.argv[1:]
if small:
    work(small)
start, used = time.perf_counter(), time.process_time()
work(path)
seconds, used = time.perf_counter() - start, time.process_time() - used
print(json.dumps([seconds, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""
RUNS = {"bare pyarrow": BARE, "read and checked": READ, "audited": AUDIT}


def write(path: Path, n_rows: int, n_classes: int) -> None:
    """Write probabilities of an over-confident model, one column per class, piece by piece."""
    generator = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, 1 << 19):
        n = min(1 << 19, n_rows - start)
        logits = generator.normal(size=(n, n_classes)).astype(np.float32) * 3
        labels = (logits / 2 + generator.gumbel(size=logits.shape)).argmax(1)
        probs = np.exp(logits - logits.max(1, keepdims=True))
        probs /= probs.sum(1, keepdims=True)
        columns = {f"prob_{k}": probs[:, k] for k in range(n_classes)} | {"label": labels}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def run(program: str, path: Path, small: str) -> tuple[float, float, int]:
    words = [sys.executable, "-c", program + CLOCK, str(path), small]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    seconds, used, memory = json.loads(done.stdout.splitlines()[-1])
    return seconds, used, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "large.parquet", Path(folder) / "small.parquet"
        write(path, options.rows, options.classes)
        write(small, 20_000, options.classes)
        found: dict[str, list[tuple[float, float, int]]] = {name: [] for name in RUNS}
        for _ in range(options.repeats):
            for name, program in RUNS.items():
                found[name].append(run(program, path, str(small)))
        found["command"] = [run(COMMAND, path, "")]
        size, data = path.stat().st_size / 1e6, options.rows * (4 * options.classes + 8) / 1e6
    print(
        f"{options.rows:,} rows, {options.classes} classes: {size:.0f} MB on disk, {data:.0f} MB of numbers"
    )
    print(f"{'':18}{'seconds':>9}{'CPU':>8}{'MB/s file':>11}{'x bare':>8}{'x read':>8}{'peak memory':>14}")
    fastest = {name: min(seconds for seconds, _, _ in runs) for name, runs in found.items()}
    for name, runs in found.items():
        used, memory = min(used for _, used, _ in runs), max(memory for _, _, memory in runs)
        seconds = fastest[name]
        print(
            f"{name:18}{seconds:>9.2f}{used:>8.2f}{size / seconds:>11.0f}{seconds / fastest['bare pyarrow']:>8.2f}"
            f"{seconds / fastest['read and checked']:>8.2f}{memory / 1e6:>11.0f} MB"
        )


if __name__ == "__main__":
    main()
