"""For tests and doctests alike: no window is opened, and no figure outlives its test."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

os.environ["MPLBACKEND"] = "Agg"

# Adapters to heavy libraries can be imported only where these are installed.
_HOSTS = {"huggingface": "transformers", "lightning": "lightning", "mlflow": "mlflow", "wandb": "wandb"}
collect_ignore = [
    f"src/equipoise/integrations/{file}.py" for file, package in _HOSTS.items() if find_spec(package) is None
]


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
