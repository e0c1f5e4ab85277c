"""Tidy files of evidence: rows of plain values, rounded to what is worth keeping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from equipoise.experiments.rows import read_rows, write_rows

HERE = Path(__file__).resolve().parent
#: Far below every interval, and enough to tell whether a cell was repeated.
DIGITS = 6


def write(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of this folder; numbers keep six digits."""
    kept = [{key: short(value) for key, value in row.items()} for row in rows]
    if kept:
        write_rows(HERE / name, kept)
        print(f"{name}: {len(kept)} rows")


def short(value: Any) -> Any:
    """Round a number to the digits that are kept."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def read(name: str) -> list[dict[str, Any]]:
    """Read a file of this folder; nothing if it was not made yet."""
    return read_rows(HERE / name) if (HERE / name).exists() else []
