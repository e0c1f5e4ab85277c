"""Run the notebooks and keep what they show; write them as pages when the site is built.

python tools/docs/run_notebooks.py       run docs/notebooks/*.ipynb and write their output into them

The cells are plain Python and run from top to bottom in one process, so nothing of Jupyter is needed; Jupyter opens
the files as they are.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
FIGURE = "image/png"


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the output of every cell, run in a folder of its own."""
    names = {"__name__": "__main__"}
    cells, number = [], 0
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    number += 1
                    outputs = list(_outputs("".join(cell["source"]), names, number))
                    cell = {**cell, "execution_count": number, "outputs": outputs}  # noqa: PLW2901
                cells.append(cell)
        finally:
            os.chdir(before)
    return {**notebook, "cells": cells}


def _outputs(source: str, names: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Run one cell; give what it prints, the value of its last line, and the figures it drew."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if last is not None and source.rstrip().endswith(";"):
        tree.body.append(last)
        last = None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = last and eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    if printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}
    if value is not None:
        shown = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            shown["text/html"] = _lines(value._repr_html_())
        yield {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": shown}
    for figure in _figures():
        data = {FIGURE: figure, "text/plain": ["<Figure>"]}
        yield {"output_type": "display_data", "metadata": {}, "data": data}


def _figures() -> Iterator[str]:
    if "matplotlib.pyplot" not in sys.modules:
        return
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        stream = io.BytesIO()
        # No date and no version inside: the same figure is the same file.
        pyplot.figure(number).savefig(stream, dpi=100, bbox_inches="tight", metadata={"Software": None})
        yield base64.b64encode(stream.getvalue()).decode()
    pyplot.close("all")


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def pages() -> Iterator[tuple[str, str | bytes]]:
    """Give the address and content of every notebook's page and figures, as kept in the files."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        parts: list[str] = []
        number = 0
        for cell in read(path)["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts += [source, ""]
                continue
            parts += ["```python", source, "```", ""]
            for output in cell["outputs"]:
                figure = output.get("data", {}).get(FIGURE)
                if figure:
                    number += 1
                    name = f"{path.stem}-{number}.png"
                    yield f"notebooks/{name}", base64.b64decode(figure)
                    parts += [f"![What the cell above draws]({name})", ""]
                else:
                    parts += [_shown(output), ""]
        parts += [f"[This page as a notebook]({path.name})", ""]
        yield f"notebooks/{path.stem}.md", "\n".join(parts)


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="output">{"".join(data["text/html"])}</div>'
    text = "".join(output.get("text") or data["text/plain"]).rstrip()
    return f'<div class="output" markdown="1">\n\n```text\n{text}\n```\n\n</div>'


def shape(notebook: dict[str, Any]) -> list[list[tuple[str, ...]]]:
    """Return what the cells show without numbers and verdicts, to tell whether the kept output is fresh.

    Another processor rounds otherwise, which may make or break a tie, and a figure's bits say nothing; all other
    words, names and kinds must agree.
    """
    blank = re.compile(r"(?:[\d.,<±+─━\s-]|&lt;|\btie\b|\b(?:better|worse)\b)+")
    return [
        [
            tuple(
                f"{kind}: " + ("" if kind == FIGURE else blank.sub(" ", "".join(content)))
                for kind, content in (output.get("data") or {"text": output["text"]}).items()
            )
            for output in cell["outputs"]
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def write(path: Path, notebook: dict[str, Any]) -> None:
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    import matplotlib as mpl

    mpl.use("Agg")
    for path in sorted(FOLDER.glob("*.ipynb")):
        write(path, run(read(path)))
        print(path.relative_to(FOLDER.parent.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
