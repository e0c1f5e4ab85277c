"""How long commands take over folders of many finished runs: CPU time of whole commands, start-up included.

Run: python benchmarks/run_folders.py [--runs 144] [--rows 10000]
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from equipoise import Predictions
from equipoise.experiments import RunFolder, ScoringOptions, Spec, write_spec
from equipoise.experiments.runs.scoring import score_run
from equipoise.experiments.runs.stages import store_predictions

METHODS = [
    "ce",
    "focal",
    "label_smoothing",
    "brier",
    "dual_focal",
    "mbls",
    "entropy",
    "cpc",
    "flsd",
    "adafocal",
    "ce+mdca",
    "ce+mmce",
]
COMMANDS = (["table"], ["table", "--verify"], ["runs"], ["runs", "--verify"], ["report", "-o", "{out}"])


def spec_of(number: int) -> Spec:
    """Return the spec of a run."""
    return Spec.from_table(
        {
            "data": "digits",
            "model": "mlp",
            "method": METHODS[number % len(METHODS)],
            "seed": number // len(METHODS),
        }
    )


def make_template(folder: Path, n_rows: int) -> RunFolder:
    """Write a finished run with given predictions; nothing is trained."""
    run = RunFolder(folder / "template")
    run.path.mkdir()
    write_spec(spec_of(0), run.path / "spec.toml")
    run.write_record("started", ["spec.toml"])
    (run.path / "history.csv").write_text("epoch,loss,tune_ece,seconds\n0,1.0,0.2,3.0\n")
    run.write_record("trained", ["history.csv"])
    rng = np.random.default_rng(0)
    parts = []
    for split in ("tune", "calib", "test"):
        logits = 2 * rng.normal(size=(n_rows, 10))
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
        parts.append(Predictions(logits=1.5 * logits, labels=labels, split=split))
    store_predictions(run, parts)
    score_run(run, spec_of(0), ScoringOptions(), score_pixels=lambda _: {})
    return run


def make_runs(folder: Path, n_runs: int, n_rows: int) -> None:
    """Fill a folder with finished runs of several methods and seeds."""
    with tempfile.TemporaryDirectory() as place:
        template = make_template(Path(place), n_rows)
        for number in range(n_runs):
            spec = spec_of(number)
            run = RunFolder(folder / spec.identity)
            shutil.copytree(template.path, run.path)
            (run.path / "manifest.json").unlink()
            write_spec(spec, run.path / "spec.toml")
            for stage, record in template.manifest().stages.items():
                run.write_record(stage, **record)


def cpu_seconds(words: list[str]) -> float:
    """Return the CPU time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "equipoise", *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the CPU time of each command, the best of three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=144)
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "runs"
        folder.mkdir()
        make_runs(folder, args.runs, args.rows)
        print(f"{args.runs} runs, {args.rows:,} x 10 predictions per split")
        for command, *options in COMMANDS:
            words = [command, str(folder), *(one.format(out=f"{place}/report.html") for one in options)]
            best = min(cpu_seconds(words) for _ in range(3))
            print(f"{' '.join([command, *options]):40} {best:6.2f} s")


if __name__ == "__main__":
    main()
