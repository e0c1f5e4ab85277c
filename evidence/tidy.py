"""Tidy files of evidence: rows of plain values, rounded to what is worth keeping, which later days add to."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise.experiments.runs.rows import read_rows, write_rows

HERE = Path(__file__).resolve().parent
#: Far below every interval, and enough to tell whether a cell was repeated.
DIGITS = 6
#: Benchmarks of the second edition, whose files have a folder of their own.
SECOND = ("a2", "ap2", "b2", "c2", "e2", "t1", "t2")


def folder_of(benchmark: str) -> str:
    """Return the folder of a benchmark's files, in this one."""
    return f"second/{benchmark}" if benchmark in SECOND else benchmark


def write(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of this folder; numbers keep six digits."""
    kept = [{key: short(value) for key, value in row.items()} for row in rows]
    if kept:
        (HERE / name).parent.mkdir(parents=True, exist_ok=True)
        write_rows(HERE / name, kept)
        print(f"{name}: {len(kept)} rows")


def short(value: Any) -> Any:
    """Round a number to the digits that are kept."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def read(name: str) -> list[dict[str, Any]]:
    """Read a file of this folder; nothing if it was not made yet."""
    return read_rows(HERE / name) if (HERE / name).exists() else []


def add(
    name: str, rows: Iterable[Mapping[str, Any]], *, by: Sequence[str], repeated: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Put rows into a file of this folder, in place of those that say the same thing, and give all that is there then.

    Rows without new values keep their text: seeds of other days were run on machines that are gone.

    Args:
        name: The file.
        rows: What was found now.
        by: The columns that say what a row is about; methods keep the order in which they came, then seeds count.
        repeated: If a row has the same values as before in these columns, the former row is kept. Cross-entropy is
            trained again for a supplement, and its first times are those that other methods are compared with.
    """
    known = _lines(name)
    former = {tuple(row[key] for key in (*by, *repeated)): row for row in known if repeated}
    found = ({key: _text(short(value)) for key, value in row.items()} for row in rows)
    fresh = [former.get(tuple(row[key] for key in (*by, *repeated)), row) for row in found]
    renewed = {tuple(row[key] for key in by) for row in fresh}
    kept = [row for row in known if tuple(row[key] for key in by) not in renewed]
    order = list(dict.fromkeys(row["method"] for row in (*known, *fresh)))
    place = {method: number for number, method in enumerate(order)}
    write(name, sorted(kept + fresh, key=lambda row: (place[row["method"]], int(row["seed"]))))
    return read(name)


def _lines(name: str) -> list[dict[str, str]]:
    """Read a file of this folder as text: the digest of a run may look like a number."""
    if not (HERE / name).exists():
        return []
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
