"""Tables as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]


def html_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, above: str = "", below: str = ""
) -> str:
    """Return a table in HTML for ``_repr_html_``: the first column to the left, the rest to the right.

    Args:
        heads: Headings; none for a table without.
        rows: Texts; they are escaped, and spaces in front are kept.
        above: A line over the table.
        below: A line under it.

    Example:
        >>> html_table(("", "rows"), [("<cat>", "7")]).count("&lt;cat&gt;")
        1
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(map(_cell, range(len(row)), row))}</tr>" for row in rows)
    parts = [
        f"<p>{escape(above)}</p>" if above else "",
        "<table>",
        f"<thead><tr>{head}</tr></thead>" if heads else "",
        f"<tbody>{body}</tbody></table>",
        f"<p>{escape(below)}</p>" if below else "",
    ]
    return "".join(parts)


def _cell(place: int, text: str) -> str:
    side = "right" if place else "left"
    return f'<td style="text-align:{side};white-space:pre">{escape(text)}</td>'
