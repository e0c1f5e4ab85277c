"""Run the tests with the lowest versions that pyproject.toml promises, as far as they can be installed here.

    python .ci/lowest.py [words for pytest]

Every direct dependency is pinned to the lower end of its range. Where this machine's package index does not have that
version, the one of constraints.txt is taken instead, and named at the end: for that package the promise was not tried.
Torch is taken as a CPU build only.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".venv-lowest"
EXTRAS = (
    "torch",
    "suite",
    "train",
    "data",
    "plots",
    "parquet",
    "safetensors",
    "sklearn",
    "torchmetrics",
    "skorch",
    "test",
)
RANGE = re.compile(r"([A-Za-z0-9_.-]+)\s*>=\s*([\w.]+)")


def promised() -> dict[str, str]:
    """Give the highest lower end of each package: two extras may ask differently."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [
        *project["dependencies"],
        *(line for extra in EXTRAS for line in project["optional-dependencies"][extra]),
    ]
    found: dict[str, str] = {}
    for name, low in filter(None, (RANGE.match(line) and RANGE.match(line).groups() for line in lines)):
        found[name] = max(found.get(name, low), low, key=lambda text: [int(part) for part in text.split(".")])
    return found


def is_there(python: Path, pin: str) -> bool:
    words = [python, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d"]
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*words, folder, pin], capture_output=True, check=False).returncode == 0


def main() -> int:
    if not PLACE.exists():
        venv.create(PLACE, with_pip=True)
    python = PLACE / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    usual = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    pins, untried = [], []
    for name, low in promised().items():
        whole = low if low.count(".") == 2 else f"{low}.0"
        pin = f"{name}=={whole}+cpu" if name == "torch" else f"{name}=={whole}"
        if is_there(python, pin):
            pins.append(pin)
        else:
            untried.append(f"{name} {low} (taken: {usual.get(name, 'the newest')})")
            pins += [f"{name}=={usual[name]}"] if name in usual else []
    print("lowest:", *pins, flush=True)
    install = [python, "-m", "pip", "install", "-q", "-e", f".[{','.join(EXTRAS)}]", *pins]
    code = subprocess.run(install, cwd=ROOT, check=False).returncode
    if code:
        print("lowest: these versions cannot be installed together here; nothing was run.")
        return code
    code = subprocess.run([python, "-m", "pytest", *sys.argv[1:]], cwd=ROOT, check=False).returncode
    print("\nlowest: not tried, since the index does not have them: " + ("; ".join(untried) or "none"))
    return code


if __name__ == "__main__":
    sys.exit(main())
