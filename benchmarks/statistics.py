"""How far verdicts and intervals can be trusted: runs ``levels.py``, which describes its options.

Run: python benchmarks/statistics.py [--repeats 1000] [--quick] [--only level power ...] [--workers 2]

The standard library has a module of this name. Other benchmarks and the packages that they use import it, and find this
file first, since it is in their folder. So this file replaces itself by that module when it is imported.
"""

from __future__ import annotations

import sys
import sysconfig
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

if __name__ == "__main__":
    HERE = Path(__file__).resolve().parent
    others = [path for path in sys.path if Path(path).resolve() != HERE]
    sys.path[:] = [str(HERE.parent / "src"), str(HERE.parent / "tests"), *others, str(HERE)]
    import levels

    levels.main()
else:
    spec = PathFinder.find_spec(__name__, [sysconfig.get_path("stdlib")])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[__name__] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[__name__])
