"""Tables of plain values become typed records, checked key by key."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from equipoise.core.errors import SpecError, located
from equipoise.core.names import look_up

__all__ = ["check_keys", "number_keys", "plain", "read_named", "record_from_table", "set_key"]

T = TypeVar("T")


def record_from_table(kind: type[T], table: Mapping[str, Any], *, where: str) -> T:
    """Return a record made from a table whose keys and types must fit.

    Args:
        kind: A frozen dataclass.
        table: Plain values by field name.
        where: File and key, for the message.

    Returns:
        The record.

    Raises:
        SpecError: For a key that is not there, with the nearest one, or a value of another type.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Point:
        ...     x: float
        >>> record_from_table(Point, {"x": 1}, where="doc")
        Point(x=1.0)
        >>> record_from_table(Point, {"y": 1}, where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: doc: no key 'y'; known: x.
    """
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    check_keys(table, names, where=where)
    values = {key: _value(hints[key], value, f"{where}.{key}") for key, value in table.items()}
    try:
        return kind(**values)
    except TypeError as error:
        missing = [
            field.name
            for field in dataclasses.fields(kind)  # type: ignore[arg-type]
            if field.name not in values
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ]
        if not missing:
            raise
        raise SpecError(f"{where}: the key {missing[0]!r} is missing.") from error


def read_named(kind: type[T], given: Any, *, where: str) -> T:
    """Return a record of a name and options, which may be given as the name alone.

    Args:
        kind: A frozen dataclass with these two among its fields; others are not for a spec to set.
        given: A name, or a table.
        where: File and key, for the message.

    Raises:
        SpecError: If it is neither, or has other keys.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Asked:
        ...     name: str
        ...     digest: str = ""
        >>> read_named(Asked, "ece", where="doc").name
        'ece'
    """
    if not isinstance(given, (str, Mapping)):
        raise SpecError(f"{where}: a name or a table was wanted, got {given!r}.")
    table = {"name": given} if isinstance(given, str) else given
    check_keys(table, ("name", "options"), where=where)
    return record_from_table(kind, table, where=where)


def check_keys(table: Iterable[str], known: Collection[str], *, where: str) -> None:
    """Raise for a key that is not known, with the nearest one.

    Example:
        >>> check_keys({"optoins": 1}, ("name", "options"), where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: doc: no key 'optoins'; did you mean 'options'?
    """
    with located(where):
        for key in table:
            look_up(key, dict.fromkeys(known), what="key")


def _value(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        if value is None:
            return None
        return _value(options[0], value, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            raise SpecError(f"{where}: must be a name or a table, got {value!r}.")
        return record_from_table(hint, value, where=where)
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(_value(typing.get_args(hint)[0], item, where) for item in value)
    if origin is not None and isinstance(value, Mapping):
        return {str(key): _frozen(item, f"{where}.{key}") for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    wanted = getattr(hint, "__name__", str(hint))
    raise SpecError(f"{where}: must be {wanted}, got {type(value).__name__} {value!r}.")


def _frozen(value: Any, where: str) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item, where) for item in value)
    if isinstance(value, Mapping):
        return {str(key): _frozen(item, f"{where}.{key}") for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise SpecError(
        f"{where}: must be a number, a text, a list or a table, got {type(value).__name__} {value!r}."
    )


def plain(value: Any) -> Any:
    """Return a record as dictionaries, lists and plain values; empty and absent ones are left out.

    Example:
        >>> plain({"a": (1, 2), "b": None, "c": {}})
        {'a': [1, 2]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        items = {str(key): plain(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not None and item not in ({}, [])}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def number_keys(value: Any) -> Any:
    """Return nested tables with numbers for keys where all keys are whole numbers, which TOML can only write as text.

    Example:
        >>> number_keys({"schedule": {"0": 5.0, "100": 3.0}})
        {'schedule': {0: 5.0, 100: 3.0}}
    """
    if isinstance(value, Mapping):
        numeric = bool(value) and all(isinstance(key, str) and key.isdecimal() for key in value)
        return {int(key) if numeric else key: number_keys(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(number_keys, value))
    return value


def set_key(table: dict[str, Any], path: str, value: Any) -> None:
    """Set a dotted key in nested tables; a name on the way becomes a table.

    Example:
        >>> table = {"recipe": "quick"}
        >>> set_key(table, "recipe.epochs", 5); table
        {'recipe': {'name': 'quick', 'epochs': 5}}
    """
    first, *rest = path.split(".")
    *parents, last = ["method" if first == "objective" else first, *rest]
    for parent in parents:
        inner = table.setdefault(parent, {})
        if isinstance(inner, str):
            inner = table[parent] = {"name": inner}
        if not isinstance(inner, dict):
            raise SpecError(f"--set {path}: {parent!r} is a list here. Change the file instead.")
        table = inner
    table[last] = value
