"""Every loss of the catalogue has its page and its picture."""

from pathlib import Path

import pytest

from equipoise.experiments.catalogue.losses import LOSSES
from equipoise.experiments.catalogue.penalties import PAIRS, PENALTIES

PAGES = Path(__file__).resolve().parents[2] / "docs" / "methods" / "losses"


@pytest.mark.parametrize("key", [*LOSSES, *PENALTIES, *PAIRS])
def test_page_and_picture(key):
    name = key.replace("+", "-")
    assert f"| key | `{key}` |" in (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert (PAGES / "pictures" / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
