"""Entry: what a method is, where it comes from, how faithful it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal

from equipoise.core.errors import SpecError
from equipoise.core.read_only import ReadOnly

__all__ = ["Entry", "Fidelity", "split_address"]

#: How far a method was checked against its source.
Fidelity = Literal["authors' code compared", "formula only", "reconstruction", "ours", "yours"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A method that is available by name.

    Attributes:
        key: The name users type.
        title: The method's usual name.
        made_by: Address of its factory, ``"package:Name"`` or ``"package:Class.method"``, so that the catalogue is
            read without importing any. Plugins may give the factory itself.
        paper: Authors (year), title; empty for common knowledge.
        fidelity: How far it was checked against its source.
        options: Options of the paper's main setting that differ from the factory's defaults.
        summary: One sentence: what it does.
        use_when: One or two sentences: when it is the right choice.
        avoid_when: One or two sentences: when it is not.
        formula: LaTeX without dollar signs.
        sum: For a sum of losses, its terms, such as ``"ce+0.1*mmce"``; empty otherwise.
        needs: Inputs beyond logits and labels: ``"held_out"``, ``"epoch"``, ``"features"`` ...
        stops_gradient: Whether a loss treats part of its value as constant. Its gradient then differs from the
            derivative of its value, and property tests do not compare the two.
        kinds: Kinds of inputs that a network takes, or that a dataset may contain.
        partners: Other names for an example where the usual ones do not fit: ``{"data": "newsgroups"}``.

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
    options: Mapping[str, Any] = field(default_factory=ReadOnly)
    use_when: str = ""
    avoid_when: str = ""
    formula: str = ""
    sum: str = ""
    needs: frozenset[str] = frozenset()
    stops_gradient: bool = False
    kinds: tuple[str, ...] = ("image",)
    partners: Mapping[str, str] = field(default_factory=ReadOnly)

    @property
    def factory(self) -> Callable[..., Any]:
        """The function or class that builds the method; imported on first use."""
        return _import_factory(self.made_by) if isinstance(self.made_by, str) else self.made_by

    def make(self, **overrides: Any) -> Any:
        """Build the method with the paper's options, some of them replaced.

        Example:
            >>> entry = Entry(
            ...     key="d", title="", made_by="builtins:dict", fidelity="ours", summary="", options={"a": 1}
            ... )
            >>> entry.make(b=2)
            {'a': 1, 'b': 2}
        """
        return self.factory(**{**self.options, **overrides})


def split_address(made_by: str) -> tuple[str, list[str]]:
    """Return the package and the attribute path of a factory's address.

    Raises:
        SpecError: If it is not an address.

    Example:
        >>> split_address("equipoise.objectives:GammaNet.from_parts")
        ('equipoise.objectives', ['GammaNet', 'from_parts'])
    """
    package, colon, path = made_by.partition(":")
    names = path.split(".")
    if not (colon and all(name.isidentifier() for name in (*package.split("."), *names))):
        raise SpecError(
            f"Entry: `made_by` must be 'package:Name' or 'package:Class.method', got {made_by!r}."
        )
    return package, names


@cache
def _import_factory(made_by: str) -> Callable[..., Any]:
    package, names = split_address(made_by)
    found: Any = import_module(package)
    for name in names:
        found = getattr(found, name)
    factory: Callable[..., Any] = found
    return factory
