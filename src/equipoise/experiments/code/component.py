"""Component: a name of the catalogue or the user's own code, with options.

Datasets, networks, losses, calibrators and metrics of a spec are named in the same way: by a key of the catalogue, by
code (``file.py:name`` or ``package.module:name``), or, for losses, by a sum of these (``a+0.5*b``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, final

from equipoise.catalogue import CATALOGUE, SumTerm, is_code, split_terms
from equipoise.core.errors import SpecError
from equipoise.core.read_only import ReadOnly
from equipoise.experiments.code.source import CodeSource, find_source, load_code, split_reference

__all__ = [
    "Component",
    "code_in_sum",
    "format_label",
    "freeze",
    "is_sum",
    "name_by_content",
    "number_keys",
    "plain",
    "split_sum",
]


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Component:
    """A name or code, with options.

    Attributes:
        name: A key of the catalogue, or code: ``"file.py:name"`` or ``"package.module:name"``.
        options: Options that differ from the catalogue's main setting, or from the code's defaults.
        base_dir: The folder that files of code are relative to; None is the current one.
        digest: Digest of the code's content; None accepts any.
        value: The object itself, if it was given in Python and not by name.

    Example:
        >>> Component(name="dirichlet", options={"off_diagonal": 0.1}).label
        'dirichlet(off_diagonal=0.1)'
        >>> Component(name="torch.nn:Linear").load().__name__
        'Linear'
    """

    name: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=ReadOnly)
    base_dir: str | None = None
    digest: str | None = None
    value: Any = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", freeze(self.options))

    @property
    def is_code(self) -> bool:
        """Whether it is the user's own code and not an entry of the catalogue."""
        return self.value is not None or is_code(self.name)

    @property
    def label(self) -> str:
        """The name with the options, for tables and messages."""
        return format_label(self.name, self.options)

    @property
    def keywords(self) -> dict[str, Any]:
        """The options as keyword arguments; tables whose keys are numbers have numbers as keys."""
        found: dict[str, Any] = number_keys(self.options)
        return found

    def load(self) -> Any:
        """Return the object that the code defines.

        Raises:
            SpecError: If there is no such code, or it is not the code of the digest.
        """
        if self.value is not None:
            return self.value
        return load_code(self.name, self.base_dir, digest=self.digest)

    def find(self) -> CodeSource:
        """Return the file or module of the code; nothing is run."""
        return find_source(split_reference(self.name)[0], self.base_dir)

    def pinned(self) -> Component:
        """Return the component with the digest of its code, if it is code in a file."""
        if self.digest is not None or not is_code(self.name):
            return self
        return dataclasses.replace(self, digest=self.find().digest)


def format_label(name: str, options: Mapping[str, Any]) -> str:
    """Return a name with options as tables show it.

    Example:
        >>> format_label("focal", {"gamma": 2.0})
        'focal(gamma=2.0)'
    """
    parts = [f"{key}={plain(value)}" for key, value in options.items()]
    return f"{name}({', '.join(parts)})" if parts else name


def freeze(value: Any, where: str = "options") -> Any:
    """Return plain values with lists as tuples and tables as read-only mappings, which can be hashed.

    Raises:
        SpecError: For any other value.

    Example:
        >>> freeze({"hidden": [8, 8]})
        {'hidden': (8, 8)}
    """
    if isinstance(value, Mapping):
        return ReadOnly({str(key): freeze(item, f"{where}.{key}") for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item, where) for item in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise SpecError(
        f"{where}: must be a number, a text, a list or a table, got {type(value).__name__} {value!r}."
    )


def plain(value: Any) -> Any:
    """Return a record as dictionaries, lists and plain values; empty and absent ones are left out.

    Example:
        >>> plain({"a": (1, 2), "b": None, "c": {}})
        {'a': [1, 2]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        items = {str(key): plain(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not None and item not in ({}, [])}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def number_keys(value: Any) -> Any:
    """Return nested tables with numbers for keys where all keys are whole numbers, which TOML can only write as text.

    Example:
        >>> number_keys({"schedule": {"0": 5.0, "100": 3.0}})
        {'schedule': {0: 5.0, 100: 3.0}}
    """
    if isinstance(value, Mapping):
        numeric = bool(value) and all(isinstance(key, str) and key.isdecimal() for key in value)
        return {int(key) if numeric else key: number_keys(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(number_keys, value))
    return value


def split_sum(name: str) -> tuple[SumTerm, ...]:
    """Return the terms of a method's or loss's name; a single one without a factor if it is not a sum.

    Example:
        >>> [term.name for term in split_sum("ce+0.5*loss.py:Mine")]
        ['ce', 'loss.py:Mine']
        >>> split_sum("ce+mmce")  # an entry of the catalogue
        (SumTerm(factor=None, name='ce+mmce'),)
    """
    if name in CATALOGUE["losses"]:
        return (SumTerm(None, name),)
    return split_terms(name, {**CATALOGUE["losses"], **CATALOGUE["penalties"]})


def is_sum(name: str) -> bool:
    """Whether a name means a sum of losses, or one with a factor.

    Example:
        >>> is_sum("focal+0.5*mdca"), is_sum("focal"), is_sum("c++/loss.py:Mine")
        (True, False, False)
    """
    terms = split_sum(name)
    return len(terms) > 1 or terms[0].factor is not None


def code_in_sum(name: str) -> Iterator[str]:
    """Yield the names of code among the terms of a method's or loss's name.

    Example:
        >>> list(code_in_sum("ce+0.5*loss.py:Mine"))
        ['loss.py:Mine']
    """
    return (term.name for term in split_sum(name) if is_code(term.name))


def name_by_content(name: str, code: Mapping[str, str], *, may_be_sum: bool) -> str:
    """Return a name with the digest of each file or module in its place.

    Args:
        name: As it is written in a spec.
        code: The digest of each file or module, as it is written there.
        may_be_sum: Whether it is a method or loss.

    Example:
        >>> name_by_content("ce+0.5*loss.py:Mine", {"loss.py": "12"}, may_be_sum=True)
        'ce+0.5*12:Mine'
    """
    found = code_in_sum(name) if may_be_sum else iter([name] if is_code(name) else [])
    done, rest = "", name
    for reference in found:
        source, inner = split_reference(reference)
        before, _, rest = rest.partition(reference)
        done += f"{before}{code.get(source, source)}:{inner}"
    return done + rest
