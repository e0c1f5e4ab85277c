"""Runs in a folder, in the order in which people want to read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import SpecError
from equipoise.experiments.runs.folder import RunFolder

__all__ = ["find_runs"]


def find_runs(root: str | os.PathLike[str]) -> list[RunFolder]:
    """Return the runs in a folder, or the run that the folder is.

    A folder is a run if it has a record of a run, or a ``spec.toml`` under a name that runs have: any other
    ``spec.toml`` is someone's file. Hidden folders, such as the trash, are passed over.

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
    if RunFolder(base).is_run():
        return [RunFolder(base)]
    inner = (RunFolder(path) for path in base.iterdir() if path.is_dir() and not path.name.startswith("."))
    return sorted((run for run in inner if run.is_run()), key=_place)


def _place(folder: RunFolder) -> tuple[Any, ...]:
    """Sort by data, network, place of the method in the catalogue (cross-entropy first), and seed; broken ones last."""
    try:
        spec = folder.spec()
    except SpecError:
        return (1, folder.name)
    known = _method_order()
    rank = known.index(spec.method.name) if spec.method.name in known else len(known)
    return (0, spec.data.name, spec.model.name, rank, spec.method.label, spec.seed, folder.name)


def _method_order() -> list[str]:
    """Return all methods in the order of the catalogue."""
    return [key for category in ("losses", "objectives") for key in CATALOGUE[category]]
