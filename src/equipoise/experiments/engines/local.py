"""Runs on this machine: in this process, or in several with the cores divided among them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, final

from equipoise.core.child_processes import SAFE_PATH
from equipoise.core.errors import SpecError
from equipoise.experiments.engines.gpus import VISIBLE, share_gpus, visible_gpus
from equipoise.experiments.engines.progress import RunSummary, StatusLine
from equipoise.experiments.engines.worker import OWNER, encode_job
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.stages import hardware_of, run
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.specs.scoring import ScoringOptions
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
    specs: Sequence[Spec],
    folder: str | os.PathLike[str],
    *,
    scoring: ScoringOptions,
    execution: Execution,
    workers: int | None = None,
) -> RunSummary:
    """Do all runs on this machine.

    Finished runs are passed over, half-finished ones go on. A run that fails does not stop the others. The number of
    threads per run depends on the number of workers alone, so the same command gives the same numbers.

    Args:
        specs: What to run.
        folder: Where run folders are.
        scoring: How runs are scored.
        execution: How they are executed.
        workers: Processes; by default one per core, but no more than runs. One works in this process.

    Returns:
        What is done, and what failed and why.
    """
    base = Path(folder)
    devices = _devices(specs, execution)
    gpus = visible_gpus(hardware_of(specs[0], execution).accelerator) if specs else []
    usual = min(usable_cores(), len(gpus) // devices or 1) if gpus else usable_cores() // devices or 1
    n_workers = min(workers or usual, len(specs)) or 1
    execution = replace(execution, threads=execution.threads or fair_threads(n_workers * devices))
    line = StatusLine(specs, base, quiet=execution.quiet)
    line.print_finished(specs)
    if n_workers == devices == 1:
        return _one_by_one(specs, base, scoring, execution, line)
    crew = _Crew(specs, base, scoring, replace(execution, quiet=True), line, devices=devices)
    return _side_by_side(crew, line, share_gpus(gpus, n_workers, devices=devices))


def _devices(specs: Sequence[Spec], execution: Execution) -> int:
    """Return how many processes each run has; all runs of a comparison have the same number.

    Raises:
        SpecError: If a run asks for several machines, or torchrun has started several processes here.
    """
    chosen = [execution.over(spec.execution) for spec in specs]
    if any((one.nodes or 1) > 1 for one in chosen):
        raise SpecError(
            "compare: runs of a comparison use one machine each, got `nodes` above 1. Give each machine its part of "
            "the runs with --part, or train one run on several machines with `equipoise train`."
        )
    if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
        raise SpecError(
            "compare: starts the processes of its runs itself, but torchrun has started several. Leave torchrun out "
            "and pass --devices, or give each process its part of the runs with --part."
        )
    return max((one.devices or 1 for one in chosen), default=1)


def _one_by_one(
    specs: Sequence[Spec], base: Path, scoring: ScoringOptions, execution: Execution, line: StatusLine
) -> RunSummary:
    report = RunSummary()
    for spec in specs:
        line.print(f"{len(report.done) + len(report.failed) + 1}/{len(specs)} {spec.label}")
        try:
            report.done.append(run(spec, base, scoring=scoring, execution=execution))
        except Exception as error:  # noqa: BLE001 - it is kept in the run's folder; the next run may be fine
            report.failed[spec.label] = str(error) or type(error).__name__
            line.print(f"failed: {spec.label}: {report.failed[spec.label]}")
    return report


def _side_by_side(crew: _Crew, line: StatusLine, shares: Sequence[str | None]) -> RunSummary:
    threads = [
        threading.Thread(target=crew.serve, args=(gpus,), name=f"worker-{number}", daemon=True)
        for number, gpus in enumerate(shares)
    ]
    for thread in threads:
        thread.start()
    try:
        with Interruption() as interruption:
            while any(thread.is_alive() for thread in threads):
                line.show(done=len(crew.report.done), running=list(crew.running.values()))
                time.sleep(0.25)
                if interruption.signal:
                    interruption.exit()
    except BaseException:
        crew.dismiss()
        raise
    finally:
        line.clear()
    return crew.report


@final
class _Crew:
    """Workers that share one queue of runs; each is served by a thread of this process."""

    def __init__(
        self,
        specs: Sequence[Spec],
        base: Path,
        scoring: ScoringOptions,
        execution: Execution,
        line: StatusLine,
        *,
        devices: int = 1,
    ) -> None:
        self._devices = devices
        self._waiting = deque(specs)
        self._base, self._scoring, self._execution = base, scoring, execution
        self._line, self._total = line, len(specs)
        self._deaths: dict[str, int] = {}
        self._processes: set[_Worker | _Group] = set()
        self._dismissed = False
        self.report = RunSummary()
        self.running: dict[int, Spec] = {}

    def serve(self, gpus: str | None = None) -> None:
        """Hand runs to a worker until none is left; replace the worker if it dies.

        Args:
            gpus: The graphics cards of this worker, by name; None leaves them as they are.
        """
        worker = None
        while not self._dismissed:
            try:
                spec = self._waiting.popleft()
            except IndexError:
                break
            self.running[threading.get_ident()] = spec
            try:
                worker = self._hire(worker, gpus)
                job = encode_job(spec, self._base, self._scoring, self._execution)
                self._take(spec, worker.ask(job), worker)
            except Exception as error:  # noqa: BLE001 - a run that cannot be started is a run that failed
                self._fail(spec, str(error) or type(error).__name__)
            self.running.pop(threading.get_ident(), None)
        if worker is not None:
            worker.close()
            self._processes.discard(worker)

    def _hire(self, worker: _Worker | _Group | None, gpus: str | None) -> _Worker | _Group:
        """Return a worker that lives: this one, or a new one in its place."""
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:
            worker.close()
        environment = {
            **os.environ,
            **SAFE_PATH,
            "OMP_NUM_THREADS": str(self._execution.threads),
            **({} if gpus is None else {VISIBLE: gpus}),
        }
        new = _Worker(environment) if self._devices == 1 else _Group(environment, self._devices)
        self._processes.add(new)
        return new

    def _take(self, spec: Spec, answer: dict[str, str] | None, worker: _Worker | _Group) -> None:
        if answer is None:
            deaths = self._deaths[spec.identity] = self._deaths.get(spec.identity, 0) + 1
            self._processes.discard(worker)
            if self._dismissed:
                return
            if deaths < _TRIES:
                self._waiting.append(spec)
            else:
                sentence = f"its process died {deaths} times{worker.last_words()}"
                self._record_failure(spec, sentence)
                self._fail(spec, sentence)
        elif "error" in answer:
            self._fail(spec, answer["error"])
        else:
            self.report.done.append(RunFolder(Path(answer["path"])))
            self._line.print(f"{len(self.report.done)}/{self._total} done: {spec.label}")

    def _record_failure(self, spec: Spec, sentence: str) -> None:
        """Record in the run's folder what its dead process could not."""
        folder = RunFolder(self._base / spec.identity)
        if folder.path.exists():
            folder.write_error("process", RuntimeError(sentence), sentence)

    def _fail(self, spec: Spec, sentence: str) -> None:
        self.report.failed[spec.label] = sentence
        self._line.print(f"failed: {spec.label}: {sentence}")

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

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "equipoise.experiments.engines.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                text=True,
                env=environment,
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
        return _last_words(self._process.returncode, self._words)

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


@final
class _Group:
    """Several processes that torchrun starts for one run, and that end with it."""

    def __init__(self, environment: Mapping[str, str], devices: int) -> None:
        self._environment, self._devices = environment, devices
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the group
        self._process: subprocess.Popen[bytes] | None = None

    def is_alive(self) -> bool:
        """Whether it can take a job; every job has new processes."""
        return True

    def ask(self, job: str) -> dict[str, str] | None:
        """Start the processes of a job and wait for the answer of the first; None if they died."""
        torchrun = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone"]
        worker = [f"--nproc-per-node={self._devices}", "-m", "equipoise.experiments.engines.worker"]
        with tempfile.TemporaryDirectory() as folder:
            request, answer = Path(folder, "job.json"), Path(folder, "answer.json")
            request.write_text(job, encoding="utf-8")
            self._process = subprocess.Popen(  # noqa: S603 - our own words
                [*torchrun, *worker, str(request), str(answer)],
                stdin=subprocess.DEVNULL,
                stdout=self._words,
                stderr=self._words,
                env={**self._environment, OWNER: str(os.getpid())},
                start_new_session=True,
            )
            self._process.wait()
            if not answer.exists():
                return None
            found: dict[str, str] = json.loads(answer.read_text(encoding="utf-8"))
            return found

    def last_words(self) -> str:
        """Return how it died, and the last lines its processes wrote."""
        return _last_words(None if self._process is None else self._process.returncode, self._words)

    def terminate(self) -> None:
        """Ask all processes to save and leave; torchrun hands the signal on."""
        if self._process is not None:
            self._process.terminate()

    def wait(self, *, timeout: float) -> None:
        """Wait until the processes are gone; end them if they do not go."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        """Let it go."""
        self.wait(timeout=30)
        self._words.close()


def _last_words(code: int | None, words: IO[bytes]) -> str:
    killed = f", the last time by signal {-code}. Out of memory?" if code and code < 0 else "."
    words.seek(0)
    lines = words.read().decode(errors="replace").strip().splitlines()[-_LAST_WORDS:]
    return killed + (f" Its last words: {' | '.join(line.strip() for line in lines)}" if lines else "")
