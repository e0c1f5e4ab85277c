"""The page on data names every dataset."""

from pathlib import Path

import pytest

from equipoise.data import READERS
from equipoise.data.official import OFFICIAL

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", READERS)
def test_every_dataset_is_on_the_page(name):
    row = next((line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")), None)
    assert row is not None
    offered = name in OFFICIAL and bool(OFFICIAL[name].remotes)
    assert row.split("|")[4].strip().startswith("yes") == offered
