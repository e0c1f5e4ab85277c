"""TOML in and out: the standard library reads it, and writing our few kinds of values takes a page."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise.core.errors import SpecError

__all__ = ["format_toml", "parse_override", "read_toml"]

_LARGEST = 1 << 20
#: Parts of a dotted key; the standard reader takes a time that grows with their square.
_DEEPEST = 100


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        SpecError: If there is no such file, or it is no TOML.

    Example:
        >>> read_toml("nowhere.toml")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: nowhere.toml: no such file.
    """
    file = Path(path)
    if not file.is_file():
        raise SpecError(f"{file}: no such file.")
    try:
        if file.stat().st_size > _LARGEST:
            raise SpecError(f"{file}: too large for a spec. Is it another file?")
        text = file.read_text(encoding="utf-8")
        if any(part.count(".") > _DEEPEST for line in text.splitlines() for part in line.split(",")):
            raise SpecError(
                f"{file}: not a spec: a key of over {_DEEPEST} parts, or none. Is it another file?"
            )
        return tomllib.loads(text)
    except SpecError:
        raise
    except OSError as error:
        raise SpecError(f"{file}: cannot be read ({error.strerror or error}).") from error
    except RecursionError as error:
        raise SpecError(f"{file}: not a spec: tables within tables without end.") from error
    except ValueError as error:
        raise SpecError(f"{file}: not valid TOML: {error}.") from error


def parse_override(text: str) -> tuple[str, Any]:
    """Split ``key=value``; the value is TOML, or text if it is not.

    Example:
        >>> parse_override("recipe.epochs=5")
        ('recipe.epochs', 5)
        >>> parse_override("model=mlp")
        ('model', 'mlp')
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise SpecError(f"--set {text}: must be key=value, for example recipe.epochs=5.")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def format_toml(table: Mapping[str, Any]) -> str:
    r"""Return TOML text: plain values first, then tables.

    Example:
        >>> format_toml({"seed": 1, "model": {"name": "mlp", "options": {"hidden": [8, 8]}}})
        'seed = 1\n\n[model]\nname = "mlp"\n\n[model.options]\nhidden = [8, 8]\n'
    """
    return "\n".join(_lines(table, ())) + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [
        f"{_key(key)} = {_inline(value)}" for key, value in table.items() if not isinstance(value, Mapping)
    ]
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner = (*path, key)
            heading = [f"[{'.'.join(map(_key, inner))}]"]
            lines += [*([""] if lines else []), *heading, *_lines(value, inner)]
    return lines


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _quoted(key)


def _quoted(text: str) -> str:
    # JSON's strings are TOML's, but for characters beyond the first plane, which JSON splits, and DEL, which it keeps.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_inline(item)}" for key, item in value.items()) + "}"
    return repr(value)
