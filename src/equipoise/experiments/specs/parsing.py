"""Tables of plain values become typed records, checked key by key."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from equipoise.core.errors import SpecError, located
from equipoise.core.names import look_up
from equipoise.experiments.code.component import Component, freeze

__all__ = ["as_list", "check_keys", "parse_component", "parse_value", "record_from_table", "set_key"]

T = TypeVar("T")


def record_from_table(kind: type[T], table: Any, *, where: str) -> T:
    """Return a record made from a table whose keys and types must fit; a name alone is a table with that name.

    Args:
        kind: A frozen dataclass.
        table: Plain values by field name, or a name.
        where: File and key, for the message.

    Returns:
        The record.

    Raises:
        SpecError: For an unknown key, with the nearest one, or a value of another type.

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
    table = {"name": table} if isinstance(table, str) else table
    if not isinstance(table, Mapping):
        raise SpecError(f"{where}: must be a name or a table, got {table!r}.")
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    check_keys(table, [field.name for field in fields], where=where)
    for field in fields:
        has_default = not (field.default is field.default_factory is dataclasses.MISSING)
        if field.name not in table and not has_default:
            raise SpecError(f"{where}: the key {field.name!r} is missing.")
    hints = typing.get_type_hints(kind)
    return kind(
        **{key: parse_value(hints[key], value, where=f"{where}.{key}") for key, value in table.items()}
    )


def parse_component(given: Any, *, where: str, base_dir: str | None = None) -> Component:
    """Return a name, or a table of name and options, as a component; code is named, not yet loaded.

    Args:
        given: A name, a table, or a component.
        where: File and key, for the message.
        base_dir: The folder that files of code are relative to; None is the current one.

    Raises:
        SpecError: If it is neither, or has other keys.

    Example:
        >>> parse_component({"name": "histogram", "options": {"n_bins": 5}}, where="doc").label
        'histogram(n_bins=5)'
    """
    if isinstance(given, Component):
        return given
    if not isinstance(given, (str, Mapping)):
        raise SpecError(f"{where}: expected a name or a table, got {given!r}.")
    table = {"name": given} if isinstance(given, str) else given
    check_keys(table, ("name", "options"), where=where)
    if not isinstance(table.get("name"), str):
        raise SpecError(f"{where}: the key 'name' is missing.")
    options = table.get("options", {})
    if not isinstance(options, Mapping):
        raise SpecError(f"{where}.options: must be a table, got {options!r}.")
    return Component(name=table["name"], options=freeze(options, f"{where}.options"), base_dir=base_dir)


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


def parse_value(hint: Any, value: Any, *, where: str) -> Any:
    """Return a value of the type that a hint names.

    Raises:
        SpecError: For a value of another type.

    Example:
        >>> parse_value(float, 1, where="doc")
        1.0
    """
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        return None if value is None else parse_value(options[0], value, where=where)
    if hint is Component:
        return parse_component(value, where=where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return record_from_table(hint, value, where=where)
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(parse_value(typing.get_args(hint)[0], item, where=where) for item in value)
    if origin is not None and isinstance(value, Mapping):
        return freeze(value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    expected = getattr(hint, "__name__", str(hint))
    raise SpecError(f"{where}: must be {expected}, got {type(value).__name__} {value!r}.")


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as a list of one.

    Example:
        >>> as_list("ce"), as_list(["ce", "focal"])
        (['ce'], ['ce', 'focal'])
    """
    return list(value) if isinstance(value, (list, tuple)) else [value]


def set_key(table: dict[str, Any], path: str, value: Any) -> None:
    """Set a dotted key in nested tables; a name on the way becomes a table.

    Example:
        >>> table = {"recipe": "quick"}
        >>> set_key(table, "recipe.epochs", 5); table
        {'recipe': {'name': 'quick', 'epochs': 5}}
    """
    *parents, last = path.split(".")
    for parent in parents:
        inner = table.setdefault(parent, {})
        if isinstance(inner, str):
            inner = table[parent] = {"name": inner}
        if not isinstance(inner, dict):
            raise SpecError(f"--set {path}: {parent!r} is a list here. Change the file instead.")
        table = inner
    table[last] = value
