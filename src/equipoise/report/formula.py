"""Formulas in LaTeX as MathML, which browsers draw themselves."""

from __future__ import annotations

from html import unescape
from importlib.util import find_spec
from xml.etree import ElementTree

__all__ = ["formula_mathml"]

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


def formula_mathml(latex: str) -> str | None:
    r"""Return a formula as MathML; None if it cannot be converted, or latex2mathml is not installed.

    Args:
        latex: Without dollar signs.

    Example:
        >>> formula_mathml(r"\unheardof{x}") is None
        True
    """
    if find_spec("latex2mathml") is None:
        return None
    from latex2mathml.converter import convert_to_element

    try:
        root: ElementTree.Element = convert_to_element(latex, display="block")
    except Exception:  # noqa: BLE001 - it has no base class for its errors
        return None
    for part in root.iter():
        part.text = unescape(part.text) if part.text else part.text
        # An unknown command stays as its name; links and styles do not belong in a formula.
        if part.tag not in _TAGS or not set(part.attrib) <= _ATTRIBUTES or "\\" in (part.text or ""):
            return None
    return ElementTree.tostring(root, encoding="unicode")
