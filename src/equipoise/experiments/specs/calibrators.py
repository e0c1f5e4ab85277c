"""Calibrators of a comparison: a name of the catalogue or code, with options or without."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, final

from equipoise.calibrators import Calibrator
from equipoise.calibrators.choose import Advisor
from equipoise.calibrators.load import KINDS
from equipoise.calibrators.own import as_calibrator
from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.experiments.code.adapters import check_keywords
from equipoise.experiments.code.named import Wanted
from equipoise.experiments.code.names import is_code
from equipoise.experiments.specs.parsing import number_keys, read_named

__all__ = ["AUTO", "MapSpec", "as_map", "is_auto"]

#: The name under which the advisor stands among calibrators: it chooses one for every training.
AUTO = "auto"


@final
@dataclass(frozen=True, kw_only=True)
class MapSpec(Wanted):
    """A post-hoc map that shall be fitted: a calibrator of the catalogue, ``"auto"`` for the advisor, or code.

    Example:
        >>> MapSpec(name="dirichlet", options={"off_diagonal": 0.1}).key
        'dirichlet(off_diagonal=0.1)'
        >>> MapSpec(name="maps/shrink.py:Shrink").key
        'maps-shrink.py-Shrink'
    """

    @property
    def key(self) -> str:
        """What it is called in tables and files."""
        name = re.sub(r"[/\\:]+", "-", self.name).lstrip(".-")
        return re.sub(r"[^\w.=,()+-]+", "", name + self.settings(",")) if self.options else name

    def make(self) -> Calibrator | Advisor:
        """Return it, not yet fitted; its ``fit`` returns a fitted calibrator.

        Raises:
            SpecError: If code is not there, or gives no map.
        """
        options = number_keys(self.options)
        if self.name == AUTO:
            return Advisor(**options)
        if not is_code(self.name):
            made: Calibrator = CATALOGUE["calibrators"][self.name].make(**options)
            return made
        made = as_calibrator(self.make_own(), name=self.key)
        if made.kind in KINDS and type(made) is not KINDS[made.kind]:
            raise SpecError(f"{self.name}: the kind {made.kind!r} is one of ours. Give yours another `kind`.")
        return made

    def make_own(self) -> Any:
        """Return what code makes: a calibrator, or a map of someone's own."""
        found = self.code.load()
        if not callable(found) or (hasattr(found, "learn") and not isinstance(found, type)):
            return found
        check_keywords(found, self.options, name=self.name)
        return found(**number_keys(self.options))


def is_auto(key: str) -> bool:
    """Return whether a calibrator of this key was chosen by the advisor.

    Example:
        >>> is_auto("auto(rule=best)"), is_auto("temperature")
        (True, False)
    """
    return key.partition("(")[0] == AUTO


def as_map(given: Any, *, where: str, home: str | None = None) -> MapSpec:
    """Return a calibrator that was given by name or as a table, checked; code is named, not yet loaded.

    Args:
        given: A name, or a table of name and options.
        where: File and key, for the message.
        home: The folder that files of code are relative to; None is the current one.

    Raises:
        SpecError: If there is no such calibrator or option, or a value is refused.

    Example:
        >>> as_map("vector", where="doc").key
        'vector'
        >>> as_map({"name": "histogram", "options": {"bins": "wdth"}}, where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: doc: ...Did you mean 'width'?
    """
    if isinstance(given, MapSpec):
        return given
    found = read_named(MapSpec, given, where=where)
    try:
        if is_code(found.name):
            return found.at(home)
        hint = "`equipoise list calibrators` shows all; 'auto' lets the advisor choose; your own is 'file.py:name'."
        entry = look_up(found.name, {AUTO: None, **CATALOGUE["calibrators"]}, what="calibrator", hint=hint)
        check_keywords(Advisor if entry is None else entry.factory, found.options, name=found.name)
        found.make()
    except (ValueError, TypeError) as error:
        raise SpecError(f"{where}: {error}") from error
    return found
