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
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```(?:\n\s*<!-- output -->\n```text\n(?P<output>.*?)^```)?",
    re.DOTALL | re.MULTILINE,
)
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
    needed = [package for packages in NEEDS.findall(page.read_text()) for package in packages.split(", ")]
    for package in needed:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with warnings.catch_warnings():
        if needed:
            warnings.simplefilter("ignore")  # from other libraries
        for block in BLOCK.finditer(page.read_text()):
            if block["code"].lstrip().startswith(">>>"):
                run_session(block["code"], names, page.name)
            else:
                exec(compile(block["code"], str(page.name), "exec"), names)
            printed = capsys.readouterr()
            remarks = [line for line in printed.err.splitlines() if not line.startswith("epoch ")]
            assert needed or remarks == []
            if block["output"] is not None:
                assert words_of(block["output"]) == words_of(printed.out), "run tools/docs/run_examples.py"


def words_of(output):
    """Return an output without its digits, which differ between processors, and without spaces that align them."""
    return re.sub(r"[\d.,<%-]+", "#", output).split()


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


def navigation():
    """Return the pages of every group of the site, by the name of the group."""
    yaml = pytest.importorskip("yaml")

    def pages(entry):
        if isinstance(entry, str):
            yield entry
        else:
            for child in entry if isinstance(entry, list) else entry.values():
                yield from pages(child)

    groups = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    return {name: list(pages(children)) for group in groups for name, children in group.items()}


def test_every_guide_has_a_figure():
    groups = navigation()
    guides = [page for name in list(groups)[:6] for page in groups[name]]
    guides = [page for page in guides if not page.startswith(("notebooks/", "evidence/"))]
    assert len(guides) > 40
    without = [
        page
        for page in guides
        if page != "recipes/index.md" and "![" not in (ROOT / "docs" / page).read_text()
    ]
    assert without == []


def test_every_recipe_is_in_the_index_and_in_the_navigation():
    pages = {f"recipes/{page.name}" for page in (ROOT / "docs" / "recipes").glob("*.md")}
    index = (ROOT / "docs" / "recipes" / "index.md").read_text()
    assert pages <= {page for group in navigation().values() for page in group}
    assert {f"recipes/{name}" for name in re.findall(r"\]\((\S+\.md)\)", index)} == pages - {
        "recipes/index.md"
    }


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def run_session(block, names, page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    report = []
    runner.run(
        doctest.DocTestParser().get_doctest(block, names, page, page, 0), out=report.append, clear_globs=False
    )
    assert runner.failures == 0, "".join(report)
