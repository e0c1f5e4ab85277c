"""The stress campaign: random tries of every kind in ``kinds.py``, from a seed, in watched processes.

A failure is an exception that is not of this package, a wrong number, a hang, too much memory, or the death of the
process. It is printed with the command that repeats it. ``test_stress.py`` makes a few of the same tries every day.

Run: python tests/stress [--minutes 30] [--jobs 2] [--seed 0] [--kind files ...]
     python tests/stress --kind files --seed 0 --number 123
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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# This folder is a package of tests; its files must not be found as modules of their own.
sys.path[:] = [str(ROOT / "src"), str(ROOT / "tests"), *(p for p in sys.path if Path(p).name != "stress")]
PATIENCE = 240.0  # seconds without output, on a machine that may be busy
MEMORY = 4 << 30


def work(name: str, seed: int, first: int, last: int) -> bool:
    """Make tries one after another; print the start and the outcome of each; return whether all went well."""
    from stress.judge import judge
    from stress.kinds import KINDS

    kind, fine = KINDS[name], True
    with tempfile.TemporaryDirectory(prefix="equipoise-stress-") as base:
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
            fine = fine and wrong is None
            print(f"{'wrong ' + wrong if wrong else 'right'}", flush=True)
    return fine


def compile_kernels() -> None:
    """Compile every kernel before the first try: this is done once per machine, and is not part of a try."""
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
    """One worker process and its output; death and silence count as output too."""

    def __init__(self, name: str, seed: int, first: int, last: int, folder: Path) -> None:
        words = [sys.executable, str(Path(__file__).parent), "--kind", name, "--seed", str(seed)]
        threads = "2" if name == "forks" else "1"
        self.process = subprocess.Popen(
            [*words, "--work", str(first), str(last)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": threads, "TMPDIR": str(folder)},
            start_new_session=True,
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def line(self, patience: float) -> str:
        """Return the next line, or what became of the process instead."""
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


@dataclass
class Outcome:
    """What came of one kind: tries, failures by the number of their try, seconds on the clock."""

    tries: int = 0
    failures: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0


def campaign(name: str, seed: int, *, seconds: float, folder: Path) -> Outcome:
    """Make tries of one kind until the time is over."""
    outcome, start = Outcome(), time.monotonic()
    end = start + seconds
    while time.monotonic() < end:
        worker = Watched(name, seed, outcome.tries, outcome.tries + 10**9, folder)
        try:
            line = worker.line(600)  # imports and preparation
            while line.startswith("try ") and time.monotonic() < end:
                answer = worker.line(PATIENCE)
                number, outcome.tries = int(line[4:]), int(line[4:]) + 1
                if answer.startswith("wrong"):
                    outcome.failures[number] = answer.removeprefix("wrong ")
                    print(f"  {repeat(name, seed, number)}: {outcome.failures[number]}", flush=True)
                    if worker.process.poll() is not None or "no end" in answer or " of memory" in answer:
                        break
                line = worker.line(PATIENCE)
            else:
                if line.startswith("wrong"):
                    outcome.failures[-1] = f"before the first try: {line.removeprefix('wrong ')}"
                    print(f"  {name}: {outcome.failures[-1]}", flush=True)
                    break
        finally:
            worker.end()
    outcome.seconds = time.monotonic() - start
    return outcome


def repeat(name: str, seed: int, number: int) -> str:
    return f"python tests/stress --kind {name} --seed {seed} --number {number}"


def run_all(names: Sequence[str], seed: int, *, minutes: float, jobs: int) -> dict[str, Outcome]:
    """Give every kind the same share of the time; several kinds run side by side."""
    share = 60 * minutes * jobs / len(names)
    with (
        tempfile.TemporaryDirectory(prefix="equipoise-campaign-", ignore_cleanup_errors=True) as base,
        ThreadPoolExecutor(jobs) as pool,
    ):
        found = {name: pool.submit(campaign, name, seed, seconds=share, folder=Path(base)) for name in names}
        return {name: outcome.result() for name, outcome in found.items()}


def print_table(outcomes: dict[str, Outcome]) -> None:
    print(f"\n{'kind':<14}{'tries':>8}{'failures':>10}{'seconds':>9}")
    for name, outcome in outcomes.items():
        print(f"{name:<14}{outcome.tries:>8}{len(outcome.failures):>10}{outcome.seconds:>9.0f}")
        texts = collections.Counter(text[:80] for text in outcome.failures.values())
        for text, count in texts.most_common(8):
            print(f"    {count:>4} x {text}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/stress", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="for all kinds together")
    parser.add_argument("--jobs", type=int, default=2, help="kinds that run at the same time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", help="only this kind; may be repeated")
    parser.add_argument("--number", type=int, help="repeat this try, in this process")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work or options.number is not None:
        first, last = options.work or (options.number, options.number + 1)
        return int(not work(options.kind[0], options.seed, first, last))
    from stress.kinds import KINDS

    names = options.kind or list(KINDS)
    if unknown := [name for name in names if name not in KINDS]:
        parser.error(f"no kind {unknown[0]!r}; known: {', '.join(KINDS)}")
    compile_kernels()
    jobs = max(1, min(options.jobs, len(names)))
    outcomes = run_all(names, options.seed, minutes=options.minutes, jobs=jobs)
    print_table(outcomes)
    return int(any(outcome.failures for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
