"""Look-ups by name that suggest the nearest valid name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from equipoise.core.errors import SpecError

__all__ = ["check_choice", "look_up", "nearest"]

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like ``name``, or None if none is near.

    Example:
        >>> nearest("focall", ["ce", "focal"])
        'focal'
    """
    by_lower = {option.lower(): option for option in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def look_up(
    name: str, table: Mapping[str, T], *, what: str, hint: str = "", renamed: Mapping[str, str] | None = None
) -> T:
    """Return ``table[name]``, or raise with the nearest valid name.

    Args:
        name: The key.
        table: Valid keys and their values.
        what: The kind of thing, for the message: "loss", "metric" ...
        hint: What to do if no name is near; by default the valid names are listed.
        renamed: Former names, and what to say about each.

    Returns:
        The value.

    Raises:
        SpecError: If there is no such key.

    Example:
        >>> look_up("ce", {"ce": 1}, what="loss")
        1
        >>> look_up("focall", {"focal": 1}, what="loss")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: no loss 'focall'; did you mean 'focal'?
    """
    if name in table:
        return table[name]
    if renamed and name in renamed:
        raise SpecError(f"no {what} {name!r}; {renamed[name]}")
    guess = nearest(str(name), table)
    remedy = f"did you mean {guess!r}?" if guess else hint or f"known: {', '.join(sorted(table))}."
    raise SpecError(f"no {what} {name!r}; {remedy}")


def check_choice(value: object, choices: Iterable[str], *, where: str, name: str) -> None:
    """Raise unless ``value`` is one of a few words.

    Raises:
        ValueError: With the words allowed and the nearest one.

    Example:
        >>> check_choice("left", ("left", "right"), where="ece", name="closed")
        >>> check_choice("rihgt", ("left", "right"), where="ece", name="closed")
        Traceback (most recent call last):
        ...
        ValueError: ece: `closed` must be 'left' or 'right', got 'rihgt'. Did you mean 'right'?
    """
    words = list(choices)
    if value in words:
        return
    guess = nearest(str(value), words)
    expected = " or ".join(repr(word) for word in words)
    remedy = f" Did you mean {guess!r}?" if guess else ""
    raise ValueError(f"{where}: `{name}` must be {expected}, got {value!r}.{remedy}")
