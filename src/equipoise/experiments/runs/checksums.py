"""Whether the files of a run are the ones that were written: digests, and records that vouch for themselves."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from equipoise.core.atomic_files import write_text
from equipoise.core.errors import DataError

__all__ = [
    "NUMBER",
    "check_content",
    "file_digest",
    "is_unchanged",
    "read_json",
    "read_sealed",
    "seal_of",
    "write_json",
    "write_sealed",
]

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


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's content.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "a"
        >>> _ = file.write_bytes(b"abc")
        >>> file_digest(file)[:8]
        'ba7816bf'
    """
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_unchanged(path: Path, digest: str) -> bool:
    """Return whether a file is there and has the digest it had.

    Example:
        >>> is_unchanged(Path("nowhere"), "ba7816bf")
        False
    """
    try:
        return file_digest(path) == digest
    except OSError:
        return False


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
            raise DataError(f"{path}: damaged: too large for a record of a run.")
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
        >>> check_content({"splits": ["test", 5]}, {"splits": [str]}, where="predicted.json")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: predicted.json: damaged: `splits.1` must be text, got int.
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
            check_content(one, expected[0], where=where, key=f"{inner}{number}")
    elif isinstance(expected, dict) and str in expected:
        for name, one in content.items():
            check_content(one, expected[str], where=where, key=f"{inner}{name}")
    elif isinstance(expected, dict):
        for name, one in expected.items():
            plain = name.removesuffix("?")
            if plain in content:
                check_content(content[plain], one, where=where, key=f"{inner}{plain}")
            elif plain == name:
                raise DataError(f"{where}: damaged: `{inner}{plain}` is missing.")


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


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a record with a digest of itself.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "trained.json"
        >>> write_sealed(file, {"run": "abc", "files": {}})
        >>> read_sealed(file)["run"]
        'abc'
    """
    write_json(path, {**content, "seal": seal_of(content)})


def read_sealed(path: Path, expected: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Read a record and check that it is the one that was written.

    Args:
        path: The file.
        expected: Keys and types beyond those of every record, as in :func:`check_content`.

    Raises:
        DataError: If it is not, lacks a key, or names files outside its folder.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "trained.json"
        >>> _ = file.write_text("{}")
        >>> read_sealed(file)
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: ...trained.json: damaged: its content does not match its seal.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.pop("seal", None) != seal_of(content):
        raise DataError(f"{path}: damaged: its content does not match its seal.")
    check_content(content, {"run": str, "files": {str: str}, **(expected or {})}, where=str(path))
    if not all(map(_is_inside, content["files"])):
        raise DataError(f"{path}: damaged: it names files outside of its folder.")
    return content


def seal_of(content: Mapping[str, Any]) -> str:
    """Return a digest of plain values.

    Example:
        >>> seal_of({"a": 1, "b": 2}) == seal_of({"b": 2, "a": 1})
        True
    """
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name
