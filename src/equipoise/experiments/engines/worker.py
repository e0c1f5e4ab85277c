"""A worker process: takes runs from its parent one by one, and does not outlive it.

It is a program of its own (``python -m equipoise.experiments.engines.worker``), so that the parent may be a script, a
notebook or a pipe. Jobs come as lines on standard input; answers are lines of JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import time
import warnings
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, TextIO

from equipoise.core.atomic_files import write_text
from equipoise.experiments.runs.stages import run
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.specs.scoring import ScoringOptions
from equipoise.kernels.locks import LockWarning
from equipoise.training.processes import is_first_process

#: The variable that names the process which started torchrun.
OWNER = "EQUIPOISE_OWNER"

__all__ = ["OWNER", "decode_job", "die_with_parent", "encode_job", "main", "work"]


def work(spec: Spec, folder: str, scoring: ScoringOptions, execution: Execution) -> str:
    """Do one run; return the folder's path."""
    return str(run(spec, Path(folder), scoring=scoring, execution=execution).path)


def encode_job(spec: Spec, folder: Path, scoring: ScoringOptions, execution: Execution) -> str:
    """Return a job as one line; it is read by a process that this one started, and by nobody else."""
    return b64encode(pickle.dumps((spec, str(folder), scoring, execution))).decode()


def decode_job(line: str) -> tuple[Spec, str, ScoringOptions, Execution]:
    """Return the job of a line.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> job = decode_job(encode_job(spec, Path("runs"), ScoringOptions(), Execution()))
        >>> job == (spec, "runs", ScoringOptions(), Execution())
        True
    """
    job: tuple[Spec, str, ScoringOptions, Execution] = pickle.loads(b64decode(line))  # noqa: S301 - our own process
    return job


def die_with_parent() -> None:
    """End this process soon after its parent has gone, so that a killed comparison leaves nobody at work.

    A process that torchrun started also ends when the process has gone that started torchrun.
    """
    parent, owner = os.getppid(), int(os.environ.get(OWNER, "0"))

    def watch() -> None:
        while os.getppid() == parent and (not owner or _is_alive(owner)):
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="watch-parent").start()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _send_lock_warnings(answers: TextIO) -> None:
    """Let the parent report that a lock is waited for; nobody reads what a worker prints."""
    others = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if issubclass(category, LockWarning):
            answers.write(json.dumps({"warning": str(message)}) + "\n")
        else:
            others(message, category, *place, **options)

    warnings.simplefilter("always", LockWarning)
    warnings.showwarning = show


def _answer(line: str) -> dict[str, str]:
    try:
        return {"path": work(*decode_job(line))}
    except Exception as error:  # noqa: BLE001 - the parent reports it; the next job may be fine
        return {"error": f"{error}" or type(error).__name__}


def main() -> None:
    """Answer jobs until there are no more; or one job from a file into another, together with other processes."""
    die_with_parent()
    if len(sys.argv) == 3:
        job, answer = map(Path, sys.argv[1:])
        found = _answer(job.read_text(encoding="utf-8"))
        if is_first_process():
            write_text(answer, json.dumps(found))
        return
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(
        sys.stderr.fileno(), sys.stdout.fileno()
    )  # whatever a library prints must not look like an answer
    _send_lock_warnings(answers)
    for line in sys.stdin:
        answers.write(json.dumps(_answer(line)) + "\n")


if __name__ == "__main__":
    main()
