"""Names in specs: of the catalogue, of code (``file.py:name``, ``module:name``), and sums of them (``a+0.5*b``).

Everybody who asks what a name means asks here: what is announced, pinned by its digest, built, and part of a run's
identity is the same code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from equipoise.catalogue import CATALOGUE, SumTerm, is_code, split_terms
from equipoise.core.errors import SpecError

__all__ = [
    "NAME_OF_CODE",
    "code_in_sum",
    "is_code",
    "is_sum",
    "name_by_content",
    "split_reference",
    "split_sum",
]

#: How code is named, for messages.
NAME_OF_CODE = "Write 'package.module:name' or 'path/to/file.py:name', relative to the spec."


def split_reference(name: str) -> tuple[str, str]:
    """Return the file or module, and what is meant in it.

    Raises:
        SpecError: If one of them is missing.

    Example:
        >>> split_reference("c++/net.py:Net")
        ('c++/net.py', 'Net')
    """
    source, _, inner = name.rpartition(":")
    if not source.strip() or not all(part.isidentifier() for part in inner.split(".")):
        raise SpecError(f"{name!r} is no name of code. {NAME_OF_CODE}")
    return source, inner


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
