"""Names in specs: of the catalogue, of code (``file.py:name``, ``module:name``), and sums of them (``a+0.5*b``).

Everybody who asks what a name means asks here: what is announced, pinned by its digest, built, and part of a run's
identity is the same code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from equipoise.core.errors import SpecError
from equipoise.experiments.catalogue import CATALOGUE

__all__ = [
    "NAME_OF_CODE",
    "NamedTerm",
    "code_in_sum",
    "is_code",
    "is_sum",
    "name_by_content",
    "split_reference",
    "split_sum",
]

#: How code is named, for messages.
NAME_OF_CODE = "Write 'package.module:name' or 'path/to/file.py:name', relative to the spec."


class NamedTerm(NamedTuple):
    """One term of a sum of losses.

    Attributes:
        strength: The factor as it is written; None without one.
        name: A loss or penalty of the catalogue, or code.
    """

    strength: str | None
    name: str

    @classmethod
    def of(cls, text: str) -> NamedTerm:
        """Read ``"name"`` or ``"factor*name"``; a ``*`` that no number stands before belongs to the name of a file.

        Example:
            >>> NamedTerm.of("0.5*mdca"), NamedTerm.of("a*b/loss.py:Mine")
            (NamedTerm(strength='0.5', name='mdca'), NamedTerm(strength=None, name='a*b/loss.py:Mine'))
        """
        strength, star, name = (part.strip() for part in text.partition("*"))
        if star and (_is_number(strength) or not is_code(name)):
            return cls(strength, name)
        return cls(None, text.strip())

    @property
    def is_whole(self) -> bool:
        """Whether nothing has to be added to make it a loss, a penalty or a name of code."""
        if self.strength is not None and not _is_number(self.strength):
            return False
        if is_code(self.name):
            return _is_identifier(self.name.rpartition(":")[2])
        return self.name in CATALOGUE["losses"] or self.name in CATALOGUE["penalties"]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_identifier(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def is_code(name: str) -> bool:
    """Whether a name means code of the user's own and not an entry of the catalogue.

    Example:
        >>> is_code("net.py:Net"), is_code("focal")
        (True, False)
    """
    return ":" in name


def split_reference(name: str) -> tuple[str, str]:
    """Return the file or module, and what is meant in it.

    Raises:
        SpecError: If one of them is missing.

    Example:
        >>> split_reference("c++/net.py:Net")
        ('c++/net.py', 'Net')
    """
    source, _, inner = name.rpartition(":")
    if not source.strip() or not _is_identifier(inner):
        raise SpecError(f"{name!r} is no name of code. {NAME_OF_CODE}")
    return source, inner


def split_sum(name: str) -> tuple[NamedTerm, ...]:
    """Return the terms of a method's or loss's name; one without a factor if it is no sum.

    A ``+`` separates terms only after a whole one; any other is part of the path of a file.

    Example:
        >>> [term.name for term in split_sum("ce+0.5*loss.py:Mine")]
        ['ce', 'loss.py:Mine']
        >>> split_sum("c++/loss.py:Mine")
        (NamedTerm(strength=None, name='c++/loss.py:Mine'),)
    """
    if name in CATALOGUE["pairs"]:
        return (NamedTerm(None, name),)
    terms: list[NamedTerm] = []
    left: list[str] = []
    for piece in name.split("+"):
        left.append(piece)
        term = NamedTerm.of("+".join(left))
        if term.is_whole:
            terms.append(term)
            left = []
    # What is left is neither; its pieces are looked up one by one, so that the message names the wrong one.
    return (*terms, *map(NamedTerm.of, left))


def is_sum(name: str) -> bool:
    """Whether a name means a sum of losses, or one with a factor.

    Example:
        >>> is_sum("focal+0.5*mdca"), is_sum("focal"), is_sum("c++/loss.py:Mine")
        (True, False, False)
    """
    terms = split_sum(name)
    return len(terms) > 1 or terms[0].strength is not None


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
