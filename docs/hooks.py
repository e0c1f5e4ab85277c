"""Turn formulas into MathML when the site is built, so that pages need no script and no network to show them."""

import re

from latex2mathml.converter import convert

DISPLAY = re.compile(r"^\$\$\s*\n?(.+?)\n?\s*\$\$\s*$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<![\\$`])\$(?=[^\s$`])([^$\n`]+?)(?<=[^\s$`])\$(?![\d$])")
CODE = re.compile(r"(^```.*?^```\s*?$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def on_page_markdown(markdown, **_):
    """Replace formulas outside code."""
    parts = CODE.split(markdown)
    return "".join(part if number % 2 else formulas(part) for number, part in enumerate(parts))


def formulas(text):
    """Return text with its formulas as MathML."""
    text = DISPLAY.sub(
        lambda found: f"\n<div>{convert(found.group(1).strip(), display='block')}</div>\n", text
    )
    return INLINE.sub(lambda found: convert(found.group(1)), text)
