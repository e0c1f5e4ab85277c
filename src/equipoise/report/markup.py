"""HTML built from parts: text is always escaped, because only tags made here are not."""

from __future__ import annotations

import re
from html import escape

__all__ = ["Markup", "clean", "join", "name_markup", "tag"]

_VOID = frozenset(
    {"br", "hr", "link", "meta", "path", "line", "rect", "circle", "polyline", "polygon", "wbr"}
)
# Control characters are not allowed in HTML; the others are invisible and reorder the text around them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)

_JOINT = re.compile(r"(?<=[_/.\-])(?=\w)")


class Markup(str):
    """Text that is HTML already.

    Example:
        >>> tag("p", "a < b", tag("em", "c"))
        '<p>a &lt; b<em>c</em></p>'
    """

    __slots__ = ()


def clean(text: object) -> str:
    r"""Return text without characters that browsers refuse or that hide what is written.

    Example:
        >>> clean("cat\x00dog")
        'cat\ufffddog'
    """
    return _UNSEEN.sub("\ufffd", str(text))


def _escaped(part: object) -> str:
    return part if isinstance(part, Markup) else escape(clean(part), quote=True)


def join(*parts: object) -> Markup:
    """Put parts one after the other; what is not markup is escaped, None is left out.

    Example:
        >>> join("<", tag("b", "x"), None)
        '&lt;<b>x</b>'
    """
    return Markup("".join(_escaped(part) for part in parts if part is not None))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element; underscores in names of attributes become hyphens, one at the end is dropped.

    Args:
        name: The element.
        children: Text, which is escaped, or markup.
        attributes: True is written as a bare name; None and False are left out.

    Example:
        >>> tag("td", 3, class_="number", data_sort=3.0)
        '<td class="number" data-sort="3.0">3</td>'
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.removesuffix("_").replace("_", "-")
        words.append(label if value is True else f'{label}="{_escaped(value)}"')
    inside = join(*children)
    if name in _VOID and not inside:
        return Markup(f"<{' '.join(words)}/>")
    return Markup(f"<{' '.join(words)}>{inside}</{name}>")


def name_markup(name: str) -> Markup:
    """Return a name that a user gave: it may run from right to left, and may break after its joints.

    Example:
        >>> name_markup("dual_focal")
        '<bdi>dual_<wbr/>focal</bdi>'
    """
    words = _JOINT.split(clean(name))
    return tag("bdi", *(join(Markup("<wbr/>") if place else None, word) for place, word in enumerate(words)))
