"""Runs on this machine: in this process, or in several with the cores divided among them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import final

from equipoise.core.child_processes import SAFE_PATH
from equipoise.experiments.engines.progress import RunSummary, StatusLine
from equipoise.experiments.engines.worker import encode_job
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.single_run import RunOptions, run
from equipoise.experiments.spec import Spec
from equipoise.kernels.locks import LockWarning
from equipoise.training.interruption import Interruption

__all__ = ["fair_threads", "run_locally", "usable_cores"]

_TRIES = 3
_LAST_WORDS = 3


def usable_cores() -> int:
    """Return how many cores this process may use, which in a container may be fewer than the machine has.

    Example:
        >>> usable_cores() >= 1
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fair_threads(n_workers: int, *, cores: int | None = None) -> int:
    """Return how many threads each of several workers gets.

    Example:
        >>> fair_threads(2, cores=5)
        2
    """
    return max(1, (cores or usable_cores()) // n_workers)


def run_locally(
    specs: Sequence[Spec], folder: str | os.PathLike[str], *, options: RunOptions, workers: int | None = None
) -> RunSummary:
    """Do all runs on this machine.

    Finished runs are passed over, half-finished ones go on. A run that fails does not stop the others. The number of
    threads per run depends on the number of workers alone, so the same command gives the same numbers.

    Args:
        specs: What to run.
        folder: Where run folders are.
        options: What does not change results.
        workers: Processes; by default one per core, but no more than runs. One works in this process.

    Returns:
        What is done, and what failed and why.
    """
    base = Path(folder)
    n_workers = min(workers or usable_cores(), len(specs)) or 1
    options = replace(options, threads=options.threads or fair_threads(n_workers))
    line = StatusLine(specs, base, quiet=options.quiet)
    line.tell_finished(specs)
    if n_workers == 1:
        return _one_by_one(specs, base, options, line)
    return _side_by_side(specs, base, replace(options, quiet=True), line, n_workers)


def _one_by_one(specs: Sequence[Spec], base: Path, options: RunOptions, line: StatusLine) -> RunSummary:
    report = RunSummary()
    for spec in specs:
        line.tell(f"{len(report.done) + len(report.failed) + 1}/{len(specs)} {spec.label}")
        try:
            report.done.append(run(spec, base, options=options))
        except Exception as error:  # noqa: BLE001 - it is kept in the run's folder; the next run may be fine
            report.failed[spec.label] = str(error) or type(error).__name__
            line.tell(f"failed: {spec.label}: {report.failed[spec.label]}")
    return report


def _side_by_side(
    specs: Sequence[Spec], base: Path, options: RunOptions, line: StatusLine, n_workers: int
) -> RunSummary:
    crew = _Crew(specs, base, options, line)
    threads = [threading.Thread(target=crew.serve, name=f"worker-{n}", daemon=True) for n in range(n_workers)]
    for thread in threads:
        thread.start()
    try:
        with Interruption() as interruption:
            while any(thread.is_alive() for thread in threads):
                line.show(done=len(crew.report.done), running=list(crew.running.values()))
                time.sleep(0.25)
                if interruption.heard:
                    interruption.leave()
    except BaseException:
        crew.dismiss()
        raise
    finally:
        line.clear()
    return crew.report


@final
class _Crew:
    """Workers that share one queue of runs; each is served by a thread of this process."""

    def __init__(self, specs: Sequence[Spec], base: Path, options: RunOptions, line: StatusLine) -> None:
        self._waiting = deque(specs)
        self._base, self._options, self._line, self._total = base, options, line, len(specs)
        self._deaths: dict[str, int] = {}
        self._processes: set[_Worker] = set()
        self._dismissed = False
        self.report = RunSummary()
        self.running: dict[int, Spec] = {}

    def serve(self) -> None:
        """Hand runs to a worker until none is left; replace the worker if it dies."""
        worker = None
        while not self._dismissed:
            try:
                spec = self._waiting.popleft()
            except IndexError:
                break
            self.running[threading.get_ident()] = spec
            try:
                worker = self._hire(worker)
                self._take(spec, worker.ask(encode_job(spec, self._base, self._options)), worker)
            except Exception as error:  # noqa: BLE001 - a run that cannot be started is a run that failed
                self._fail(spec, str(error) or type(error).__name__)
            self.running.pop(threading.get_ident(), None)
        if worker is not None:
            worker.close()
            self._processes.discard(worker)

    def _hire(self, worker: _Worker | None) -> _Worker:
        """Return a worker that lives: this one, or a new one in its place."""
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:
            worker.close()
        new = _Worker(self._options.threads)
        self._processes.add(new)
        return new

    def _take(self, spec: Spec, answer: dict[str, str] | None, worker: _Worker) -> None:
        if answer is None:
            deaths = self._deaths[spec.identity] = self._deaths.get(spec.identity, 0) + 1
            self._processes.discard(worker)
            if self._dismissed:
                return
            if deaths < _TRIES:
                self._waiting.append(spec)
            else:
                sentence = f"its process died {deaths} times{worker.last_words()}"
                self._remember(spec, sentence)
                self._fail(spec, sentence)
        elif "error" in answer:
            self._fail(spec, answer["error"])
        else:
            self.report.done.append(RunFolder(Path(answer["path"])))
            self._line.tell(f"{len(self.report.done)}/{self._total} done: {spec.label}")

    def _remember(self, spec: Spec, sentence: str) -> None:
        """Keep in the run's folder what its dead process could not write."""
        folder = RunFolder(self._base / spec.identity)
        if folder.path.exists():
            folder.note_failure("process", RuntimeError(sentence), sentence)

    def _fail(self, spec: Spec, sentence: str) -> None:
        self.report.failed[spec.label] = sentence
        self._line.tell(f"failed: {spec.label}: {sentence}")

    def dismiss(self) -> None:
        """Ask all workers to save and leave."""
        self._dismissed = True
        self._waiting.clear()
        leaving = list(self._processes)
        for worker in leaving:
            worker.terminate()
        for worker in leaving:
            worker.wait(timeout=30)


@final
class _Worker:
    """A worker process. It has a session of its own: a Ctrl-C reaches it through its parent, once."""

    def __init__(self, threads: int) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "equipoise.experiments.engines.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                text=True,
                env={**os.environ, **SAFE_PATH, "OMP_NUM_THREADS": str(threads)},
                start_new_session=True,
            )
        except OSError:
            self._words.close()
            raise

    def is_alive(self) -> bool:
        """Whether it can take a job."""
        return self._process.poll() is None

    def ask(self, job: str) -> dict[str, str] | None:
        """Give it a job and wait for its answer; None if it died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(job + "\n")
            self._process.stdin.flush()
            while line := self._process.stdout.readline():
                answer: dict[str, str] = json.loads(line)
                if "warning" not in answer:
                    return answer
                warnings.warn(answer["warning"], LockWarning, stacklevel=2)
        except (BrokenPipeError, ValueError):
            pass
        self.wait(timeout=30)
        return None

    def last_words(self) -> str:
        """Return how it died, and the last lines it wrote."""
        code = self._process.returncode
        killed = f", the last time by signal {-code}. Out of memory?" if code and code < 0 else "."
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()[-_LAST_WORDS:]
        return killed + (f" Its last words: {' | '.join(line.strip() for line in lines)}" if lines else "")

    def terminate(self) -> None:
        """Ask it to save and leave."""
        self._process.terminate()

    def wait(self, *, timeout: float) -> None:
        """Wait until it is gone; end it if it does not go."""
        try:
            self._process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Let it go; without more jobs it ends by itself."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self._process.wait()
        self._words.close()
