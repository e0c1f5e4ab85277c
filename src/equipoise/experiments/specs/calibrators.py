"""Calibrators by name: of the catalogue, the advisor, or the user's own code."""

from __future__ import annotations

import re
from typing import Any

from equipoise.calibrators import Calibrator
from equipoise.calibrators.loading import KINDS
from equipoise.calibrators.own import as_calibrator
from equipoise.calibrators.selection import Advisor
from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import SpecError, located
from equipoise.core.names import look_up
from equipoise.experiments.code.adapters import check_keywords
from equipoise.experiments.code.component import Component
from equipoise.experiments.code.source import split_reference
from equipoise.experiments.specs.parsing import parse_component

__all__ = ["AUTO", "calibrator_key", "load_own_calibrator", "make_calibrator", "parse_calibrator"]

#: The name of the advisor among calibrators: it chooses one for every training.
AUTO = "auto"


def parse_calibrator(given: Any, *, where: str, base_dir: str | None = None) -> Component:
    """Return a calibrator that was given by name or as a table, checked; code is named, not yet loaded.

    Args:
        given: A name, a table of name and options, or a component.
        where: File and key, for the message.
        base_dir: The folder that files of code are relative to; None is the current one.

    Raises:
        SpecError: If there is no such calibrator or option, or a value is not allowed.

    Example:
        >>> parse_calibrator("vector", where="doc").name
        'vector'
        >>> parse_calibrator({"name": "histogram", "options": {"bins": "wdth"}}, where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: doc: ...Did you mean 'width'?
    """
    if isinstance(given, Component):
        return given
    found = parse_component(given, where=where, base_dir=base_dir)
    if found.is_code:
        with located(where):
            split_reference(found.name)
        return found
    try:
        hint = "`equipoise list calibrators` shows all; 'auto' lets the advisor choose; your own is 'file.py:name'."
        entry = look_up(found.name, {AUTO: None, **CATALOGUE["calibrators"]}, what="calibrator", hint=hint)
        check_keywords(Advisor if entry is None else entry.factory, found.options, name=found.name)
        make_calibrator(found)
    except (ValueError, TypeError) as error:
        raise SpecError(f"{where}: {error}") from error
    return found


def calibrator_key(component: Component) -> str:
    """Return what a calibrator is called in tables and files.

    Example:
        >>> calibrator_key(Component(name="dirichlet", options={"off_diagonal": 0.1}))
        'dirichlet(off_diagonal=0.1)'
        >>> calibrator_key(Component(name="maps/shrink.py:Shrink"))
        'maps-shrink.py-Shrink'
    """
    name = re.sub(r"[/\\:]+", "-", component.name).lstrip(".-")
    if not component.options:
        return name
    label = component.label.replace(component.name, name, 1).replace(", ", ",")
    return re.sub(r"[^\w.=,()+-]+", "", label)


def make_calibrator(component: Component) -> Calibrator | Advisor:
    """Return a calibrator that is not fitted yet; its ``fit`` returns a fitted calibrator.

    Raises:
        SpecError: If code is missing, or does not make a calibrator.

    Example:
        >>> make_calibrator(Component(name="vector")).kind
        'vector'
    """
    if component.name == AUTO:
        return Advisor(**component.keywords)
    if not component.is_code:
        made: Calibrator = CATALOGUE["calibrators"][component.name].make(**component.keywords)
        return made
    made = as_calibrator(load_own_calibrator(component), name=calibrator_key(component))
    if made.kind in KINDS and type(made) is not KINDS[made.kind]:
        raise SpecError(f"{component.name}: the kind {made.kind!r} is taken. Give yours another `kind`.")
    return made


def load_own_calibrator(component: Component) -> Any:
    """Return what the user's own code makes: a calibrator, or an object that learns one."""
    found = component.load()
    if not callable(found) or (hasattr(found, "learn") and not isinstance(found, type)):
        return found
    check_keywords(found, component.options, name=component.name)
    return found(**component.keywords)
