"""For tests and doctests alike: no window is opened, no figure outlives its test, no processor's promise ends them."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from equipoise.training.bfloat16 import WITHOUT_TILES, why_no_bfloat16

os.environ["MPLBACKEND"] = "Agg"

# Before the first convolution, after which oneDNN asks no more; other processes of the tests inherit it.
if not os.environ.keys() & WITHOUT_TILES and why_no_bfloat16():
    os.environ.update(WITHOUT_TILES)
    why_no_bfloat16.cache_clear()

# Adapters to heavy libraries can be imported only where these are installed.
_HOSTS = {"huggingface": "transformers", "lightning": "lightning", "mlflow": "mlflow", "wandb": "wandb"}
collect_ignore = [
    f"src/equipoise/integrations/{file}.py" for file, package in _HOSTS.items() if find_spec(package) is None
]
# Without the compiler, neither can the file that needs it.
if find_spec("numba") is None:
    collect_ignore.append("src/equipoise/kernels/state_kernel.py")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
