"""Python blocks in the README and the docs run."""

import doctest
import re
import tomllib
import warnings
from pathlib import Path

import pytest

from equipoise.cli.commands import COMMANDS
from helpers.daily import daily

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
NEEDS = re.compile(r"<!-- needs: (.*?) -->")
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if BLOCK.search(page.read_text())
]


@pytest.mark.parametrize(
    "page",
    daily(PAGES, keep=[page for page in PAGES if page.name not in {"onnx.md", "sklearn.md", "your-own.md"}]),
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_blocks_run_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    hosts = [package for packages in NEEDS.findall(page.read_text()) for package in packages.split(", ")]
    for package in hosts:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with warnings.catch_warnings():
        if hosts:
            warnings.simplefilter("ignore")  # what others say while they work is theirs
        for block in BLOCK.findall(page.read_text()):
            if block.lstrip().startswith(">>>"):
                run_session(block, names, page.name)
            else:
                exec(compile(block, str(page.name), "exec"), names)
    remarks = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("epoch ")]
    assert hosts or remarks == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented_with_an_example(name):
    blocks = [
        block
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for block in CONSOLE.findall(page.read_text())
    ]
    assert any(f"$ equipoise {name}" in block for block in blocks)


def test_the_spec_of_the_readme_is_the_demos():
    shown = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    demo = ROOT / "src" / "equipoise" / "data" / "embedded" / "demo.toml"
    assert tomllib.loads(shown) == tomllib.loads(demo.read_text())


def run_session(block, names, page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    report = []
    runner.run(
        doctest.DocTestParser().get_doctest(block, names, page, page, 0), out=report.append, clear_globs=False
    )
    assert runner.failures == 0, "".join(report)
