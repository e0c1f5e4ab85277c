"""Formulas as browsers draw them themselves: LaTeX as MathML."""

from __future__ import annotations

from html import unescape
from importlib.util import find_spec
from xml.etree import ElementTree

from equipoise.report.markup import Markup, tag

__all__ = ["formula_markup"]

_TAGS = frozenset(
    {
        "math", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle",
        "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover",
    }
)  # fmt: skip
_ATTRIBUTES = frozenset(
    {
        "accent", "columnalign", "depth", "display", "displaystyle", "fence", "form", "height", "linethickness",
        "lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "rspace", "scriptlevel", "stretchy", "width",
        "xmlns",
    }
)  # fmt: skip


def formula_markup(latex: str) -> Markup:
    r"""Return a formula as MathML; as the LaTeX it is where it cannot be drawn, or latex2mathml is not installed.

    Args:
        latex: Without dollar signs.

    Example:
        >>> formula_markup(r"\unheardof{x}")
        '<code>\\unheardof{x}</code>'
    """
    drawn = _converted(latex)
    return tag("code", latex) if drawn is None else Markup(drawn)


def _converted(latex: str) -> str | None:
    """Return MathML that holds nothing but mathematics, or None."""
    if find_spec("latex2mathml") is None:
        return None
    from latex2mathml.converter import convert_to_element

    try:
        root: ElementTree.Element = convert_to_element(latex, display="block")
    except Exception:  # noqa: BLE001 - it has no base class of its own for what is no formula
        return None
    for part in root.iter():
        part.text = unescape(part.text) if part.text else part.text
        # A command that it does not know stays as its name; links and styles have no place in a formula.
        if part.tag not in _TAGS or not set(part.attrib) <= _ATTRIBUTES or "\\" in (part.text or ""):
            return None
    return ElementTree.tostring(root, encoding="unicode")
