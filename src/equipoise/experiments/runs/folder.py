"""The run folder: one run, one folder, named by the spec's identity."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from equipoise.calibrators import Calibrator, load
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError, FileError, SpecError, require
from equipoise.core.predictions import Predictions
from equipoise.core.reading import read_predictions
from equipoise.experiments.runs.manifest import MANIFEST, Manifest, Stage, is_intact, read_manifest
from equipoise.experiments.runs.rows import read_rows
from equipoise.experiments.runs.scores import RunScores, read_scores, tidy_rows
from equipoise.experiments.specs.run import Spec, read_stored_spec
from equipoise.kernels import locks

if TYPE_CHECKING:
    from equipoise.data import Shift

__all__ = ["TRASH", "UNUSABLE", "RunFolder", "Status", "calibrated_name", "calibrator_names"]

#: How far a run is.
Status = Literal["finished", "trained", "started", "running", "failed", "broken", "unreadable"]
#: Runs with one of these cannot be used here: damaged, or with a spec that is not understood.
UNUSABLE: tuple[Status, ...] = ("broken", "unreadable")
#: The folder beside runs that removed ones are moved to.
TRASH = ".trash"
_NAME = re.compile(r"[0-9a-f]{16}")
_MARKS = ("spec.toml", MANIFEST)
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
        predictions/*.npz    one file per split, and per additional test set; out-of-distribution rows have no labels
        calibrators/*        fitted calibrators
        calibrated/*.npz     test after calibrators that are the user's own code, so that tables need no code
        scores/*.json        one file per calibrator: scorecards, curves, slices
        scores.csv           the same numbers as tidy rows
        manifest.json        which stages are done; checksum, size and time of each file they wrote; why a run failed

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
        file = self.path / "spec.toml"
        try:
            found = file.stat()
        except OSError:
            return read_stored_spec(file)
        return _cached_spec(file, (found.st_ino, found.st_size, found.st_mtime_ns))

    def manifest(self) -> Manifest:
        """Return what the run has written so far.

        Raises:
            DataError: If the manifest is damaged.
        """
        try:
            found = (self.path / MANIFEST).stat()
        except OSError:
            return Manifest(run=self.name)
        return _cached_manifest(self.path, (found.st_ino, found.st_size, found.st_mtime_ns))

    def record(self, stage: Stage) -> Mapping[str, Any] | None:
        """Return what a stage recorded when it was done; None before that."""
        return self.manifest().stages.get(stage)

    def write_record(self, stage: Stage, files: Iterable[str], **facts: Any) -> None:
        """Record that a stage is done, with the checksum of each file that it wrote."""
        self.manifest().with_stage(self.path, stage, files, **facts).write(self.path)

    def clear_stages(self, first: Stage) -> None:
        """Forget that a stage and those after it were done; their files are overwritten."""
        manifest = self.manifest()
        kept = manifest.before(first)
        if kept.stages != manifest.stages:
            kept.write(self.path)

    def is_done(self, stage: Stage) -> bool:
        """Whether a stage is done and its files are there; checkpoints may be deleted once they have served."""
        record = self.record(stage)
        if record is None:
            return False
        return all((self.path / name).exists() for name in record["files"] if not name.endswith(".pt"))

    def intact_file(self, name: str) -> Path:
        """Return the path of a file that is the one its stage wrote.

        Raises:
            DataError: If it is not, or no stage has written it.
        """
        files = self.manifest().files
        if name not in files:
            raise DataError(f"{self.path / name}: no finished stage has written this. {_AGAIN}")
        if not is_intact(self.path / name, files[name]):
            raise DataError(f"{self.path / name}: lost or damaged. {_AGAIN}")
        return self.path / name

    def has(self, name: str) -> bool:
        """Whether a file is there that a finished stage wrote."""
        return name in self.manifest().files and (self.path / name).exists()

    def predictions(self, split: str) -> Predictions:
        """Return the predictions on a split."""
        return read_predictions(self.intact_file(f"predictions/{split}.npz"))

    def splits(self) -> list[str]:
        """Return the splits that have predictions."""
        return sorted((self.record("predicted") or {"splits": []})["splits"])

    def calibrators(self) -> list[str]:
        """Return the calibrators that were scored, no calibration first."""
        return list((self.record("scored") or {"calibrators": []})["calibrators"])

    def calibrator_file(self, calibrator: str) -> str | None:
        """Return the file of a calibrator that was fitted when the run was scored, or None."""
        return next(filter(self.has, calibrator_names(calibrator)), None)

    def calibrator(self, name: str, *, own: Any = None) -> Calibrator:
        """Return the calibrator that was fitted when the run was scored.

        Args:
            name: Its key.
            own: The calibrator itself, if it is the user's own code; a folder holds its parameters, never its code.
        """
        file = self.calibrator_file(name)
        if file is None:
            raise DataError(f"{self.path}: no calibrator {name!r} was fitted here. {_AGAIN}")
        return load(self.intact_file(file), own=own)

    def calibrated(self, name: str, split: str = "test") -> Predictions:
        """Return the predictions on a split after a calibrator that was fitted when the run was scored."""
        if name == "identity":
            return self.predictions(split)
        if split == "test" and self.has(calibrated_name(name)):
            return read_predictions(self.intact_file(calibrated_name(name)))
        found: Predictions = self.calibrator(name)(self.predictions(split))
        return found

    def scores(self, calibrator: str = "identity") -> RunScores:
        """Return what the run scored after a calibrator."""
        return read_scores(self.intact_file(f"scores/{calibrator}.json"))

    def fingerprint(self) -> str:
        """Return a checksum of the predictions on ``tune`` and ``test`` and of their scores before calibration."""
        files = self.manifest().files
        names = ("predictions/tune.npz", "predictions/test.npz", "scores/identity.json")
        return content_checksum({name: files[name]["sha256"] for name in names if name in files})

    def shifts(self) -> dict[str, Shift]:
        """Return the additional test sets that the run has predictions on, by name."""
        known = (self.record("shifted") or {"sets": {}})["sets"]
        if not known:
            return {}
        from equipoise.data import Shift

        try:
            return {name: Shift(**{"options": {}, **table}) for name, table in known.items()}
        except TypeError as error:
            raise DataError(
                f"{self.path / MANIFEST}: damaged: `stages.shifted.sets` is not a test set: {error}."
            ) from error

    def rows(self) -> list[dict[str, Any]]:
        """Return all scores as tidy rows: one per calibrator, split and metric."""
        return tidy_rows(self.spec(), map(self.scores, self.calibrators()))

    def history(self) -> list[dict[str, Any]]:
        """Return one row per epoch so far."""
        file = self.path / "history.csv"
        if self.record("trained") is not None:
            file = self.intact_file("history.csv")
        rows = read_rows(file) if file.exists() else []
        for row in rows:
            wrong = [name for name, value in {"epoch": None, **row}.items() if not _is_entry(name, value)]
            if wrong:
                raise DataError(
                    f"{file}: damaged: a number was expected in the column {wrong[0]!r}. {_AGAIN}"
                )
        return rows

    def error(self) -> Mapping[str, Any] | None:
        """Return why it failed, or None."""
        return self.manifest().error

    def write_error(self, stage: str, error: BaseException, trace: str) -> None:
        """Record why a stage failed."""
        reason = {
            "stage": stage,
            "kind": type(error).__name__,
            "message": str(error),
            "trace": trace,
            "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        try:
            manifest = self.manifest()
        except DataError:  # it is remade when the run goes on
            manifest = Manifest(run=self.name)
        replace(manifest, error=reason).write(self.path)

    def clear_error(self) -> None:
        """Forget why it failed."""
        manifest = self.manifest()
        if manifest.error is not None:
            replace(manifest, error=None).write(self.path)

    def damaged(self, *, verify: bool = False) -> list[Path]:
        """Return the files that are not as they were written.

        Args:
            verify: Hash every file; by default only those whose size or modification time differ.
        """
        try:
            manifest = read_manifest(self.path) or Manifest(run=self.name)
        except DataError:
            return [self.path / MANIFEST]
        found = [
            path
            for name, entry in manifest.files.items()
            if (path := self.path / name).exists() and not is_intact(path, entry, verify=verify)
        ]
        return found if "trained" in manifest.stages else found + self._damaged_in_training()

    def _damaged_in_training(self) -> list[Path]:
        """Check what the manifest does not name yet: checkpoints hold their own checksum and the history so far."""
        from equipoise.training import read_checkpoint  # loads torch, which tables do without

        found, rows = [], None
        for file in (self.path / "last.pt", self.path / "best.pt"):
            try:
                content = read_checkpoint(file) if file.exists() else {}
            except DataError:
                found.append(file)
            else:
                rows = content.get("history", rows)
        history = self.path / "history.csv"
        if history.exists() and rows is not None and not _holds_rows(history, rows):
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
        """Whether this is a run's folder: a whole manifest says so, or it has a run's name and one of its files."""
        if _NAME.fullmatch(self.name):
            return any((self.path / name).exists() for name in _MARKS)
        return self._owner() is not None

    def _owner(self) -> str | None:
        """Return the run that the manifest names; None without one, or if it is damaged."""
        try:
            found = read_manifest(self.path)
        except DataError:
            return None
        return None if found is None else found.run

    def problem(self, *, verify: bool = False) -> str | None:
        """Return what is broken and what to do, in a sentence; None if nothing is found.

        Args:
            verify: Hash every file; by default only those whose size or modification time differ.
        """
        if self.is_misplaced():
            return (
                f"{self.path}: contains another run than the one it is named for. Was the folder renamed? Name it "
                "back, or move it away."
            )
        found = self.damaged(verify=verify)
        if found:
            return f"{self._damage_of(found[0])} {_AGAIN}"
        if not (self.path / "spec.toml").exists():
            return f"{self.path / 'spec.toml'}: lost. {_AGAIN}"
        return None

    def _damage_of(self, file: Path) -> str:
        """Return what is wrong with a damaged file; for the manifest, which key."""
        try:
            read_manifest(self.path)
        except DataError as error:
            return str(error)
        return f"{file}: damaged."

    def is_misplaced(self) -> bool:
        """Whether the folder is named for another run than the one it contains."""
        owner = self._owner()
        if owner is None and (self.path / "spec.toml").exists() and self.unreadable_spec() is None:
            owner = self.spec().identity
        return owner is not None and self.name != owner

    def status(self, *, verify: bool = False) -> Status:
        """Return how far the run is; its files are checked, and nothing is written.

        Args:
            verify: Hash every file; by default only those whose size or modification time differ.
        """
        return "running" if self.is_locked() else self._status(verify=verify)

    def _status(self, *, verify: bool = False) -> Status:
        if self.problem(verify=verify) is not None:
            return "broken"
        if self.unreadable_spec() is not None:
            return "unreadable"
        if self.error() is not None:
            return "failed"
        if self.is_done("trained"):
            return "finished" if self.is_done("predicted") and self.is_done("scored") else "trained"
        return "started"

    def is_finished(self) -> bool:
        """Whether every stage is done, by the manifest; files are not checked one by one, as ``status`` does."""
        try:
            # Additional test sets are optional.
            return all(self.is_done(stage) for stage in ("started", "trained", "predicted", "scored"))
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

        Only a folder whose own manifest names it as a run that failed may go. Damaged runs stay, since the
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
        if self._owner() != self.name:
            return "its manifest names another run"
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


# Files are replaced whole, so that another content is another inode.
@lru_cache(maxsize=4096)
def _cached_spec(file: Path, _stamp: tuple[int, ...]) -> Spec:
    return read_stored_spec(file)


@lru_cache(maxsize=4096)
def _cached_manifest(folder: Path, _stamp: tuple[int, ...]) -> Manifest:
    return read_manifest(folder) or Manifest(run=folder.resolve().name)


def calibrator_names(calibrator: str) -> tuple[str, str]:
    """Return where a fitted calibrator is stored: a small one, a large one.

    Example:
        >>> calibrator_names("vector")
        ('calibrators/vector.json', 'calibrators/vector.safetensors')
    """
    return f"calibrators/{calibrator}.json", f"calibrators/{calibrator}.safetensors"


def calibrated_name(calibrator: str) -> str:
    """Return where test predictions after a calibrator that is the user's own code are stored.

    Example:
        >>> calibrated_name("mine.py-Mine")
        'calibrated/mine.py-Mine.npz'
    """
    return f"calibrated/{calibrator}.npz"


def _is_entry(column: str, value: Any) -> bool:
    return isinstance(value, (int, float)) or (value is None and column != "epoch")


def _holds_rows(history: Path, rows: list[dict[str, float]]) -> bool:
    """Whether a file holds these rows, or all but the last, which a kill may have kept from it."""
    try:
        found = [
            sorted((key, float(value).hex()) for key, value in row.items() if value is not None)
            for row in read_rows(history)
        ]
    except (DataError, ValueError, TypeError):
        return False
    known = [sorted((key, float(value).hex()) for key, value in row.items()) for row in rows]
    return found in (known, known[:-1])
