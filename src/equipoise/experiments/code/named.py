"""What a comparison names beside its methods: a word of the catalogue or code, with options or without."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from equipoise.experiments.code.adapters import Code
from equipoise.experiments.code.names import split_reference
from equipoise.experiments.specs.parsing import plain

__all__ = ["Wanted"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A name and options.

    Attributes:
        name: Of the catalogue, or code: ``"file.py:name"`` or ``"package.module:name"``.
        options: What differs from its main setting.
        home: The folder that files of code are relative to.
        digest: Of the code's content; empty takes any.

    Example:
        >>> Wanted(name="torch.nn:Linear").code.load().__name__
        'Linear'
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    home: str | None = None
    digest: str = ""

    @property
    def code(self) -> Code:
        """The code that is named, not yet loaded."""
        return Code(self.name, self.home, self.digest)

    def at(self, home: str | None) -> Self:
        """Return it with the folder that its code is looked for in; None is the current one.

        Raises:
            SpecError: If the name is none of code.
        """
        split_reference(self.name)
        return replace(self, home=home or os.getcwd())

    def settings(self, between: str) -> str:
        """Return the options as they stand behind a name, or nothing.

        Args:
            between: What stands between two of them.
        """
        parts = [f"{key}={plain(value)}" for key, value in self.options.items()]
        return f"({between.join(parts)})" if parts else ""
