"""Runs on this machine: in this process, or in several with the cores divided among them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import final

from equipoise.core.errors import EquipoiseError
from equipoise.experiments.engines.progress import Report, StatusLine
from equipoise.experiments.engines.worker import encode_job
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.run import RunOptions, run
from equipoise.experiments.spec import Spec

__all__ = ["fair_threads", "run_locally"]

_TRIES = 3


def fair_threads(n_workers: int, *, cores: int | None = None) -> int:
    """Return how many threads each of several workers gets.

    Example:
        >>> fair_threads(2, cores=5)
        2
    """
    return max(1, (cores or os.cpu_count() or 1) // n_workers)


def run_locally(
    specs: Sequence[Spec], folder: str | os.PathLike[str], *, options: RunOptions, workers: int | None = None
) -> Report:
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
    n_workers = min(workers or os.cpu_count() or 1, len(specs)) or 1
    options = replace(options, threads=options.threads or fair_threads(n_workers))
    line = StatusLine(specs, base, quiet=options.quiet)
    if n_workers == 1:
        return _one_by_one(specs, base, options, line)
    return _side_by_side(specs, base, replace(options, quiet=True), line, n_workers)


def _one_by_one(specs: Sequence[Spec], base: Path, options: RunOptions, line: StatusLine) -> Report:
    report = Report()
    for spec in specs:
        line.tell(f"{len(report.done) + len(report.failed) + 1}/{len(specs)} {spec.label}")
        try:
            report.done.append(run(spec, base, options=options))
        except (EquipoiseError, ValueError, RuntimeError, OSError) as error:
            report.failed[spec.label] = str(error)
            line.tell(f"failed: {spec.label}: {error}")
    return report


def _side_by_side(
    specs: Sequence[Spec], base: Path, options: RunOptions, line: StatusLine, n_workers: int
) -> Report:
    crew = _Crew(specs, base, options, line)
    threads = [threading.Thread(target=crew.serve, name=f"worker-{n}", daemon=True) for n in range(n_workers)]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            line.show(done=len(crew.report.done), running=list(crew.running.values()))
            time.sleep(0.25)
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
        self._processes: set[subprocess.Popen[str]] = set()
        self._dismissed = False
        self.report = Report()
        self.running: dict[int, Spec] = {}

    def serve(self) -> None:
        """Hand runs to a worker until none is left; replace the worker if it dies."""
        process = None
        while not self._dismissed:
            try:
                spec = self._waiting.popleft()
            except IndexError:
                break
            if process is None or process.poll() is not None:
                process = self._hire()
            self.running[threading.get_ident()] = spec
            answer = _ask(process, encode_job(spec, self._base, self._options))
            self._take(spec, answer)
            self.running.pop(threading.get_ident(), None)
        if process is not None:
            _close(process)
            self._processes.discard(process)

    def _hire(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "OMP_NUM_THREADS": str(self._options.threads)}
        process = subprocess.Popen(
            [sys.executable, "-m", "equipoise.experiments.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._processes.add(process)
        return process

    def _take(self, spec: Spec, answer: dict[str, str] | None) -> None:
        if answer is None:
            deaths = self._deaths[spec.identity] = self._deaths.get(spec.identity, 0) + 1
            if deaths < _TRIES:
                self._waiting.append(spec)
            else:
                self._fail(spec, f"its process died {deaths} times. Out of memory?")
        elif "error" in answer:
            self._fail(spec, answer["error"])
        else:
            self.report.done.append(RunFolder(Path(answer["path"])))
            self._line.tell(f"{len(self.report.done)}/{self._total} done: {spec.label}")

    def _fail(self, spec: Spec, sentence: str) -> None:
        self.report.failed[spec.label] = sentence
        self._line.tell(f"failed: {spec.label}: {sentence}")

    def dismiss(self) -> None:
        """Ask all workers to save and leave."""
        self._dismissed = True
        self._waiting.clear()
        for process in list(self._processes):
            process.terminate()
        for process in list(self._processes):
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def _ask(process: subprocess.Popen[str], job: str) -> dict[str, str] | None:
    """Give a worker a job and wait for its answer; None if it died."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(job + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except (BrokenPipeError, ValueError):
        line = ""
    if not line:
        process.kill()
        process.wait()
        return None
    answer: dict[str, str] = json.loads(line)
    return answer


def _close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()
