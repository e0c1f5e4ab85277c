"""Packages that load their parts when they are first used, so that importing the package is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from equipoise.core.errors import needs

__all__ = ["lazy_names", "listed_names"]


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
            value = getattr(_imported(names[name], name), name)
        elif name in modules:
            value = _imported(f"{package}.{name}", name)
        else:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
        setattr(sys.modules[package], name, value)
        return value

    def show() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *modules} - {"TYPE_CHECKING"})

    return get, show


def _imported(module: str, name: str) -> ModuleType:
    with needs("torch", extra="torch", purpose=f"use {name}"):
        return import_module(module)


def listed_names(package: str) -> Callable[[], list[str]]:
    """Return ``__dir__`` for a module that shows what it lists, and not what it imports for itself.

    Args:
        package: Its ``__name__``; it has ``__all__``.

    Returns:
        The function.

    Example:
        >>> "sys" in listed_names("equipoise.core.lazy")(), "lazy_names" in listed_names("equipoise.core.lazy")()
        (False, True)
    """

    def show() -> list[str]:
        names = vars(sys.modules[package])
        return sorted(name for name in names if name in names["__all__"] or name.startswith("__"))

    return show
