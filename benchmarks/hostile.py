"""The hostile campaign: damaged files, absurd arrays, forged artifacts, kills, a full disk, forks; seeded and watched.

Every try runs in a process that is watched from outside: an exception that is not ours, a wrong number, a hang, more
than 2 GB of memory or the death of the process is a failure, and is printed with the command that repeats it. The
same tries, fewer of them, are in tests/hostile.

Run: python benchmarks/hostile.py [--minutes 30] [--seed 0] [--kind files ...]
     python benchmarks/hostile.py --kind files --seed 0 --number 123
"""

import argparse
import collections
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
PATIENCE = 60.0  # seconds on the clock without a sign, on a machine that may be busy
MEMORY = 4 << 30


def work(name: str, seed: int, first: int, last: int) -> None:
    """Make tries one after another, and say of each that it begins and how it ended."""
    from hostile.campaign import judge
    from hostile.kinds import KINDS

    kind = KINDS[name]
    with tempfile.TemporaryDirectory(prefix="equipoise-hostile-") as base:
        folder = Path(base, "prepared")
        folder.mkdir()
        try:
            prepared = kind.prepare(folder)
        except Exception as error:
            print(f"wrong {type(error).__name__}: {error}", flush=True)
            raise
        for number in range(first, last):
            print(f"try {number}", flush=True)
            wrong = judge(kind, prepared, seed, number, Path(base))
            print(f"{'wrong ' + wrong if wrong else 'right'}", flush=True)


def compile_kernels() -> None:
    """Let every kernel be there before the first try: compiling is done once per machine, and is no part of a try."""
    import numpy as np

    from equipoise import Predictions, score
    from equipoise.calibrators import TemperatureScaling
    from equipoise.evaluate.slices import SliceSums
    from equipoise.kernels.dispatch import use_backend, why_fallback

    if why_fallback():
        return
    chance = np.random.default_rng(0)
    with use_backend("compiled"):
        for kind in ("float32", "float64"):
            logits = chance.normal(size=(1 << 18, 4)).astype(kind)
            labels = chance.integers(0, 4, len(logits))
            given = [Predictions(logits=logits, labels=labels)]
            given.append(Predictions(probs=given[0].probs.astype(kind), labels=labels))
            for predictions in given:
                score(predictions, n_resamples=1)
                SliceSums().update(predictions, np.zeros(len(labels), int))
            for criterion in ("nll", "ece"):
                TemperatureScaling(criterion=criterion).fit(logits, labels)


class Watched:
    """One working process and what it says; its death or silence is an answer too."""

    def __init__(self, name: str, seed: int, first: int, last: int) -> None:
        words = [sys.executable, __file__, "--kind", name, "--seed", str(seed)]
        self.process = subprocess.Popen(
            [*words, "--work", str(first), str(last)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "2" if name == "forks" else "1"},
            start_new_session=True,
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def line(self, patience: float) -> str:
        """The next line, or what became of the process instead."""
        assert self.process.stdout is not None
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if self.selector.select(timeout=0.2):
                line = self.process.stdout.readline().decode()
                return line.strip() or f"wrong the process ended with {self.process.wait()}"
            if self.memory() > MEMORY:
                return f"wrong more than {MEMORY >> 30} GB of memory"
        return f"wrong no end after {patience:.0f} s"

    def memory(self) -> int:
        with contextlib.suppress(OSError, IndexError):
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096
        return 0

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def campaign(name: str, seed: int, *, seconds: float) -> tuple[int, dict[int, str]]:
    """Make tries of one kind until the time is over; return their number and the failures."""
    number, failures, end = 0, {}, time.monotonic() + seconds
    while time.monotonic() < end:
        worker = Watched(name, seed, number, number + 10**9)
        try:
            line = worker.line(600)  # importing and preparing
            while line.startswith("try ") and time.monotonic() < end:
                number = int(line[4:]) + 1
                answer = worker.line(PATIENCE)
                if answer.startswith("wrong"):
                    failures[number - 1] = answer.removeprefix("wrong ")
                    print(f"  {repeat(name, seed, number - 1)}: {failures[number - 1]}", flush=True)
                    if worker.process.poll() is not None or "no end" in answer or " of memory" in answer:
                        break
                line = worker.line(PATIENCE)
            else:
                if line.startswith("wrong"):
                    failures[-1] = f"before the first try: {line.removeprefix('wrong ')}"
                    break
        finally:
            worker.end()
    return number, failures


def repeat(name: str, seed: int, number: int) -> str:
    return f"--kind {name} --seed {seed} --number {number}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="for all kinds together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", help="this one; may be repeated")
    parser.add_argument("--number", type=int, help="repeat this try, in this process")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.kind[0], options.seed, *options.work)
        return 0
    if options.number is not None:
        work(options.kind[0], options.seed, options.number, options.number + 1)
        return 0
    from hostile.kinds import KINDS

    compile_kernels()
    names = options.kind or list(KINDS)
    rows = {}
    for name in names:
        print(name, flush=True)
        rows[name] = campaign(name, options.seed, seconds=60 * options.minutes / len(names))
    print(f"\n{'kind':<14}{'tries':>8}{'failures':>10}")
    for name, (tries, failures) in rows.items():
        print(f"{name:<14}{tries:>8}{len(failures):>10}")
        for text, count in collections.Counter(text[:60] for text in failures.values()).most_common(8):
            print(f"    {count:>4} x {text}")
    return int(any(failures for _, failures in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
