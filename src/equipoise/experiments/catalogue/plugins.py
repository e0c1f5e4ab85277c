"""Methods of other packages under names of their own: in ``list``, ``show`` and specs like ours."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, MutableMapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import cast

from equipoise.core.errors import EquipoiseWarning, SpecError, first_line
from equipoise.core.names import look_up
from equipoise.experiments.catalogue.entry import Entry

__all__ = ["GROUP", "failed_plugins", "load_plugins", "register_in"]

#: The group of entry points that is looked at.
GROUP = "equipoise"
_tried: list[EntryPoint] = []
_failures: dict[str, str] = {}
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

    Called when names are first looked up and not on import, since such a package imports this one. A plugin that cannot
    be loaded gives one :class:`~equipoise.core.errors.EquipoiseWarning`, and the others are loaded all the same.

    Example:
        >>> load_plugins({})
    """
    for point in _points():
        if point in _tried:
            continue
        _tried.append(point)
        room, _, key = point.name.partition(".")
        try:
            register_in(catalogue, room, point.load())
        except KeyboardInterrupt:
            _tried.remove(point)
            raise
        except BaseException as error:  # noqa: BLE001 - code of others; it may even call sys.exit
            package = "" if point.dist is None else f" of the package {point.dist.name!r}"
            reason = f"{type(error).__name__}: {first_line(error)}"
            failure = f"the entry point {point.name!r}{package} cannot be used: {reason}"
            _failures[key] = f"{failure}. Repair or uninstall it."
            warnings.warn(_failures[key], EquipoiseWarning, stacklevel=3)


def failed_plugins() -> Mapping[str, str]:
    """Return why plugins could not be loaded, by the key that each was to provide.

    Example:
        >>> dict(failed_plugins())
        {}
    """
    return MappingProxyType(_failures)


@cache
def _points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))
