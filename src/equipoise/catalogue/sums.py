"""Sums of losses by name: ``"focal+0.5*mdca"``, one grammar for the catalogue, specs and the command line.

In Python a sum is one line, ``DualFocalLoss() + 0.5 * SmoothECE(bandwidth=0.05)``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

from equipoise.catalogue.entry import Entry
from equipoise.core.errors import SpecError
from equipoise.core.names import nearest

if TYPE_CHECKING:
    from equipoise.losses import Sum

__all__ = ["SumFactory", "SumTerm", "is_code", "split_terms", "sum_entry"]

#: Options that every term of a sum receives, if it takes them.
_SHARED = ("weight", "ignore_index", "reduction", "gather", "n_classes")


def is_code(name: str) -> bool:
    """Whether a name refers to the user's own code and not to an entry of the catalogue.

    Example:
        >>> is_code("net.py:Net"), is_code("focal")
        (True, False)
    """
    return ":" in name


class SumTerm(NamedTuple):
    """One term of a sum of losses.

    Attributes:
        factor: The factor as it is written; None without one.
        name: A loss or penalty of the catalogue, or code.
    """

    factor: str | None
    name: str

    @classmethod
    def of(cls, text: str) -> SumTerm:
        """Parse ``"name"`` or ``"factor*name"``; a ``*`` without a number before it belongs to the name of a file.

        Example:
            >>> SumTerm.of("0.5*mdca"), SumTerm.of("a*b/loss.py:Mine")
            (SumTerm(factor='0.5', name='mdca'), SumTerm(factor=None, name='a*b/loss.py:Mine'))
        """
        factor, star, name = (part.strip() for part in text.partition("*"))
        if star and (_is_number(factor) or not is_code(name)):
            return cls(factor, name)
        return cls(None, text.strip())

    def is_complete(self, known: Collection[str]) -> bool:
        """Whether it is a loss, a penalty or a name of code, so that a ``+`` after it starts another term."""
        if self.factor is not None and not _is_number(self.factor):
            return False
        if is_code(self.name):
            return all(part.isidentifier() for part in self.name.rpartition(":")[2].split("."))
        return self.name in known


def split_terms(name: str, known: Collection[str]) -> tuple[SumTerm, ...]:
    """Return the terms of a name; a single one without a factor if it is not a sum.

    A ``+`` separates terms only after a complete one; any other is part of a file's path.

    Args:
        name: Such as ``"ce+0.5*loss.py:Mine"``.
        known: Keys of all losses and penalties.

    Example:
        >>> [term.name for term in split_terms("ce+0.5*loss.py:Mine", {"ce"})]
        ['ce', 'loss.py:Mine']
        >>> split_terms("c++/loss.py:Mine", {"ce"})
        (SumTerm(factor=None, name='c++/loss.py:Mine'),)
    """
    terms: list[SumTerm] = []
    rest: list[str] = []
    for piece in name.split("+"):
        rest.append(piece)
        term = SumTerm.of("+".join(rest))
        if term.is_complete(known):
            terms.append(term)
            rest = []
    # The rest is looked up piece by piece, so that the error names the wrong one.
    return (*terms, *map(SumTerm.of, rest))


@final
@dataclass(frozen=True)
class SumFactory:
    """Builds a sum of losses and penalties.

    An option goes to the term that takes it: ``gamma=2.0`` in ``"focal+0.5*mdca"``. Where several terms take an option
    of that name, or the term is the user's own code, it stands in a table by the term's name:
    ``focal={"gamma": 2.0}``. A table overrides the same option outside of it. ``strength`` is the factor of the term
    that has one.

    Attributes:
        terms: Entry and factor of each term.

    Example:
        >>> from equipoise.catalogue import CATALOGUE
        >>> terms = ((CATALOGUE["losses"]["focal"], None), (CATALOGUE["penalties"]["mdca"], 0.5))
        >>> SumFactory(terms)(gamma=1.0, mdca={"strength": 2.0})
        Sum(
          (terms): ModuleList(
            (0): FocalLoss(gamma=1, schedule={}, detach_weight=False)
            (1): Scaled(
              factor=2
              (term): MDCA()
            )
          )
        )
    """

    terms: tuple[tuple[Entry, float | None], ...]

    @property
    def __name__(self) -> str:
        return "+".join(entry.key for entry, _ in self.terms)

    @property
    def __signature__(self) -> inspect.Signature:
        """All options that need no table, the shared ones last."""
        found: dict[str, inspect.Parameter] = {}
        if self.strength is not None:
            found["strength"] = inspect.Parameter(
                "strength", inspect.Parameter.KEYWORD_ONLY, default=self.strength, annotation="float"
            )
        for options in map(_options, self._of_catalogue()):
            found |= options
        names = [name for name in found if name in _SHARED or len(self._takers(name)) == 1]
        ordered = sorted(names, key=lambda name: _SHARED.index(name) if name in _SHARED else -1)
        return inspect.Signature([found[name] for name in ordered])

    @property
    def strength(self) -> float | None:
        """The factor of the only term that has one, which the option ``strength`` replaces; None otherwise."""
        factors = {entry.key: factor for entry, factor in self.terms}
        takers = self._takers("strength")
        return factors[takers[0]] if len(takers) == 1 else None

    def __call__(self, **options: Any) -> Sum:
        """Return the sum.

        Raises:
            SpecError: For an option that no term takes.
        """
        from equipoise.losses import Scaled, Sum

        given, shared = self._sort(options)
        made = []
        for entry, factor in self.terms:
            known = _options(entry)
            own = {**entry.options, **given[entry.key]}
            is_factor = "strength" in own and "strength" not in known
            times = float(own.pop("strength")) if is_factor else factor
            taken = {name: value for name, value in shared.items() if name in known}
            term = entry.factory(**{**taken, **own})
            made.append(term if times is None else Scaled(term, factor=times))
        return Sum(*made)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise if no term takes an option, or one is given twice; the user's own code is not loaded.

        Raises:
            SpecError: With the nearest name.
        """
        self._sort(options)
        for key, table in options.items():
            if key in dict(self._keys()) and isinstance(table, Mapping):
                for name in set(table) & set(options):
                    if self._takers(name) == [key]:
                        raise SpecError(
                            f"{self.__name__!r}: {name!r} is given twice. Give it once, in the table of {key!r}."
                        )

    def _keys(self) -> list[tuple[str, Entry]]:
        return [(entry.key, entry) for entry, _ in self.terms]

    def _of_catalogue(self) -> list[Entry]:
        return [entry for key, entry in self._keys() if not is_code(key)]

    def _takers(self, name: str) -> list[str]:
        """Return the keys of the terms of the catalogue that take an option outside of tables."""
        return [
            entry.key
            for entry, factor in self.terms
            if not is_code(entry.key)
            and (name in _options(entry) or (name == "strength" and factor is not None))
        ]

    def _sort(self, options: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
        """Return the options of each term, and those that all terms share."""
        terms = dict(self._keys())
        given: dict[str, dict[str, Any]] = {key: {} for key in terms}
        tables = {key: value for key, value in options.items() if key in terms and isinstance(value, Mapping)}
        shared = {key: value for key, value in options.items() if key in _SHARED}
        for name, value in options.items():
            if name in tables or name in shared:
                continue
            takers = self._takers(name)
            if len(takers) != 1:
                raise SpecError(self._complaint(name, value, takers))
            given[takers[0]][name] = value
        for key, table in tables.items():
            for name in () if is_code(key) else table:
                if name != "strength" and name not in _options(terms[key]):
                    raise SpecError(f"{key!r} has no option {name!r}; {_remedy(name, _options(terms[key]))}")
            given[key] |= table
        return given, shared

    def _complaint(self, name: str, value: Any, takers: list[str]) -> str:
        where = f"{self.__name__!r}:"
        if takers:
            table = f"{takers[0]} = {{ {name} = {value!r} }}"
            return (
                f"{where} {' and '.join(takers)} take {name!r}. Give it in a table of one of them: {table}."
            )
        codes = [key for key, _ in self._keys() if is_code(key)]
        if codes:
            return f"{where} no option {name!r}; options of {codes[0]} stand in a table of that name."
        known = [option for entry in self._of_catalogue() for option in _options(entry)]
        return f"{where} no option {name!r}; {_remedy(name, [*known, 'strength'])}"


def sum_entry(
    name: str, find: Callable[[str], Entry], *, known: Collection[str], penalties: Collection[str]
) -> Entry:
    """Return the entry of a sum that is not in the catalogue.

    Args:
        name: Such as ``"focal+0.5*mdca"``.
        find: Returns the entry of a term's name.
        known: Keys of all losses and penalties.
        penalties: Keys of the penalties, of which a sum must not consist alone.

    Raises:
        SpecError: If a term or factor is not valid.

    Example:
        >>> from equipoise.catalogue import CATALOGUE
        >>> sum_entry("2*focal", CATALOGUE["losses"].get, known={"focal"}, penalties=()).title
        '2 x Focal loss'
    """
    factors = [(term.name, _factor(term, name)) for term in split_terms(name, known)]
    terms = tuple((find(key), factor) for key, factor in factors)
    keys = [entry.key for entry, _ in terms]
    if len(set(keys)) < len(keys):
        raise SpecError(f"{name!r} names a term twice. Add their factors.")
    if all(key in penalties for key in keys):
        raise SpecError(f"{name!r} contains penalties only, which need a loss; use 'ce+{name}'.")
    return Entry(
        key=name,
        title=" + ".join(
            entry.title if factor is None else f"{factor:g} x {entry.title}" for entry, factor in terms
        ),
        made_by=SumFactory(terms),
        sum=name,
        fidelity="yours" if any(map(is_code, keys)) else "ours",
        summary=f"The sum of {', '.join(keys)}.",
        needs=frozenset(need for entry, _ in terms for need in entry.needs),
        stops_gradient=any(entry.stops_gradient for entry, _ in terms),
    )


def _factor(term: SumTerm, whole: str) -> float | None:
    if not term.name or term.factor == "":
        raise SpecError(f"{whole!r}: {term.name!r} is not a term of a sum. Write 'focal+0.5*mdca'.")
    if term.factor is None:
        return None
    if not _is_number(term.factor) or not math.isfinite(float(term.factor)):
        raise SpecError(f"{whole!r}: {term.factor!r} is not a number. Write 'focal+0.5*mdca'.")
    return float(term.factor)


def _options(entry: Entry) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(entry.factory).parameters


def _remedy(name: str, known: Collection[str]) -> str:
    guess = nearest(name, known)
    return f"did you mean {guess!r}?" if guess else f"it has {', '.join(known)}."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
