"""What happens to processes: they are killed while writing, the disk is full, they fork after using threads."""

import contextlib
import errno
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from equipoise import Predictions, read_predictions, write_predictions
from equipoise.calibrators import VectorScaling, load
from equipoise.core.atomic_files import write_text
from equipoise.core.reading.formats import WRITERS
from equipoise.metrics import CalibrationState
from equipoise.training.checkpoint import read_checkpoint, write_checkpoint
from helpers.calibration_data import sample
from helpers.hostile_files import made
from stress.judge import Wrong, in_child

Write = Callable[[Path], None]

LOGITS, LABELS = sample(60, 3)
ROWS = made("probs", 3000)
MAP = VectorScaling().fit(LOGITS, LABELS)
TENSORS = {"weights": torch.arange(20_000.0)}

#: By ending: how a file is written, and how it is read and found whole.
WRITES: dict[str, tuple[Write, Callable[[Path], object]]] = {
    **{ending: (lambda path: write_predictions(ROWS, path), read_predictions) for ending in WRITERS},
    ".json": (MAP.save, load),
    ".pt": (lambda path: write_checkpoint(path, TENSORS), read_checkpoint),
    ".txt": (lambda path: write_text(path, "whole" * 10_000), lambda path: path.read_text().index("whole")),
}


def prepare_writes(folder: Path) -> None:
    for ending, (write, read) in WRITES.items():
        write(folder / f"a{ending}")
        read(folder / f"a{ending}")


def try_kill(_: None, chance: np.random.Generator, folder: Path) -> None:
    """Kill a process that writes one file again and again: the file is there whole."""
    ending = str(chance.choice(list(WRITES)))
    write, read = WRITES[ending]
    path = folder / f"a{ending}"
    write(path)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            while True:
                write(path)
        os._exit(0)
    time.sleep(float(chance.uniform(0.0, 0.05)))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    read(path)
    if any(not file.name.startswith(".") for file in folder.iterdir() if file != path):
        raise Wrong("half a file is left under a name that is not hidden")


def try_full_disk(_: None, chance: np.random.Generator, folder: Path) -> None:
    """Writing stops after some bytes: the old file stays, nothing else is left, and the error names the file."""
    ending = str(chance.choice(list(WRITES)))
    write, _ = WRITES[ending]
    path = folder / f"named{ending}"
    write(path)
    before = path.read_bytes()
    limit = int(chance.integers(0, len(before)))

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        write(path)

    code, said = in_child(full)
    if code == 0:
        raise Wrong(f"{ending}: written, although only {limit} of {len(before)} bytes could be")
    if not said.startswith("ours") and f"[Errno {errno.EFBIG}]" not in said:
        raise Wrong(f"{ending}: {said}")
    if path.name not in said:
        raise Wrong(f"{ending}: the error does not name the file: {said}")
    if path.read_bytes() != before:
        raise Wrong(f"{ending}: the old file is gone")
    if list(folder.iterdir()) != [path]:
        raise Wrong(f"{ending}: left behind: {[file.name for file in folder.iterdir()]}")


def prepare_forks(folder: Path) -> Predictions:
    logits, labels = sample(40_000, 10)
    rows = Predictions(logits=logits.astype(np.float32), labels=labels)
    torch.set_num_threads(2)
    CalibrationState.of(rows)
    return rows


def try_fork(rows: Predictions, chance: np.random.Generator, folder: Path) -> None:
    """After the parent used two threads, a forked child computes the same, and ends."""
    n = int(chance.integers(1000, 40_000))
    part = rows.take(slice(0, n))
    wanted = _numbers(part)

    def again() -> None:
        found = _numbers(Predictions(logits=np.array(part.scores), labels=part.labels))
        if not np.allclose(found, wanted, rtol=1e-9):
            raise Wrong(f"{found} in the child, {wanted} in the parent")

    code, said = in_child(again, seconds=20)
    if code:
        raise Wrong(f"the child ended with {code}: {said}")


def _numbers(rows: Predictions) -> list[float]:
    from equipoise import score

    card = score(rows, n_resamples=1 if len(rows) % 2 else 5)
    return [float(card[name].value) for name in ("accuracy", "nll", "ece")]
