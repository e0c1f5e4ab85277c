"""Packages that load their parts when they are first asked for, so that opening the door costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, names: Mapping[str, str], *, modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose names are loaded on first use.

    A name may not be that of a module of the package: importing the module would put it in the name's place.

    Args:
        package: Its ``__name__``.
        names: Public names, and the module that each comes from.
        modules: Modules of the package that can be reached as attributes, without an import of their own.

    Returns:
        The two functions; the package's own namespace keeps what was loaded.

    Example:
        >>> get, show = lazy_names("equipoise.core", {"Rows": "equipoise.core.rows"}, modules=("seeds",))
        >>> get("Rows").__name__, get("seeds").__name__
        ('Rows', 'equipoise.core.seeds')
        >>> {"Rows", "seeds"} <= set(show())
        True
    """

    def get(name: str) -> Any:
        if name in names:
            value = getattr(import_module(names[name]), name)
        elif name in modules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
        setattr(sys.modules[package], name, value)
        return value

    def show() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *modules} - {"TYPE_CHECKING"})

    return get, show
