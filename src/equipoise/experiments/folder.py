"""The run folder: one run, one folder, named by the spec's identity."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from equipoise.core.errors import EquipoiseError, SpecError, require
from equipoise.core.files import write_text
from equipoise.core.predictions import Predictions
from equipoise.core.reading import read_predictions
from equipoise.experiments.soundness import is_whole
from equipoise.experiments.spec import Spec, read_spec

__all__ = ["RunFolder", "Status", "find_runs"]

#: What can be said of a run.
Status = Literal["finished", "trained", "started", "running", "failed", "broken"]


@final
@dataclass(frozen=True)
class RunFolder:
    """One run on disk.

    ::

        spec.toml            what was asked for
        environment.json     versions, machine, threads, the data's fingerprints
        history.csv          one row per epoch
        last.pt, best.pt     checkpoints
        trained.json         written when training is over
        predicted.json       written when all splits are predicted
        scored.json          written when all calibrators are scored
        predictions/*.npz    one file per split
        calibrators/*        fitted maps
        scores/*.csv         one file per calibrator, tidy rows
        error.json           why it failed, if it did

    Attributes:
        path: The folder.

    Example:
        >>> RunFolder(Path("runs/abc")).name
        'abc'
    """

    path: Path

    @property
    def name(self) -> str:
        """The spec's identity."""
        return self.path.name

    def spec(self) -> Spec:
        """Return what was asked for."""
        return read_spec(self.path / "spec.toml")

    def is_trained(self) -> bool:
        """Whether training is over."""
        return is_whole(self.path / "trained.json")

    def is_predicted(self) -> bool:
        """Whether the predictions on all splits are there."""
        file = self.path / "predicted.json"
        if not is_whole(file):
            return False
        splits = json.loads(file.read_text(encoding="utf-8"))["splits"]
        return all(is_whole(self.predictions_file(split)) for split in splits)

    def is_scored(self) -> bool:
        """Whether everything that was asked for last is scored."""
        file = self.path / "scored.json"
        if not is_whole(file):
            return False
        names = json.loads(file.read_text(encoding="utf-8"))["calibrators"]
        return all(is_whole(self.scores_file(name)) for name in names)

    def predictions_file(self, split: str) -> Path:
        """Where the predictions on a split are kept."""
        return self.path / "predictions" / f"{split}.npz"

    def predictions(self, split: str) -> Predictions:
        """Return the predictions on a split."""
        return read_predictions(self.predictions_file(split))

    def splits(self) -> list[str]:
        """Return the splits that have predictions."""
        return sorted(file.stem for file in (self.path / "predictions").glob("*.npz"))

    def scores_file(self, calibrator: str) -> Path:
        """Where the scores after a calibrator are kept."""
        return self.path / "scores" / f"{calibrator}.csv"

    def calibrators(self) -> list[str]:
        """Return the calibrators that were scored, no calibration first."""
        names = sorted(file.stem for file in (self.path / "scores").glob("*.csv"))
        return sorted(names, key=lambda name: name != "identity")

    def scores(self) -> list[dict[str, Any]]:
        """Return all tidy rows."""
        rows: list[dict[str, Any]] = []
        for calibrator in self.calibrators():
            rows += read_rows(self.scores_file(calibrator))
        return rows

    def history(self) -> list[dict[str, Any]]:
        """Return one row per epoch so far."""
        file = self.path / "history.csv"
        return read_rows(file) if file.exists() else []

    def error(self) -> dict[str, Any] | None:
        """Return why it failed, or None."""
        file = self.path / "error.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def damaged(self) -> list[Path]:
        """Return the files that were cut short or overwritten; checkpoints count while they are needed."""
        kinds = ["*.json", "*.toml", "*.csv", "scores/*.csv", "predictions/*.npz"]
        kinds += [] if self.is_predicted() else ["*.pt"]
        files = sorted(file for kind in kinds for file in self.path.glob(kind) if file.name[0] != ".")
        return [file for file in files if not is_whole(file)]

    def problem(self) -> str | None:
        """Return what is broken and what to do, in a sentence; None if nothing is seen."""
        found = self.damaged()
        if found:
            return f"{found[0]}: damaged. Give the command that made the run again; it makes the file anew."
        try:
            spec = self.spec()
        except (EquipoiseError, OSError) as error:
            return f"{error} `equipoise runs --clean` removes the run."
        if self.is_misplaced():
            return (
                f"{self.path / 'spec.toml'}: is the spec of {spec.identity}, not of this folder. Was it edited or the "
                "folder renamed? Put it back, or move the folder away."
            )
        return None

    def is_misplaced(self) -> bool:
        """Whether the folder is not named by its spec's identity."""
        return self.spec().identity != self.path.resolve().name

    def status(self) -> Status:
        """Return how far the run is; reads only small files, and writes nothing."""
        if self.is_locked():
            return "running"
        if self.problem() is not None:
            return "broken"
        if self.error() is not None:
            return "failed"
        if self.is_trained():
            return "finished" if self.is_scored() else "trained"
        return "started"

    def is_locked(self) -> bool:
        """Whether a living process works on it."""
        if not (self.path / ".lock").exists():
            return False
        lock = self._lock()
        try:
            lock.acquire(timeout=0)
        except TimeoutError:
            return True
        except OSError:
            return False  # read-only for us, so it cannot be asked; a reader does no harm
        lock.release()
        return False

    def remove(self) -> bool:
        """Remove the folder, unless a living process works on it; return whether it is gone."""
        try:
            with self.locked(timeout=0):
                shutil.rmtree(self.path)
        except TimeoutError:
            return False
        return True

    def unfinished(self) -> list[Path]:
        """Return what a killed process had begun to write; nobody else writes here under the lock."""
        hidden = (file for file in self.path.rglob(".*") if file.is_file())
        return [file for file in hidden if file.name != ".lock"]

    @contextmanager
    def locked(self, *, timeout: float = -1) -> Iterator[None]:
        """Keep other processes out; the lock dies with its process, so a crash leaves none behind."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self._lock().acquire(timeout=timeout):
            yield

    def _lock(self) -> Any:
        filelock = require("filelock", extra="train", purpose="keep two processes out of one run folder")
        return filelock.FileLock(self.path / ".lock")

    def write_json(self, name: str, content: Any) -> None:
        """Write a small record, all or nothing."""
        write_text(self.path / name, json.dumps(content, indent=2, sort_keys=True) + "\n")

    def note_failure(self, stage: str, error: BaseException, trace: str) -> None:
        """Remember why a stage failed."""
        self.write_json(
            "error.json",
            {
                "stage": stage,
                "kind": type(error).__name__,
                "message": str(error),
                "trace": trace,
                "time": time.strftime("%Y-%m-%d %H:%M:%S"),
            },
        )


def find_runs(root: str | os.PathLike[str]) -> list[RunFolder]:
    """Return the runs in a folder, or the run that the folder is.

    Raises:
        SpecError: If there is no such folder.

    Example:
        >>> import tempfile
        >>> find_runs(tempfile.mkdtemp())
        []
    """
    base = Path(root)
    if not base.is_dir():
        raise SpecError(
            f"{base}: no such folder. Runs are made by `equipoise train` and `equipoise compare`."
        )
    if (base / "spec.toml").exists():
        return [RunFolder(base)]
    return sorted((RunFolder(file.parent) for file in base.glob("*/spec.toml")), key=_place)


def _place(folder: RunFolder) -> tuple[Any, ...]:
    """Sort by data, network, place of the method in the catalogue (cross-entropy first), and seed; broken ones last."""
    try:
        spec = folder.spec()
    except EquipoiseError:
        return (1, folder.name)
    known = spec_order()
    rank = known.index(spec.objective.name) if spec.objective.name in known else len(known)
    return (0, spec.data.name, spec.model.name, rank, spec.objective.label, spec.seed, folder.name)


def spec_order() -> list[str]:
    """Return all methods in the order of the catalogue."""
    from equipoise.experiments.catalogue import CATALOGUE

    return [key for room in ("losses", "pairs", "objectives") for key in CATALOGUE[room]]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV file, numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(stream)]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV, all or nothing; numbers keep every digit."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text.getvalue())


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None if text == "" else text
