"""For tests and doctests alike: no window is opened, no figure outlives its test, no processor's promise ends them."""

import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ["MPLBACKEND"] = "Agg"

HAS_TORCH = find_spec("torch") is not None
#: Packages whose tests and doctests run without torch, in an environment that does not have it.
TORCH_FREE = {
    "calibrators",
    "catalogue",
    "core",
    "decisions",
    "evaluate",
    "kernels",
    "metrics",
    "plots",
    "report",
    "theory",
    "torch_free",
}
TORCH_FREE_ADAPTERS = {"sklearn"}

if HAS_TORCH:
    from equipoise.training.bfloat16 import WITHOUT_TILES, why_no_bfloat16

    # Before the first convolution, after which oneDNN asks no more; other processes of the tests inherit it.
    if not os.environ.keys() & WITHOUT_TILES and why_no_bfloat16():
        os.environ.update(WITHOUT_TILES)
        why_no_bfloat16.cache_clear()

# Adapters to heavy libraries can be imported only where these are installed.
_HOSTS = {"huggingface": "transformers", "lightning": "lightning", "mlflow": "mlflow", "wandb": "wandb"}
collect_ignore = [
    f"src/equipoise/integrations/{file}.py" for file, package in _HOSTS.items() if find_spec(package) is None
]
if not HAS_TORCH:
    collect_ignore.append("src/equipoise/core/torch_required.py")
# Without the compiler, neither can the file that needs it.
if find_spec("numba") is None:
    collect_ignore.append("src/equipoise/kernels/state_kernel.py")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Without torch, leave out packages that need it, and tests of tensors in the others: files that import torch."""
    root = Path(__file__).parent
    if HAS_TORCH or collection_path.suffix != ".py" or collection_path.parent in (root, root / "tests"):
        return None
    parts = collection_path.relative_to(root).parts  # tests/PACKAGE/... or src/equipoise/PACKAGE/...
    package = parts[2 if parts[0] == "src" else 1]
    adapter = collection_path.stem.removeprefix("test_") in TORCH_FREE_ADAPTERS and package == "integrations"
    if package not in TORCH_FREE and not adapter:
        return True
    return (
        bool(re.search(r"^(import|from) torch\b", collection_path.read_text("utf-8"), re.MULTILINE)) or None
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without torch, skip examples in docstrings that use it."""
    for item in items:
        example = getattr(item, "dtest", None)
        if not HAS_TORCH and example and any("torch" in part.source for part in example.examples):
            item.add_marker(pytest.mark.skip(reason="the example needs torch"))


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
