"""Tidy rows as CSV: one head, numbers with every digit."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise.core.atomic_files import write_text
from equipoise.core.errors import DataError

__all__ = ["read_rows", "write_rows"]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV file, numbers as numbers.

    Raises:
        DataError: If it is no whole CSV file.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "a.csv"
        >>> write_rows(file, [{"metric": "ece", "value": 0.5, "note": None}])
        >>> read_rows(file)
        [{'metric': 'ece', 'value': 0.5, 'note': None}]
    """
    try:
        text = path.read_text(encoding="utf-8")
        names, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: damaged: no rows can be read ({str(error)[:100]}).") from error
    if any(len(line) != len(names) for line in lines) or not text.endswith("\n"):
        raise DataError(f"{path}: damaged: lines differ in length.")
    return [dict(zip(names, map(_number, line), strict=True)) for line in lines]


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV, all or nothing; numbers keep every digit.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "a.csv"
        >>> write_rows(file, [{"seed": 1}])
        >>> file.read_text().split()
        ['seed', '1']
    """
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
