"""For tests and doctests alike: no window is opened, no figure outlives its test, no processor's promise ends them."""

import inspect
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


#: Imports that show that a test needs torch: torch itself, packages that need it, and public names from there.
_NEEDS_TORCH = re.compile(
    r"^ *(import|from) (torch\b|equipoise\.(losses|models|data|objectives|training|experiments|testing)\b|"
    r"helpers(\.| import )(batch_norms|batch_terms|host_processes|host_training|own_code|per_sample|processes|"
    r"statistics_trials|toys)\b)|"
    r"^from equipoise import .*\b(compare_methods|compare_seeds|load_model|register)\b",
    re.MULTILINE,
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Without torch, leave out packages that need it, and in the others the files of tests that use these packages."""
    root = Path(__file__).parent
    if HAS_TORCH or not collection_path.is_relative_to(root):
        return None
    parts = collection_path.relative_to(root).parts  # tests/PACKAGE/... or src/equipoise/PACKAGE/...
    depth = 2 if parts[:1] == ("src",) else 1
    if len(parts) <= depth:
        return None
    package = parts[depth].removesuffix(".py")
    if package == "integrations":
        adapter = collection_path.stem.removeprefix("test_")
        return None if collection_path.is_dir() or adapter in TORCH_FREE_ADAPTERS else True
    if package not in TORCH_FREE and package not in ("helpers", "conftest", "__init__"):
        return True
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text("utf-8")
    needs_torch = (
        re.search(r"^import torch\b", text, re.MULTILINE) if parts[0] == "src" else _NEEDS_TORCH.search(text)
    )
    return bool(needs_torch) or None


def _example_needs_torch(item: pytest.Item) -> bool:
    """Return whether the example in a docstring, or the function that it belongs to, imports torch."""
    example = getattr(item, "dtest", None)
    if example is None:
        return False
    if any("torch" in part.source for part in example.examples):
        return True
    module = sys.modules[example.globs["__name__"]]
    documented = getattr(module, example.name.removeprefix(f"{module.__name__}."), None)
    return inspect.isfunction(documented) and "import torch" in inspect.getsource(documented)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without torch, skip examples in docstrings that use it."""
    for item in items:
        if not HAS_TORCH and _example_needs_torch(item):
            item.add_marker(pytest.mark.skip(reason="the example needs torch"))


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
