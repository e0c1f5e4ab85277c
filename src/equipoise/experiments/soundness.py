"""Whether a file of a run is whole, as far as a quick look can tell."""

from __future__ import annotations

import csv
import json
import tomllib
import zipfile
from pathlib import Path

__all__ = ["is_whole"]


def is_whole(path: Path) -> bool:
    """Return whether a file is there and was not cut short or overwritten.

    Small files are read; of archives (predictions, checkpoints) only the directory at their end.

    Example:
        >>> is_whole(Path("nowhere.json"))
        False
    """
    try:
        return _LOOK[path.suffix](path)
    except (OSError, ValueError):
        return False


def _is_json(path: Path) -> bool:
    json.loads(path.read_text(encoding="utf-8"))
    return True


def _is_toml(path: Path) -> bool:
    tomllib.loads(path.read_text(encoding="utf-8"))
    return True


def _is_csv(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    widths = {len(row) for row in csv.reader(text.splitlines())}
    return text.endswith("\n") and len(widths) == 1 and "\0" not in text


_LOOK = {
    ".json": _is_json,
    ".toml": _is_toml,
    ".csv": _is_csv,
    ".npz": zipfile.is_zipfile,
    ".pt": zipfile.is_zipfile,
}
