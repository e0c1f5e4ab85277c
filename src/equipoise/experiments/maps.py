"""Calibrators of a comparison: a name of the catalogue, with options or without."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from equipoise.calibrators import Calibrator
from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.experiments.catalogue import CATALOGUE
from equipoise.experiments.contracts import check_keywords
from equipoise.experiments.spec_parsing import number_keys, plain, read_record

__all__ = ["MapSpec", "as_map"]


@final
@dataclass(frozen=True, kw_only=True)
class MapSpec:
    """A post-hoc map that shall be fitted.

    Attributes:
        name: A calibrator of the catalogue.
        options: What differs from its main setting.

    Example:
        >>> MapSpec(name="dirichlet", options={"off_diagonal": 0.1}).key
        'dirichlet(off_diagonal=0.1)'
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What it is called in tables and files."""
        parts = [f"{key}={plain(value)}" for key, value in self.options.items()]
        return self.name if not parts else re.sub(r"[^\w.=,()+-]+", "", f"{self.name}({','.join(parts)})")

    def make(self) -> Calibrator:
        """Return it, not yet fitted."""
        made: Calibrator = CATALOGUE["calibrators"][self.name].make(**number_keys(self.options))
        return made


def as_map(given: Any, *, where: str) -> MapSpec:
    """Return a calibrator that was given by name or as a table, checked.

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
    if not isinstance(given, (str, Mapping)):
        raise SpecError(f"{where}: a name or a table was wanted, got {given!r}.")
    found = read_record(MapSpec, {"name": given} if isinstance(given, str) else given, where=where)
    try:
        entry = look_up(found.name, CATALOGUE["calibrators"], what="calibrator")
        check_keywords(entry.factory, found.options, name=found.name)
        found.make()
    except (ValueError, TypeError) as error:
        raise SpecError(f"{where}: {error}") from error
    return found
