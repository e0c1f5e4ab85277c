"""Scripts that lie outside the package, beside the docs or for CI, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).resolve().parents[2]


def load_script(path: str) -> ModuleType:
    """Return a script of the project, such as ``tools/docs/run_notebooks.py``; it is run once."""
    name = Path(path).stem
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _ROOT / path)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]
