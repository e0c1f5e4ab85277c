"""The manifest of a run: which stages are done, and the checksum, size and time of every file they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, final

from equipoise.core.checksums import content_checksum, file_checksum
from equipoise.core.errors import DataError
from equipoise.experiments.runs.json_files import NUMBER, check_content, read_json, write_json

__all__ = ["MANIFEST", "STAGES", "Manifest", "Stage", "is_intact", "read_manifest"]

#: The stages of a run, in order.
Stage = Literal["started", "trained", "predicted", "shifted", "scored"]
STAGES: tuple[Stage, ...] = ("started", "trained", "predicted", "shifted", "scored")
#: Name of the file.
MANIFEST = "manifest.json"

_SETTINGS = {
    "n_bins": int,
    "level": NUMBER,
    "n_resamples": int,
    "seed": int,
    "closed": str,
    "metrics": [str],
}
_FILE = {"sha256": str, "size": int, "mtime_ns": int}
#: Keys and types, as :func:`check_content` reads them; a key with a question mark may be missing.
_CONTENT: Mapping[str, Any] = {
    "run": str,
    "files": {str: _FILE},
    "stages": {
        "started?": {"files": [str]},
        "trained?": {
            "files": [str],
            "epochs?": int,
            "seconds?": NUMBER,
            "parameters?": int,
            "processes?": int,
        },
        "predicted?": {"files": [str], "splits": [str], "sample?": {str: NUMBER}, "settings?": dict},
        "shifted?": {"files": [str], "sets": {str: dict}, "digests": {str: str}},
        "scored?": {
            "files": [str],
            "calibrators": [str],
            "settings": _SETTINGS,
            "shift": {str: str},
            "code": {str: str},
        },
    },
    "error?": {"stage": str, "kind": str, "message": str},
}


@final
@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a run has written so far.

    Attributes:
        run: The run's identity.
        files: Checksum, size and modification time of every file, by its path in the folder.
        stages: The record of every stage that is done: its files, and facts about it.
        error: Why the run failed, if it did.
    """

    run: str
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None

    def with_stage(self, folder: Path, stage: Stage, names: Iterable[str], **facts: Any) -> Manifest:
        """Return the manifest after a stage; its files are hashed."""
        names = list(names)
        files = {**self.files, **{name: _describe(folder / name) for name in names}}
        stages: dict[str, Mapping[str, Any]] = {**self.stages, stage: {"files": names, **facts}}
        return replace(self, files=files, stages=stages)._with_named_files()

    def before(self, stage: Stage) -> Manifest:
        """Return the manifest as if a stage and those after it had not been done."""
        kept: dict[str, Mapping[str, Any]] = {
            name: self.stages[name] for name in STAGES[: STAGES.index(stage)] if name in self.stages
        }
        return replace(self, stages=kept)._with_named_files()

    def _with_named_files(self) -> Manifest:
        """Leave out files that no stage names any more."""
        named = {name for record in self.stages.values() for name in record["files"]}
        return replace(self, files={name: entry for name, entry in self.files.items() if name in named})

    def write(self, folder: Path) -> None:
        """Write the manifest into a run's folder, whole or not at all."""
        content = {"run": self.run, "stages": self.stages, "files": self.files}
        content |= {} if self.error is None else {"error": self.error}
        write_json(folder / MANIFEST, {**content, "checksum": content_checksum(content)})


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a run's folder; None if it has none yet.

    Raises:
        DataError: If it is damaged, lacks a key, or names files outside of the folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> Manifest(run="abc").write(folder)
        >>> read_manifest(folder).run
        'abc'
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    content = read_json(path)
    try:
        is_whole = isinstance(content, dict) and content.pop("checksum", None) == content_checksum(content)
    except RecursionError:
        is_whole = False
    if not is_whole:
        raise DataError(f"{path}: damaged: its content does not match its checksum.")
    check_content(content, _CONTENT, where=str(path))
    if not all(map(_is_inside, content["files"])):
        raise DataError(f"{path}: damaged: it names files outside of its folder.")
    for stage, record in content["stages"].items():
        if stage not in STAGES or not set(record["files"]) <= set(content["files"]):
            raise DataError(f"{path}: damaged: `stages.{stage}` names unknown files.")
    return Manifest(
        run=content["run"], files=content["files"], stages=content["stages"], error=content.get("error")
    )


def is_intact(path: Path, entry: Mapping[str, Any], *, verify: bool = False) -> bool:
    """Return whether a file is the one that was written.

    Args:
        path: The file.
        entry: Its checksum, size and modification time when it was written.
        verify: Hash the file even if its size and time are those that were recorded.

    Example:
        >>> is_intact(Path("nowhere"), {"sha256": "", "size": 0, "mtime_ns": 0})
        False
    """
    try:
        found = path.stat()
        if found.st_size != entry["size"]:
            return False
        if found.st_mtime_ns == entry["mtime_ns"] and not verify:
            return True
        return bool(file_checksum(path) == entry["sha256"])
    except OSError:
        return False


def _describe(path: Path) -> dict[str, Any]:
    # The time is read first: a file that changes while it is hashed has another time afterwards.
    found = path.stat()
    return {"sha256": file_checksum(path), "size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name
