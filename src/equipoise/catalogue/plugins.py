"""Methods of other packages under names of their own: in ``list``, ``show`` and specs like ours."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from equipoise.catalogue.entry import Entry
from equipoise.catalogue.loader import CATALOGUE
from equipoise.core.errors import EquipoiseWarning, SpecError, first_line
from equipoise.core.names import look_up

__all__ = ["GROUP", "add_plugins", "failed_plugins", "register"]

#: The group of entry points that is loaded.
GROUP = "equipoise"
_tried: list[EntryPoint] = []
_failures: dict[str, str] = {}
_EXTENSIBLE = ("losses", "penalties", "objectives", "models", "recipes")


def register(category: str, entry: Entry) -> None:
    """Add a method under a name of its own, for this process; packages provide theirs by entry points.

    Args:
        category: ``"losses"``, ``"penalties"``, ``"objectives"``, ``"models"`` or ``"recipes"``.
        entry: The method. Objectives are called with ``parts``, networks with ``n_classes``.

    Raises:
        SpecError: If the category cannot be extended, or the name is taken.

    Example:
        >>> register("attic", CATALOGUE["losses"]["ce"])
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: no extensible category 'attic'; known: losses, ...
    """
    look_up(category, dict.fromkeys(_EXTENSIBLE), what="extensible category")
    if not isinstance(entry, Entry):
        raise SpecError(f"register: expected an Entry, got {type(entry).__name__}.")
    if not entry.key or any(letter in entry.key for letter in ":+*/ "):
        raise SpecError(
            f"register: {entry.key!r} is not a name: it must not contain any of ':+*/' or spaces."
        )
    if entry.key in CATALOGUE[category]:
        raise SpecError(f"register: {entry.key!r} is taken in {category}. Choose another name.")
    CATALOGUE[category][entry.key] = entry


def add_plugins() -> None:
    """Add the methods of installed packages, once: entry points of the group ``equipoise``, named ``category.key``.

    Called when names are first looked up and not on import, since such a package imports this one. A plugin that cannot
    be loaded causes one :class:`~equipoise.core.errors.EquipoiseWarning`; the others are still loaded.

    Example:
        >>> add_plugins()
    """
    for point in _points():
        if point in _tried:
            continue
        _tried.append(point)
        category, _, key = point.name.partition(".")
        try:
            register(category, point.load())
        except KeyboardInterrupt:
            _tried.remove(point)
            raise
        except BaseException as error:  # noqa: BLE001 - code of others; it may even call sys.exit
            package = "" if point.dist is None else f" of the package {point.dist.name!r}"
            reason = f"{type(error).__name__}: {first_line(error)}"
            failure = f"the entry point {point.name!r}{package} cannot be used: {reason}"
            _failures[key] = f"{failure}. Repair or uninstall it."
            warnings.warn(_failures[key], EquipoiseWarning, stacklevel=2)


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
