"""``runs --clean`` in folders full of other things: nothing but failed runs of ours is moved."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from equipoise.experiments import RunFolder, Spec, run
from helpers.tiny_runs import DIVERGING, FAILING, QUICK, TABLE
from stress.children import command, warm_up
from stress.judge import Wrong
from stress.stored import SPEC, foreign


class Runs(NamedTuple):
    """Folders of a finished run and of failed ones."""

    finished: Path
    failed: tuple[Path, ...]


def prepare_cleaning(folder: Path) -> Runs:
    finished = run(Spec.from_table(TABLE), folder, **QUICK).path
    failed = []
    for table in (FAILING, DIVERGING):
        spec = Spec.from_table(table)
        try:
            run(spec, folder, **QUICK)
        except Exception:  # noqa: BLE001 - it is meant to fail
            failed.append(folder / spec.identity)
    if len(failed) < 2 or any(RunFolder(path).status() != "failed" for path in failed):
        raise ValueError("runs that should fail did not")
    warm_up(["runs", folder])
    return Runs(finished, tuple(failed))


def _spec_alone(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    place.mkdir()
    (place / "spec.toml").write_text(SPEC)


def _unreadable_spec(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    place.mkdir()
    (place / "spec.toml").write_bytes(foreign(chance))
    (place / "thesis.txt").write_text("years of work")


def _project(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    _spec_alone(runs, place, chance)
    (place / "src").mkdir()
    (place / "src" / "main.py").write_text("print('mine')")
    if chance.random() < 0.5:
        shutil.copytree(runs.finished, place / runs.finished.name)


def _finished(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    shutil.copytree(runs.finished, place.with_name(runs.finished.name), dirs_exist_ok=True)


def _broken(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    """A finished run that lost or changed a file; what is left of it may be all there is."""
    target = place.with_name(runs.finished.name)
    if target.exists():
        return
    shutil.copytree(runs.finished, target)
    files = sorted(file for file in target.rglob("*") if file.is_file() and file.name != ".lock")
    file = files[chance.integers(len(files))]
    if chance.random() < 0.3:
        file.unlink()
    else:
        file.write_bytes(foreign(chance))


def _renamed(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    source = (runs.finished, *runs.failed)[chance.integers(3)]
    shutil.copytree(source, place)


def _started_only(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    place.mkdir()
    (place / "manifest.json").write_bytes(foreign(chance))
    (place / "notes.md").write_text("mine")


def _error_only(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    """Somebody's folder with a file that is named like ours."""
    place.mkdir()
    (place / "manifest.json").write_text('{"run": "x", "files": {}}')
    (place / "spec.toml").write_text(SPEC)


def _loose_file(runs: Runs, place: Path, chance: np.random.Generator) -> None:
    place.write_bytes(foreign(chance))


JUNK: tuple[Callable[[Runs, Path, np.random.Generator], None], ...] = (
    _spec_alone, _unreadable_spec, _project, _finished, _broken, _renamed, _started_only, _error_only, _loose_file,
)  # fmt: skip


def try_cleaning(runs: Runs, chance: np.random.Generator, folder: Path) -> None:
    """Everything but failed runs under their own names is as it was after ``runs --clean``."""
    base = folder / "work"
    base.mkdir()
    for number in range(int(chance.integers(1, 5))):
        JUNK[chance.integers(len(JUNK))](runs, base / f"thing{number}", chance)
    if chance.random() < 0.3:
        (base / "spec.toml").write_bytes(SPEC.encode() if chance.random() < 0.5 else foreign(chance))
    if chance.random() < 0.2:
        outside = folder / "outside"
        shutil.copytree(runs.failed[0], outside / runs.failed[0].name)
        (base / "link").symlink_to(outside / runs.failed[0].name)
    failed = [path for path in runs.failed if chance.random() < 0.5]
    for path in failed:
        shutil.copytree(path, base / path.name)
    ours = tuple(base / path.name for path in failed)
    before = _content(folder, ours)
    found = command(["runs", base, "--clean", "--yes"], folder)
    if found.code == 2 and "--yes" in found.err:
        found = command(["runs", base, "--clean"], folder)
    if found.code not in (0, 2) or "Traceback" in found.err:
        raise Wrong(f"exit code {found.code}: {' '.join(found.err.splitlines()[-1:])}"[:200])
    after = _content(folder, ours)
    lost = sorted(name for name, value in before.items() if after.get(name) != value)
    if lost:
        raise Wrong(f"moved, removed or changed: {', '.join(lost[:3])} ({len(lost)} files)")


def _content(folder: Path, besides: tuple[Path, ...]) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in files
        if not any(file.is_relative_to(place) for place in besides)
    }
