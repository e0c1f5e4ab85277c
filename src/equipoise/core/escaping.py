"""Escaping of untrusted text, one function for each kind of output."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = [
    "csv_cell",
    "html_text",
    "json_text",
    "latex_text",
    "listed",
    "markdown_text",
    "shown_name",
    "visible",
    "without_controls",
    "without_secrets",
]

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#!|~&@$])")
_LATEX = {
    **{letter: "\\" + letter for letter in "&%_#${}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "≈": r"$\approx$",
    "±": r"$\pm$",
    "–": "--",
    "†": r"$^\dagger$",
    "<": "$<$",
    ">": "$>$",
}
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://)([^\s'\"]+)")
#: Options of storages that are no secrets; the values of all others are hidden.
_PUBLIC = frozenset(
    {"region", "endpoint_override", "scheme", "allow_bucket_creation", "allow_bucket_deletion", "anonymous"}
)


def visible(text: object, *, keep: str = "") -> str:
    r"""Return text whose control characters, line breaks and direction marks are written out.

    They could move the cursor, change colors, forge lines, or show a name backwards.

    Args:
        text: A name, a path or a message.
        keep: Characters to leave as they are, such as line breaks of a message of several lines.

    Example:
        >>> visible("a\x1b[2Jb\n"), visible("one\ntwo", keep="\n")
        ('a\\x1b[2Jb\\n', 'one\ntwo')
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(
        letter
        if letter.isprintable() or letter in keep or unicodedata.category(letter) == "Zs"
        else letter.encode("unicode_escape").decode()
        for letter in shown
    )


def markdown_text(text: object) -> str:
    r"""Return text that Markdown shows as it is: one line, no markup, no HTML, no end of a cell.

    Example:
        >>> print(markdown_text("a|b *c*"))
        a\|b \*c\*
    """
    return _MARKDOWN.sub(r"\\\1", visible(" ".join(str(text).split())))


def json_text(content: Any) -> str:
    """Return a JSON document; numbers that JSON does not have become null, and arrays become lists.

    Example:
        >>> print(json_text({"ece": float("nan"), 5: (1, 2)}))
        {
          "ece": null,
          "5": [
            1,
            2
          ]
        }
    """
    return json.dumps(_plain(content), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value


def latex_text(text: object) -> str:
    r"""Return text that LaTeX prints as it is.

    Example:
        >>> print(latex_text("5% of $x"))
        5\% of \$x
    """
    return "".join(_LATEX.get(letter, letter) for letter in visible(" ".join(str(text).split())))


def shown_name(name: str) -> str:
    r"""Return a name from a file on one line; an empty one has words.

    Example:
        >>> shown_name("north"), shown_name(""), shown_name("a\x1b[2J")
        ('north', '(empty)', 'a\\x1b[2J')
    """
    return visible(name) or "(empty)"


def listed(names: Sequence[str], most: int) -> str:
    """Return some names with commas between, and dots for more.

    Example:
        >>> listed(["a", "b", "c"], 2), listed(["a", ""], 2)
        ('a, b, ...', 'a, (empty)')
    """
    return ", ".join([*map(shown_name, names[:most]), *(["..."] if len(names) > most else [])])


def without_controls(text: object) -> str:
    r"""Return text in which U+FFFD replaces control characters and characters that reorder the text around them.

    HTML does not allow the former, and the latter hide what is written.

    Example:
        >>> without_controls("cat\x00dog")
        'cat\ufffddog'
    """
    return _UNSEEN.sub("\ufffd", str(text))


def html_text(text: object) -> str:
    """Return text that a browser shows as it is, in content and in quoted attributes.

    Example:
        >>> html_text("<cat>")
        '&lt;cat&gt;'
    """
    return escape(without_controls(text), quote=True)


def csv_cell(value: Any) -> Any:
    """Return a cell of a table for people: text that a spreadsheet would run as a formula gets an apostrophe.

    Numbers stay numbers, whatever their sign.

    Example:
        >>> csv_cell("=1+1"), csv_cell(-0.5), csv_cell("-0.5"), csv_cell("ce")
        ("'=1+1", -0.5, '-0.5', 'ce')
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") and not _is_number(text) else text


def without_secrets(text: str) -> str:
    """Return text whose addresses have lost their keys, passwords and signatures.

    Example:
        >>> without_secrets("s3://key:pass/word@bucket/rows.parquet?region=north&token=abc")
        's3://bucket/rows.parquet?region=north&token=***'
    """
    return _ADDRESS.sub(_public_address, text)


def _public_address(found: re.Match[str]) -> str:
    place, mark, options = found[2].partition("?")
    # A secret may hold a slash, so what follows a colon ends at the last @; a name alone ends before a slash.
    place = re.sub(r"^(?:[^:@/]*:.*@|[^/@]*@)", "", place)
    shown = [
        option if not value or name in _PUBLIC else f"{name}=***"
        for option in options.split("&")
        for name, _, value in (option.partition("="),)
    ]
    return f"{found[1]}{place}{mark}{'&'.join(shown)}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
