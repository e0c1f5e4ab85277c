"""One line of the catalogue: what a method is, where it comes from, how faithful it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

__all__ = ["Entry", "Fidelity"]

#: How far a method was checked against its source.
Fidelity = Literal["authors' code compared", "formula only", "reconstruction", "ours", "yours"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A method the package offers by name.

    Attributes:
        key: The name users type.
        title: The name people say.
        factory: Called with keyword parameters; gives the method.
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
        >>> Entry(key="ce", title="Cross-entropy", factory=dict, fidelity="ours", summary="Log loss.").key
        'ce'
    """

    key: str
    title: str
    factory: Callable[..., Any]
    fidelity: Fidelity
    summary: str
    paper: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    use_when: str = ""
    avoid_when: str = ""
    formula: str = ""
    needs: frozenset[str] = frozenset()
    kinds: tuple[str, ...] = ("image",)
    partners: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def make(self, **overrides: Any) -> Any:
        """Build the method with the paper's parameters, some of them replaced.

        Example:
            >>> entry = Entry(key="d", title="", factory=dict, fidelity="ours", summary="", parameters={"a": 1})
            >>> entry.make(b=2)
            {'a': 1, 'b': 2}
        """
        return self.factory(**{**self.parameters, **overrides})
