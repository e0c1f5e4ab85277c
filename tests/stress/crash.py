"""Kill a comparison at random moments, run the same command again, and compare with an undisturbed one, bit for bit.

Run: python tests/stress/crash.py [--kills 30]
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = """
name = "crash"
data = {{ name = "digits", options = {{ noise = 0.3 }} }}
model = {{ name = "mlp", options = {{ hidden = [64] }} }}
method = ["ce", "adafocal", "cals_alm", "mutual_learning"]
seed = [0, 1]
recipe = {{ name = "quick", epochs = {epochs} }}
"""


def command(spec: Path, out: Path) -> list[str]:
    words = ["compare", str(spec), "--out", str(out), "--workers", "2", "--resamples", "50", "--quiet"]
    return [sys.executable, "-m", "equipoise", *words]


def files_of(folder: Path) -> dict[str, bytes]:
    """What must be equal: scores, predictions and fitted maps of every run, and the results."""
    of_runs = ("scores/*.json", "scores.csv", "predictions/*.npz", "calibrators/*")
    kinds = (*(f"*/{kind}" for kind in of_runs), "*.results.csv", "*.differences.csv", "*.table.md")
    found = sorted(file for kind in kinds for file in folder.glob(kind))
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def left_behind(folder: Path) -> list[str]:
    """Temporary files that nobody cleans up."""
    return [str(file) for file in folder.rglob(".*") if file.is_file() and file.name != ".lock"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    base = Path(tempfile.mkdtemp(prefix="equipoise-crash-"))
    spec = base / "crash.toml"
    spec.write_text(SPEC.format(epochs=options.epochs))
    start = time.monotonic()
    subprocess.run(command(spec, base / "straight"), check=True, stdout=subprocess.DEVNULL)
    length = time.monotonic() - start
    print(f"undisturbed: {length:.1f} s")
    killed = 0
    while killed < options.kills:
        process = subprocess.Popen(
            command(spec, base / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(timeout=moments.uniform(0.05, 0.5) * length)
            print(f"finished after {killed} kills; starting over")
            compared = files_of(base / "killed") == files_of(base / "straight")
            print("equal, bit for bit" if compared else "DIFFERENT")
            if not compared:
                return 1
            shutil.rmtree(base / "killed")
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
            print(f"kill {killed}: {len(files_of(base / 'killed'))} files so far")
    subprocess.run(command(spec, base / "killed"), check=True, stdout=subprocess.DEVNULL)
    straight, disturbed = files_of(base / "straight"), files_of(base / "killed")
    different = sorted(name for name in straight | disturbed if straight.get(name) != disturbed.get(name))
    print(f"{len(straight)} files compared, {len(different)} different after {options.kills} kills")
    for name in different[:10]:
        print("  ", name)
    print(f"temporary files left behind: {len(left_behind(base / 'killed'))}")
    shutil.rmtree(base)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
