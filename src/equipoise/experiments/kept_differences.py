"""Paired differences of runs, seed by seed: written beside a comparison's runs, read by its tables and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from equipoise.core.errors import DataError
from equipoise.evaluate import Difference
from equipoise.evaluate.card_checks import check_difference
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.integrity import seal_of
from equipoise.experiments.rows import read_rows, write_rows

__all__ = ["KeptDifferences", "differences_beside", "write_differences"]

#: Differences of two runs on the same test rows, one per metric, by the stamps of the two.
KeptDifferences: TypeAlias = Mapping[tuple[str, str], Sequence[Difference]]

_ENDING = ".differences.csv"
_READ = (*Difference._fields, "first_stamp", "second_stamp")


def write_differences(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write what a comparison found beside its runs; one that had nothing to compare leaves no file."""
    path = folder / f"{name}{_ENDING}"
    if rows:
        write_rows(path, [{**row, "seal": _seal(row)} for row in rows])
    else:
        path.unlink(missing_ok=True)


def differences_beside(runs: Iterable[RunFolder]) -> KeptDifferences:
    """Return what comparisons wrote down beside runs; a run that was made or scored anew since has another stamp.

    Raises:
        DataError: If a file of theirs is not as it was written.

    Example:
        >>> differences_beside([])
        {}
    """
    found: dict[tuple[str, str], list[Difference]] = {}
    for folder in sorted({run.path.parent for run in runs}):
        for file in sorted(folder.glob(f"*{_ENDING}")):
            # Two comparisons of one folder may both have compared two runs, with the same outcome.
            found.update(_read(file))
    return found


def _read(file: Path) -> dict[tuple[str, str], list[Difference]]:
    rows = read_rows(file)
    if not all(row.get("seal") == _seal(row) for row in rows):
        raise DataError(
            f"{file}: damaged: not the differences that a comparison wrote. Delete it; they are computed anew."
        )
    # A run that stands under two labels, its own and that of a choice, is told of twice.
    found: dict[tuple[str, str], dict[str, Difference]] = {}
    for row in rows:
        one = Difference(*(row[name] for name in Difference._fields))
        try:
            check_difference(one)
        except ValueError as error:
            raise DataError(f"{file}: damaged: {error}. Delete it; they are computed anew.") from None
        found.setdefault((row["first_stamp"], row["second_stamp"]), {})[one.metric] = one
    return {stamps: list(by_metric.values()) for stamps, by_metric in found.items()}


def _seal(row: Mapping[str, Any]) -> str:
    """Return a digest of what is read again; like a stamp, no number."""
    return f"sha256:{seal_of({name: row.get(name) for name in _READ})[:16]}"
