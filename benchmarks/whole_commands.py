"""What users wait for: whole commands, from the start of the interpreter to the last line, with what peers take.

    python benchmarks/whole_commands.py [--repeats 3] [--scale 1] [--only audit|score]

Times are CPU seconds on one thread, so that other work on the machine matters little; runs of one case take turns, and
the fastest of each counts. Only ratios of the same run mean anything. Peers compute one number, an expected calibration
error of 15 bins; `audit` reports about twenty, with intervals, a test and slices, and `score` about twenty with
intervals. `--scale 0.1` uses a tenth of the rows.

`score` is also measured with as many threads as torch uses by default. CPU time then includes threads that wait for
others, which takes torch several times as long where an operation is short. *In a loop* is the time of the numbers
alone once a process has worked on 100 million numbers, as a training loop has: small inputs then have compiled sums.

The peers, pandas, DuckDB and torchmetrics, are installed with `pip install 'equipoise[bench]'`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from files import Cost, cost_of, write_probs, write_top1

#: Expected calibration error of a file with a column per class, or with a confidence.
PANDAS = """
import sys
import numpy as np, pandas as pd
table = pd.read_csv(sys.argv[1])
probs, labels = table.filter(like="p_").to_numpy(), table["label"].to_numpy()
confidence, correct = probs.max(1), probs.argmax(1) == labels
bins = np.ceil(confidence * 15).astype(int)
gaps = np.bincount(bins, confidence - correct)
print(np.abs(gaps).sum() / len(labels))
"""
DUCKDB = """
import sys
import duckdb
duckdb.sql("set threads to 1")
path = sys.argv[1]
names = [name for name in duckdb.sql(f"select * from '{path}' limit 0").columns]
classes = [name for name in names if name.startswith("p_")]
if classes:
    top = f"greatest({', '.join(classes)})"
    right = "case label " + " ".join(f"when {n} then {name}" for n, name in enumerate(classes)) + f" end = {top}"
else:
    top, right = "confidence", "pred_label = true_label"
print(duckdb.sql(f'''
    with rows as (select {top} as confidence, ({right})::int as correct from '{path}')
    select sum(abs(gap)) / sum(n) from (
        select sum(confidence - correct) as gap, count(*) as n from rows group by ceil(confidence * 15))
''').fetchall())
"""

#: In one process, after a first call: CPU seconds of `score`, of its numbers alone, and of a peer's ECE.
SCORE = """
import sys, time
import numpy as np, torch
from torchmetrics.functional.classification import multiclass_calibration_error
from equipoise import Predictions, score
from equipoise.evaluate import score_values
n, k, repeats, threads = map(int, sys.argv[1:])
torch.set_num_threads(threads or torch.get_num_threads())
generator = np.random.default_rng(0)
logits = 2 * generator.normal(size=(n, k)).astype(np.float32)
labels = (logits / 1.5 + generator.gumbel(size=logits.shape)).argmax(1)
probs, truth = torch.softmax(torch.from_numpy(logits), 1), torch.from_numpy(labels)
def ours(function):
    function(Predictions(logits=logits, labels=labels))
def peer():
    multiclass_calibration_error(torch.from_numpy(logits).softmax(1), truth, num_classes=k, n_bins=15)
jobs = {"intervals": lambda: ours(score), "plain": lambda: ours(score_values), "torchmetrics": peer}
best = dict.fromkeys(jobs, float("inf"))
for number in range(repeats + 1):
    for name, job in jobs.items():
        start = time.process_time()
        job()
        best[name] = min(best[name], time.process_time() - start) if number else best[name]
for _ in range(100_000_000 // (n * k)):
    jobs["plain"]()
best["loop"] = float("inf")
for _ in range(10 * repeats):
    start = time.process_time()
    jobs["plain"]()
    best["loop"] = min(best["loop"], time.process_time() - start)
print(torch.get_num_threads(), *best.values())
"""


def audit_cases(folder: Path, scale: float) -> list[tuple[str, Path, dict[str, str], float]]:
    """Return each case: its title, its file, the programs of its peers, and the bar in CPU seconds."""
    large, small, wide, top1 = (
        folder / name for name in ("large.csv", "small.csv", "wide.parquet", "top1.parquet")
    )
    rows = {name: round(n * scale) for name, n in (("large", 1e6), ("wide", 2e6), ("top1", 2e7))}
    write_probs(large, rows["large"], 10)
    write_probs(small, 1000, 10)
    write_probs(wide, rows["wide"], 10)
    write_top1(top1, rows["top1"])
    both = {"pandas": PANDAS, "DuckDB": DUCKDB}
    return [
        (f"audit, CSV, {rows['large']:,} x 10", large, both, 2.0 * scale),
        (f"audit, Parquet, {rows['wide']:,} x 10", wide, {"DuckDB": DUCKDB}, 2.0 * scale),
        (f"audit, top-1 Parquet, {rows['top1']:,}", top1, {"DuckDB": DUCKDB}, 5.0 * scale),
        ("audit, CSV, 1,000 x 10", small, both, 1.0),
    ]


def run_audits(repeats: int, scale: float) -> None:
    print(
        f"{'command':36}{'CPU s':>8}{'bar':>6}{'MB':>7}   peers: CPU s, and how many times that the command takes"
    )
    with tempfile.TemporaryDirectory() as name:
        for title, path, peers, bar in audit_cases(Path(name), scale):
            jobs = {"": ["-m", "equipoise", "audit", str(path)]}
            jobs |= {peer: ["-c", program, str(path)] for peer, program in peers.items()}
            cost_of(jobs[""])  # compiles what is compiled once per installation
            found: dict[str, list[Cost]] = {job: [] for job in jobs}
            for _ in range(repeats):
                for job, words in jobs.items():
                    found[job].append(cost_of(words))
            best = {job: min(cost.cpu for cost in costs) for job, costs in found.items()}
            ratios = "  ".join(f"{peer} {best[peer]:.2f}, {best[''] / best[peer]:.1f} x" for peer in peers)
            memory = max(cost.memory for cost in found[""]) / 1e6
            print(f"{title:36}{best['']:>8.2f}{bar:>6.1f}{memory:>7.0f}   {ratios}", flush=True)


def run_scores(repeats: int) -> None:
    columns = (
        "threads",
        "1,000 resamples",
        "numbers alone",
        "in a loop",
        "torchmetrics",
        "ratios",
        "bars",
    )
    print(f"\n{'score, CPU ms':16}" + "".join(f"{column:>21}" for column in columns))
    for n, k, bars in ((10_000, 10, (6.0, 1.5)), (100_000, 100, (1.5, 0.6)), (50_000, 1000, (1.5, 0.8))):
        for threads in (1, 0):
            words = [sys.executable, "-c", SCORE, *map(str, (n, k, repeats, threads))]
            environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=environment)
            used, *times = done.stdout.split()
            intervals, plain, peer, loop = (1000 * float(value) for value in times)
            ratios = f"{intervals / peer:.2f} / {plain / peer:.2f} / {loop / peer:.2f}"
            found = (
                used,
                f"{intervals:.1f}",
                f"{plain:.1f}",
                f"{loop:.1f}",
                f"{peer:.1f}",
                ratios,
                f"{bars[0]} / {bars[1]}",
            )
            print(f"{f'{n:,} x {k}':16}" + "".join(f"{value:>21}" for value in found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", choices=("audit", "score"))
    options = parser.parse_args()
    if options.only != "score":
        run_audits(options.repeats, options.scale)
    if options.only != "audit":
        run_scores(options.repeats)


if __name__ == "__main__":
    main()
