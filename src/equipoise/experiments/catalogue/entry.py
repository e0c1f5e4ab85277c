"""One line of the catalogue: what a method is, where it comes from, how faithful it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

from equipoise.core.errors import SpecError
from equipoise.core.read_only import ReadOnly

__all__ = ["Entry", "FactoryAddress", "Fidelity"]

#: How far a method was checked against its source.
Fidelity = Literal["authors' code compared", "formula only", "reconstruction", "ours", "yours"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A method the package offers by name.

    Attributes:
        key: The name users type.
        title: The name people say.
        made_by: Where its factory is, so that the catalogue is read without loading any: ``"package:Name"``, or
            ``"package:Name(Part, ...)"`` for one that is made of others of the same package. Methods that others bring
            may give the factory itself.
        paper: Authors (year), title; empty for what is nobody's in particular.
        fidelity: How far it was checked against its source.
        parameters: The paper's main setting, passed to the factory unless the user says otherwise.
        summary: One sentence: what it does.
        use_when: One or two sentences: when it is the right choice.
        avoid_when: One or two sentences: when it is not.
        formula: LaTeX without dollar signs.
        needs: Signals beyond logits and labels: ``"held_out"``, ``"epoch"``, ``"features"`` ...
        kinds: Of a network: which kinds of inputs it takes; of a dataset: which it may hold.
        partners: What goes with it in an example where not everything does: ``{"data": "newsgroups"}``.

    Example:
        >>> entry = Entry(
        ...     key="ce",
        ...     title="Cross-entropy",
        ...     made_by="equipoise.losses:CrossEntropyLoss",
        ...     fidelity="ours",
        ...     summary="The log loss of the true class.",
        ... )
        >>> entry.factory
        <class 'equipoise.losses.cross_entropy.CrossEntropyLoss'>
    """

    key: str
    title: str
    made_by: str | Callable[..., Any]
    fidelity: Fidelity
    summary: str
    paper: str = ""
    parameters: Mapping[str, Any] = field(default_factory=ReadOnly)
    use_when: str = ""
    avoid_when: str = ""
    formula: str = ""
    needs: frozenset[str] = frozenset()
    kinds: tuple[str, ...] = ("image",)
    partners: Mapping[str, str] = field(default_factory=ReadOnly)

    @property
    def factory(self) -> Callable[..., Any]:
        """Called with keyword parameters it gives the method; loaded on first use."""
        return _resolve(self.made_by) if isinstance(self.made_by, str) else self.made_by

    def make(self, **overrides: Any) -> Any:
        """Build the method with the paper's parameters, some of them replaced.

        Example:
            >>> entry = Entry(
            ...     key="d", title="", made_by="builtins:dict", fidelity="ours", summary="", parameters={"a": 1}
            ... )
            >>> entry.make(b=2)
            {'a': 1, 'b': 2}
        """
        return self.factory(**{**self.parameters, **overrides})


class FactoryAddress(NamedTuple):
    """A factory's place: the package, its name there, and the parts that it is made of.

    Example:
        >>> FactoryAddress.of("equipoise.losses:Pair(FocalLoss, MDCA)")
        FactoryAddress(package='equipoise.losses', name='Pair', parts=('FocalLoss', 'MDCA'))
    """

    package: str
    name: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, made_by: str) -> FactoryAddress:
        """Read the text of an entry."""
        found = re.fullmatch(r"([\w.]+):(\w+)(?:\(([\w, ]+)\))?", made_by)
        if found is None:
            raise SpecError(
                f"Entry: `made_by` must be 'package:Name' or 'package:Name(Part, ...)', got {made_by!r}."
            )
        package, name, parts = found.groups(default="")
        return cls(package, name, tuple(part.strip() for part in parts.split(",") if part))


@cache
def _resolve(made_by: str) -> Callable[..., Any]:
    package, name, parts = FactoryAddress.of(made_by)
    module = import_module(package)
    factory: Callable[..., Any] = getattr(module, name)
    return factory(*(getattr(module, part) for part in parts)) if parts else factory
