"""Run the Python blocks of pages and write what they print below them, where a page asks for it.

    python tools/docs/run_examples.py README.md docs/recipes/*.md

A text block after the comment ``<!-- output -->`` holds the output of the Python block above it. The tests compare its
words with a fresh run; digits may differ between processors.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

CODE = re.compile(r"^```python\n(.*?)^```\n(\s*<!-- output -->\n```text\n)?", re.DOTALL | re.MULTILINE)


def run_page(text: str, name: str) -> str:
    """Return the page with fresh outputs."""
    names: dict[str, object] = {"__name__": "page"}
    parts, position = [], 0
    for found in CODE.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(found[1], name, "exec"), names)
        parts.append(text[position : found.end()])
        position = found.end()
        if found[2]:
            parts.append("\n".join(line.rstrip() for line in printed.getvalue().splitlines()) + "\n")
            position = text.index("```", position)
    return "".join(parts) + text[position:]


def main(pages: list[str]) -> None:
    """Write each page again, in a folder of its own for what the examples write."""
    for path in [Path(page).resolve() for page in pages]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            path.write_text(run_page(path.read_text(encoding="utf-8"), path.name), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
