"""JSON files of a run: read and checked key by key, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from equipoise.core.atomic_files import write_text
from equipoise.core.errors import DataError

__all__ = ["NUMBER", "check_content", "read_json", "write_json"]

_LARGEST = 1 << 26
#: A number in :func:`check_content`.
NUMBER = (int, float)
_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    list: "a list",
    type(None): "null",
}


def read_json(path: Path) -> Any:
    """Return the values of a JSON file.

    Raises:
        DataError: If it cannot be read, whatever stands in it.

    Example:
        >>> read_json(Path("nowhere.json"))
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: nowhere.json: damaged: cannot be read (No such file or directory).
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{path}: damaged: too large for a file of a run.")
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: damaged: cannot be read ({error.strerror or error}).") from error
    except RecursionError as error:
        raise DataError(f"{path}: damaged: tables within tables without end.") from error
    except ValueError as error:
        raise DataError(f"{path}: damaged: not valid JSON ({str(error)[:100]}).") from error


def check_content(content: Any, expected: Any, *, where: str, key: str = "") -> None:
    """Raise unless plain values have the keys and types that are expected.

    Args:
        content: What was read.
        expected: A type or several; ``[type]`` for a list of it; ``{str: type}`` for a table of it; or a table with an
            entry for each key, in which a key that ends with ``?`` may be missing.
        where: The file.
        key: Where the values stand in it.

    Raises:
        DataError: With file and key.

    Example:
        >>> check_content({"splits": ["test", 5]}, {"splits": [str]}, where="a.json")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: a.json: damaged: `splits.1` must be text, got int.
    """
    kind: tuple[type, ...] = expected if isinstance(expected, tuple) else (expected,)
    if isinstance(expected, (list, dict)):
        kind = (type(expected),)
    fits = isinstance(content, kind) and (
        bool in kind or not isinstance(content, bool)
    )  # JSON tells true from 1
    if not fits:
        words = " or ".join(dict.fromkeys(_WORDS.get(one, one.__name__) for one in kind))
        raise DataError(f"{where}: damaged: `{key}` must be {words}, got {type(content).__name__}.")
    inner = f"{key}." if key else ""
    if isinstance(expected, list):
        for number, one in enumerate(content):
            if not _is_plain(one, expected[0]):
                check_content(one, expected[0], where=where, key=f"{inner}{number}")
    elif isinstance(expected, dict) and str in expected:
        for name, one in content.items():
            if not _is_plain(one, expected[str]):
                check_content(one, expected[str], where=where, key=f"{inner}{name}")
    elif isinstance(expected, dict):
        for name, one in expected.items():
            plain = name.removesuffix("?")
            if plain in content:
                if not _is_plain(content[plain], one):
                    check_content(content[plain], one, where=where, key=f"{inner}{plain}")
            elif plain == name:
                raise DataError(f"{where}: damaged: `{inner}{plain}` is missing.")


def _is_plain(content: Any, expected: Any) -> bool:
    """Return whether a value is of an expected type itself; most are, and need no further look."""
    return type(content) is expected or (type(expected) is tuple and type(content) in expected)


def write_json(path: Path, content: Any) -> None:
    """Write plain values as JSON, all or nothing.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "a.json"
        >>> write_json(file, {"epochs": 3})
        >>> read_json(file)
        {'epochs': 3}
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(content, indent=2) + "\n")
