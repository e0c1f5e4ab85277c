"""Methods of other packages under names of their own: in ``list``, ``show`` and specs like ours."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.experiments.catalogue.entry import Entry

__all__ = ["GROUP", "load_plugins", "register_in"]

#: The group of entry points that is looked at.
GROUP = "equipoise"
_loaded: list[EntryPoint] = []
_OPEN = ("losses", "penalties", "objectives", "models", "recipes")


def register_in(catalogue: Mapping[str, Mapping[str, Entry]], room: str, entry: Entry) -> None:
    """Add an entry to a room of a catalogue.

    Raises:
        SpecError: If the room takes none, or the name is taken.

    Example:
        >>> rooms = {"losses": {}}
        >>> register_in(rooms, "losses", Entry(key="mine", title="", made_by=dict, fidelity="yours", summary=""))
        >>> list(rooms["losses"])
        ['mine']
    """
    look_up(room, dict.fromkeys(_OPEN), what="room that takes methods of others")
    if not isinstance(entry, Entry):
        raise SpecError(f"register: an Entry was wanted, got {type(entry).__name__}.")
    if not entry.key or any(letter in entry.key for letter in ":+*/ "):
        raise SpecError(f"register: {entry.key!r} is no name: it must not hold any of ':+*/' or spaces.")
    if entry.key in catalogue[room]:
        raise SpecError(f"register: {entry.key!r} is taken in {room}. Choose another name.")
    cast("MutableMapping[str, Entry]", catalogue[room])[entry.key] = entry


def load_plugins(catalogue: Mapping[str, Mapping[str, Entry]]) -> None:
    """Add what installed packages offer: entry points of the group ``equipoise``, named ``room.key``, each an Entry.

    Called when names are first looked up and not on import, since such a package imports this one.

    Raises:
        SpecError: With the package, if one cannot be loaded.

    Example:
        >>> load_plugins({})
    """
    for point in _points():
        if point in _loaded:
            continue
        room = point.name.partition(".")[0]
        try:
            register_in(catalogue, room, point.load())
        except Exception as error:
            package = "" if point.dist is None else f" of the package {point.dist.name!r}"
            raise SpecError(f"the entry point {point.name!r}{package} cannot be used: {error}") from error
        _loaded.append(point)


@cache
def _points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))
