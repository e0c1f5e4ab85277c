"""The run folder: one run, one folder, named by the spec's identity."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from equipoise.calibrators import Calibrator, load
from equipoise.core.errors import DataError, FileError, SpecError, require
from equipoise.core.predictions import Predictions
from equipoise.core.reading import read_predictions
from equipoise.experiments.runs.checksums import (
    NUMBER,
    file_digest,
    is_unchanged,
    read_sealed,
    seal_of,
    write_sealed,
)
from equipoise.experiments.runs.rows import read_rows
from equipoise.experiments.runs.scores import RunScores, read_scores, tidy_rows
from equipoise.experiments.specs.run import Spec, read_stored_spec
from equipoise.kernels import locks
from equipoise.training import read_checkpoint

__all__ = ["STAGES", "TRASH", "UNUSABLE", "RunFolder", "Stage", "Status", "map_names", "mapped_name"]

#: What can be said of a run.
Status = Literal["finished", "trained", "started", "running", "failed", "broken", "old", "unreadable"]
#: Runs with one of these cannot be used here: damaged, of an earlier version, or with a spec that is not understood.
UNUSABLE: tuple[Status, ...] = ("broken", "old", "unreadable")
#: The stages of a run; each is over when its record is written.
Stage = Literal["started", "trained", "predicted", "shifted", "scored"]
STAGES: tuple[Stage, ...] = ("started", "trained", "predicted", "shifted", "scored")

_SETTINGS = {
    "n_bins": int,
    "level": NUMBER,
    "n_resamples": int,
    "seed": int,
    "closed?": str,
    "metrics?": [str],
}
#: What each stage writes beyond its files; keys with a question mark are not in every record.
_RECORDS: Mapping[str, Mapping[str, Any]] = {
    "started": {},
    "trained": {"epochs?": int, "seconds?": NUMBER, "parameters?": int, "processes?": int},
    "predicted": {"splits": [str], "sample?": {str: NUMBER}},
    "shifted": {"sets": {str: dict}, "digests?": {str: str}},
    "scored": {
        "calibrators": [str],
        "settings": _SETTINGS,
        "shift?": {str: str},
        "code?": {str: str},
    },
    "error": {"stage": str, "kind": str, "message": str},
}
#: The folder beside runs that removed ones are moved to.
TRASH = ".trash"
_NAME = re.compile(r"[0-9a-f]{16}")
_MARKS = ("spec.toml", *(f"{stage}.json" for stage in (*STAGES, "error")))
_AGAIN = "Give the command that made the run again; it makes the file anew."


@final
@dataclass(frozen=True)
class RunFolder:
    """One run on disk.

    ::

        spec.toml            what was asked for
        environment.json     versions, machine, threads, the data's fingerprints
        history.csv          one row per epoch
        last.pt, best.pt     checkpoints
        predictions/*.npz    one file per split, and per further test set; foreign rows have no labels
        calibrators/*        fitted maps
        calibrated/*.npz     what maps of someone's own make of test, so that tables need no code
        scores/*.json        one file per calibrator: scorecards, curves, slices
        scores.csv           the same numbers as tidy rows
        started.json, trained.json, predicted.json, shifted.json (with further test sets), scored.json
                             written when a stage is over, with a digest of each file it made
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
        return self.path.resolve().name

    def spec(self) -> Spec:
        """Return what was asked for."""
        return read_stored_spec(self.path / "spec.toml")

    def record(self, stage: str) -> dict[str, Any] | None:
        """Return what a stage wrote when it was over, or None before that.

        Raises:
            DataError: If the record is damaged.
        """
        file = self.path / f"{stage}.json"
        return read_sealed(file, _RECORDS.get(stage)) if file.exists() else None

    def write_record(self, stage: str, files: Iterable[str], **facts: Any) -> None:
        """Write down that a stage is over, and a digest of each file that it made."""
        digests = {name: file_digest(self.path / name) for name in files}
        write_sealed(self.path / f"{stage}.json", {"run": self.name, "files": digests, **facts})

    def is_over(self, stage: Stage) -> bool:
        """Whether a stage is over and its files are there; checkpoints may be deleted once they have served."""
        record = self.record(stage)
        if record is None:
            return False
        return all((self.path / name).exists() for name in record["files"] if not name.endswith(".pt"))

    def verified(self, name: str) -> Path:
        """Return the path of a file that is the one its stage wrote.

        Raises:
            DataError: If it is not, or no stage has written it.
        """
        for stage in STAGES:
            record = self.record(stage)
            if record is not None and name in record["files"]:
                if is_unchanged(self.path / name, record["files"][name]):
                    return self.path / name
                raise DataError(f"{self.path / name}: lost or damaged. {_AGAIN}")
        raise DataError(f"{self.path / name}: no finished stage has written this. {_AGAIN}")

    def has(self, name: str) -> bool:
        """Whether a file is there that a finished stage wrote."""
        records = [self.record(stage) for stage in STAGES]
        return any(record and name in record["files"] for record in records) and (self.path / name).exists()

    def predictions(self, split: str) -> Predictions:
        """Return the predictions on a split."""
        return read_predictions(self.verified(f"predictions/{split}.npz"))

    def splits(self) -> list[str]:
        """Return the splits that have predictions."""
        return sorted((self.record("predicted") or {"splits": []})["splits"])

    def calibrators(self) -> list[str]:
        """Return the calibrators that were scored, no calibration first."""
        return list((self.record("scored") or {"calibrators": []})["calibrators"])

    def map_name(self, calibrator: str) -> str | None:
        """Return the file of a map that was fitted when the run was scored, or None."""
        return next(filter(self.has, map_names(calibrator)), None)

    def calibrator(self, name: str, *, own: Any = None) -> Calibrator:
        """Return the map that was fitted on ``calib`` when the run was scored.

        Args:
            name: Its key.
            own: The map itself, if it is someone's own; a folder holds what it learnt and never its code.
        """
        file = self.map_name(name)
        if file is None:
            raise DataError(f"{self.path}: no map {name!r} was fitted here. {_AGAIN}")
        return load(self.verified(file), own=own)

    def calibrated(self, name: str, split: str = "test") -> Predictions:
        """Return the predictions on a split after the map that was fitted when the run was scored."""
        predictions = self.predictions(split)
        if name == "identity":
            return predictions
        if split == "test":
            return self.mapped(name, predictions)
        mapped: Predictions = self.calibrator(name)(predictions)
        return mapped

    def mapped(self, name: str, test: Predictions) -> Predictions:
        """Return the predictions on ``test`` after a map, made of those before it, or read if code made them."""
        if self.has(mapped_name(name)):
            return read_predictions(self.verified(mapped_name(name)))
        found: Predictions = self.calibrator(name)(test)
        return found

    def scores(self, calibrator: str = "identity") -> RunScores:
        """Return what the run scored after a calibrator."""
        return read_scores(self.verified(f"scores/{calibrator}.json"))

    def stamps(self) -> dict[str, str]:
        """Return what tells its ``test`` after each calibrator, and how it was scored, from every other."""
        records = [self.record(stage) or {"files": {}} for stage in ("predicted", "scored")]
        files = {name: digest for record in records for name, digest in record["files"].items()}
        return {calibrator: _stamp(files, calibrator) for calibrator in self.calibrators()}

    def rows(self) -> list[dict[str, Any]]:
        """Return all scores as tidy rows: one per calibrator, split and metric."""
        return tidy_rows(self.spec(), map(self.scores, self.calibrators()))

    def history(self) -> list[dict[str, Any]]:
        """Return one row per epoch so far."""
        file = self.path / "history.csv"
        if self.record("trained") is not None:
            file = self.verified("history.csv")
        rows = read_rows(file) if file.exists() else []
        for row in rows:
            wrong = [name for name, value in {"epoch": None, **row}.items() if not _is_entry(name, value)]
            if wrong:
                raise DataError(
                    f"{file}: damaged: a number was expected in the column {wrong[0]!r}. {_AGAIN}"
                )
        return rows

    def error(self) -> dict[str, Any] | None:
        """Return why it failed, or None."""
        return self.record("error")

    def note_failure(self, stage: str, error: BaseException, trace: str) -> None:
        """Remember why a stage failed."""
        write_sealed(
            self.path / "error.json",
            {
                "run": self.name,
                "files": {},
                "stage": stage,
                "kind": type(error).__name__,
                "message": str(error),
                "trace": trace,
                "time": time.strftime("%Y-%m-%d %H:%M:%S"),
            },
        )

    def damaged(self) -> list[Path]:
        """Return the files that are not as they were written."""
        found: list[Path] = []
        for stage in (*STAGES, "error"):
            try:
                record = self.record(stage)
            except DataError:
                found.append(self.path / f"{stage}.json")
                continue
            files: Mapping[str, str] = {} if record is None else record["files"]
            paths = {self.path / name: digest for name, digest in files.items()}
            found += [
                path for path, digest in paths.items() if path.exists() and not is_unchanged(path, digest)
            ]
        if not (self.path / "trained.json").exists():
            found += self._damaged_in_training()
        return found

    def _damaged_in_training(self) -> list[Path]:
        """Look at what no record vouches for yet: checkpoints know their own digest and the history so far."""
        found, rows = [], None
        for file in (self.path / "last.pt", self.path / "best.pt"):
            try:
                content = read_checkpoint(file) if file.exists() else {}
            except DataError:
                found.append(file)
            else:
                rows = content.get("history", rows)
        history = self.path / "history.csv"
        if history.exists() and rows is not None and not _tells(history, rows):
            found.append(history)
        return found

    def unreadable_spec(self) -> str | None:
        """Return why the spec cannot be understood here, or None; a missing plugin or a newer version is no damage."""
        try:
            self.spec()
        except SpecError as error:
            return str(error)
        return None

    def is_run(self) -> bool:
        """Whether this is a run's folder: a whole record says so, or it has a run's name and one of its files."""
        if _NAME.fullmatch(self.name):
            return any((self.path / name).exists() for name in _MARKS)
        return any(self._owner(stage) is not None for stage in (*STAGES, "error"))

    def _owner(self, stage: str) -> str | None:
        """Return the run that a record names; None without a record, or if it is damaged."""
        try:
            return (self.record(stage) or {}).get("run")
        except DataError:
            return None

    def problem(self) -> str | None:
        """Return what is broken and what to do, in a sentence; None if nothing is seen."""
        if self.is_old():
            return (
                f"{self.path}: made by a version whose run folders carry no digests of their files and data. "
                "Keep it for that version, or move it away; the command that made it makes a new one."
            )
        if self.is_misplaced():
            return (
                f"{self.path}: holds another run than the one it is named for. Was the folder renamed? Name it back, "
                "or move it away."
            )
        found = self.damaged()
        if found:
            return f"{self._damage_of(found[0])} {_AGAIN}"
        if not (self.path / "spec.toml").exists():
            return f"{self.path / 'spec.toml'}: lost. {_AGAIN}"
        return None

    def _damage_of(self, file: Path) -> str:
        """Return what is wrong with a damaged file; of a record, which key."""
        try:
            self.record(file.stem)
        except DataError as error:
            return str(error)
        return f"{file}: damaged."

    def is_misplaced(self) -> bool:
        """Whether the folder is named for another run than the one it holds."""
        owners = {owner for owner in map(self._owner, STAGES) if owner is not None}
        if not owners and (self.path / "spec.toml").exists() and self.unreadable_spec() is None:
            owners = {self.spec().identity}
        return bool(owners) and self.name not in owners

    def is_old(self) -> bool:
        """Whether an earlier version made it, which wrote no digests."""
        if (self.path / "started.json").exists() or not (self.path / "spec.toml").exists():
            return False
        return self.unreadable_spec() is None and self.spec().old_identity == self.name

    def status(self) -> Status:
        """Return how far the run is; every file is checked, and nothing is written."""
        return "running" if self.is_locked() else self._status()

    def _status(self) -> Status:
        if self.is_old():
            return "old"
        if self.problem() is not None:
            return "broken"
        if self.unreadable_spec() is not None:
            return "unreadable"
        if self.error() is not None:
            return "failed"
        if self.is_over("trained"):
            return "finished" if self.is_over("predicted") and self.is_over("scored") else "trained"
        return "started"

    def is_finished(self) -> bool:
        """Whether every stage is over, by their records; files are not checked one by one, as ``status`` does."""
        try:
            # Further test sets are asked for or not.
            return all(self.is_over(stage) for stage in STAGES if stage != "shifted")
        except DataError:
            return False

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

    def why_not_removable(self) -> str | None:
        """Return why the folder must stay, or None if it is a failed run of ours that nothing speaks for.

        Only a folder that a checked record of its own names as a run that failed may go. Damaged runs stay, since the
        command that made them repairs them; and so do folders that hold other runs, links, and the current folder.
        """
        if self.is_locked():
            return "a process works on it"
        return self._why_to_keep()

    def _why_to_keep(self) -> str | None:
        if self.path.is_symlink():
            return "it is a symbolic link"
        status = self._status()
        if status != "failed":
            return f"it is {status}"
        if {self._owner(stage) for stage in (*STAGES, "error")} - {None} != {self.name}:
            return "its records name another run"
        if Path.cwd().is_relative_to(self.path.resolve()):
            return "it is the current folder, or holds it"
        inner = (file.parent for file in self.path.rglob("*") if file.name in _MARKS)
        if any(folder != self.path for folder in inner):
            return "it holds another run"
        return None

    def remove(self) -> Path | None:
        """Move the folder of a failed run to the trash beside it.

        Returns:
            Where it is now; None if it must stay, by now or for another reason (:meth:`why_not_removable`).

        Raises:
            FileError: If it cannot be moved.
        """
        if self.why_not_removable() is not None:
            return None
        place = self.path.resolve()
        trash = place.parent / TRASH
        target = trash / f"{time.strftime('%Y%m%d-%H%M%S')}-{self.name}"
        try:
            with self.locked(timeout=0):
                if self._why_to_keep() is not None:  # another process went on with it since
                    return None
                trash.mkdir(exist_ok=True)
                # Whoever waits for this lock must not hold it for a folder that is gone.
                (place / ".lock").unlink()
                os.rename(place, target)
        except TimeoutError:
            return None
        except OSError as error:
            raise FileError(
                f"{place}: cannot be moved to {trash} ({error.strerror or error}). Is it writable?"
            ) from error
        return target

    def unfinished(self) -> list[Path]:
        """Return what a killed process had begun to write; nobody else writes here under the lock."""
        hidden = (file for file in self.path.rglob(".*") if file.is_file())
        return [file for file in hidden if file.name != ".lock"]

    @contextmanager
    def locked(self, *, timeout: float = -1) -> Iterator[None]:
        """Keep other processes out; the lock dies with its process, so a crash leaves none behind."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = self._lock()
        try:
            held = lock.acquire(timeout=timeout if timeout >= 0 else locks.PATIENCE)
        except TimeoutError:
            if timeout >= 0:
                raise
            locks.warn_of_lock(self.path / ".lock")
            held = lock.acquire()
        with held:
            yield

    def _lock(self) -> Any:
        filelock = require("filelock", extra="train", purpose="keep two processes out of one run folder")
        return filelock.FileLock(self.path / ".lock")


def map_names(calibrator: str) -> tuple[str, str]:
    """Return where a fitted map is kept: a small one, a large one.

    Example:
        >>> map_names("vector")
        ('calibrators/vector.json', 'calibrators/vector.safetensors')
    """
    return f"calibrators/{calibrator}.json", f"calibrators/{calibrator}.safetensors"


def mapped_name(calibrator: str) -> str:
    """Return where test predictions after a map of someone's own are kept.

    Example:
        >>> mapped_name("mine.py-Mine")
        'calibrated/mine.py-Mine.npz'
    """
    return f"calibrated/{calibrator}.npz"


def _is_entry(column: str, value: Any) -> bool:
    return isinstance(value, (int, float)) or (value is None and column != "epoch")


def _stamp(files: Mapping[str, str], calibrator: str) -> str:
    scores = f"scores/{calibrator}.json"
    wanted = {"predictions/test.npz", scores, *map_names(calibrator), mapped_name(calibrator)}
    # No reader of a CSV file takes this for a number.
    return f"sha256:{seal_of({name: files[name] for name in files.keys() & wanted})[:32]}"


def _tells(history: Path, rows: list[dict[str, float]]) -> bool:
    """Whether a file holds these rows, or all but the last, which a kill may have kept from it."""
    try:
        found = read_rows(history)
        told = [sorted((k, float(v).hex()) for k, v in row.items() if v is not None) for row in found]
    except (DataError, ValueError, TypeError):
        return False
    known = [sorted((key, float(value).hex()) for key, value in row.items()) for row in rows]
    return told in (known, known[:-1])
