"""Every loss of the catalogue has its page and its figure, and the specs on pages are specs."""

import re
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import equipoise
from equipoise.catalogue import CATALOGUE
from equipoise.core import DataError
from equipoise.experiments import Execution, prepare, read_comparison, read_spec

DATASETS = CATALOGUE["datasets"]
LOSSES = CATALOGUE["losses"]
PENALTIES = CATALOGUE["penalties"]

PAGES = Path(__file__).resolve().parents[2] / "docs" / "methods" / "losses"


@pytest.mark.parametrize("key", [*LOSSES, *PENALTIES])
def test_page_and_picture(key):
    name = key.replace("+", "-")
    assert f"| key | `{key}` |" in (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert (PAGES / "figures" / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")


ROOT = PAGES.parent
SPECS = [page for page in sorted(ROOT.rglob("*.md")) if "```toml" in page.read_text(encoding="utf-8")]
#: Data that are there without a file of their own.
ALWAYS = {"digits", "mixture", "scenes"}


METHODS = [page for page in sorted(ROOT.rglob("*.md")) if page.name != "index.md"]


@pytest.mark.parametrize("page", METHODS, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_addresses_on_pages_lead_to_objects(page):
    (row,) = re.findall(r"^\| in Python \| (.*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    addresses = re.findall(r"`equipoise\.([\w.]+)", row)
    assert len(addresses) == row.count("`") / 2, row
    assert all(callable(attrgetter(address)(equipoise)) for address in addresses)


def example(page, folder):
    """Write the spec that a page shows, and give its path."""
    file = folder / "spec.toml"
    file.write_text(re.search(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[1])
    return file


@pytest.mark.parametrize("page", SPECS, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_specs_on_pages_are_specs(page, tmp_path):
    file = example(page, tmp_path)
    assert read_comparison(file).specs if "shift = " in file.read_text() else read_spec(file)


@pytest.mark.parametrize("key", sorted(DATASETS))
def test_examples_of_datasets_run_or_say_what_to_put_where(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inputs, labels = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32), np.arange(60) % 2
    np.savez("mine.npz", x=inputs, y=labels)
    columns = np.column_stack([inputs, labels])
    np.savetxt("mine.csv", columns, delimiter=",", header="a,b,c,d,label", comments="", fmt="%g")
    for number in range(60):
        folder = tmp_path / "mine" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(folder / f"{number}.png")
    file = example(ROOT / "datasets" / f"{key}.md", tmp_path)
    specs = read_comparison(file).specs if "shift = " in file.read_text() else [read_spec(file)]
    if key in ALWAYS or key in ("npz", "table", "image_folder"):
        assert prepare(specs, execution=Execution(root=str(tmp_path)))
        return
    with pytest.raises(DataError, match=r"not found in .*Put there"):
        prepare(specs, execution=Execution(root=str(tmp_path)))
