"""The page on data names every dataset, and states which can be downloaded."""

from pathlib import Path

import pytest

from equipoise.data import READERS
from equipoise.data.official import OFFICIAL

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
FILES = [
    line
    for line in PAGE.split("## Where files go")[1].split("\n## ")[0].splitlines()
    if line.startswith("| `")
]


@pytest.mark.parametrize("name", READERS)
def test_every_dataset_is_on_the_page(name):
    assert f"`{name}`" in PAGE
    offered = name in OFFICIAL and bool(OFFICIAL[name].remotes)
    rows = [line for line in FILES if f"`{name}`" in line.split("|")[1]]
    assert any(row.split("|")[3].strip().startswith("yes") for row in rows) == offered
