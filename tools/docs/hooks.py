"""What is made when the site is built: reference, notebooks, and formulas that need no script and no network."""

import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import run_notebooks

import reference

CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
DISPLAY = re.compile(r"^\$\$\s*\n?(.+?)\n?\s*\$\$\s*$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<![\\$`])\$(?=[^\s$`])([^$\n`]+?)(?<=[^\s$`])\$(?![\d$])")
CODE = re.compile(r"(^```.*?^```\s*?$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"`(equipoise(?:\.\w+)+)`")


def on_files(files, *, config):
    """Add the reference, the notebooks and the page on contributing, which are not written to the docs folder."""
    contributing = CONTRIBUTING.read_text(encoding="utf-8").replace("](docs/", "](")
    for address, content in (*reference.pages(), *run_notebooks.pages(), ("contributing.md", contributing)):
        files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown, *, page, **_):
    """Replace formulas outside code, and let names lead to the reference and links to notebooks to their pages."""
    if page.file.src_uri.startswith("evidence/"):
        page.meta["hide"] = ["toc"]  # its tables need the package
    up = "../" * page.file.src_uri.count("/")
    is_reference = page.file.src_uri.startswith("api/")
    if not page.file.src_uri.startswith("notebooks/"):
        markdown = markdown.replace(".ipynb)", ".md)")
    parts = CODE.split(markdown)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = formulas(part)
        elif not is_reference:
            parts[number] = linked(part, up, inside=parts[number - 1].endswith("["))
    return "".join(parts)


def linked(code, up, *, inside):
    """Return a full name in code as a link to its place in the reference, unless it stands in a link."""
    found = NAME.fullmatch(code)
    address = found and reference.addresses().get(found[1])
    return f"[{code}]({up}api/{address})" if address and not inside else code


def formulas(text):
    """Return text with its formulas as MathML."""
    text = DISPLAY.sub(
        lambda found: f"\n<div>{convert(found.group(1).strip(), display='block')}</div>\n", text
    )
    return INLINE.sub(lambda found: convert(found.group(1)), text)
