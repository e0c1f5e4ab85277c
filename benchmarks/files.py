"""Generated files of predictions for benchmarks, and the cost of a process that reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

_PIECE = 1 << 19


class Cost(NamedTuple):
    """What one process took: CPU seconds, seconds by the clock, and the most bytes of memory."""

    cpu: float
    wall: float
    memory: int


def write_probs(path: Path, n_rows: int, n_classes: int) -> None:
    """Write probabilities of an overconfident model, one column per class, to a CSV or Parquet file, piece by piece."""
    generator = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, _PIECE):
        n = min(_PIECE, n_rows - start)
        logits = 2 * generator.normal(size=(n, n_classes)).astype(np.float32)
        labels = (logits / 1.5 + generator.gumbel(size=logits.shape)).argmax(1)
        probs = np.exp(logits - logits.max(1, keepdims=True))
        probs /= probs.sum(1, keepdims=True)
        writer = _write(writer, path, {f"p_{k}": probs[:, k] for k in range(n_classes)} | {"label": labels})
    if writer is not None:
        writer.close()


def write_top1(path: Path, n_rows: int, *, n_files: int = 1) -> list[Path]:
    """Write predicted classes, confidences and labels to Parquet files; return their paths."""
    generator = np.random.default_rng(0)
    paths = [path] if n_files == 1 else [path.with_name(f"{path.stem}-{n}.parquet") for n in range(n_files)]
    for number, one in enumerate(paths):
        writer, left = None, n_rows * (number + 1) // n_files - n_rows * number // n_files
        while left:
            n = min(_PIECE, left)
            confidence = (0.2 + 0.8 * generator.random(n)).astype(np.float32)
            predicted = generator.integers(0, 10, n)
            labels = np.where(generator.random(n) < confidence**1.5, predicted, (predicted + 1) % 10)
            columns = {"pred_label": predicted, "confidence": confidence, "true_label": labels}
            writer, left = _write(writer, one, columns), left - n
        if writer is not None:
            writer.close()
    return paths


def _write(writer: object, path: Path, columns: dict[str, np.ndarray]) -> object:
    table = pa.table(columns)
    if writer is None:
        kinds = {".csv": pa.csv.CSVWriter, ".parquet": pq.ParquetWriter}
        writer = kinds[path.suffix](path, table.schema)
    writer.write_table(table)
    return writer


def cost_of(words: list[str], *, threads: int = 1) -> Cost:
    """Run Python with these words as a process of its own and return what it took; raise if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    clock = (
        "import json, resource, subprocess, sys, time\n"
        "start = time.perf_counter()\n"
        "done = subprocess.run([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "wall = time.perf_counter() - start\n"
        "print(json.dumps([used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024, done.returncode]))\n"
    )
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            [sys.executable, "-c", clock, *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=True,
            env=environment,
        )
        errors.seek(0)
        cpu, wall, memory, code = json.loads(done.stdout)
        if code:
            raise SystemExit(f"{' '.join(words)[:200]} failed:\n{errors.read()}")
    return Cost(cpu, wall, int(memory))
