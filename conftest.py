"""For tests and doctests alike: no window is opened, and no figure outlives its test."""

import os
import sys
from collections.abc import Iterator

import pytest

os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
