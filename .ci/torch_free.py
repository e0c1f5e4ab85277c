"""Run the torch-free part of the suite in an environment without torch, and print how large environments are.

    python .ci/torch_free.py [arguments of pytest]
    python .ci/torch_free.py --sizes

Which packages are torch-free is decided in conftest.py. Versions come from constraints.txt.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-torch-free"
EXTRAS = "parquet,remote,safetensors,plots,pandas,sklearn,suite"
SIZES = {"equipoise": "", "equipoise[torch]": "[torch]", "equipoise[all]": "[all]"}


def python_of(folder: Path) -> Path:
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def install(folder: Path, extras: str) -> None:
    if not folder.exists():
        venv.create(folder, with_pip=True)
    words = [python_of(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c"]
    subprocess.run([*words, ROOT / "constraints.txt", "-e", f"{ROOT}{extras}"], check=True)


def sizes() -> None:
    """Print the size of a fresh environment for each of the usual installations."""
    for name, extras in SIZES.items():
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "environment"
            install(folder, extras)
            files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
            print(f"{name:20s} {sum(file.stat().st_size for file in files) / 1e6:8.0f} MB")


def main() -> int:
    if sys.argv[1:] == ["--sizes"]:
        sizes()
        return 0
    install(FOLDER, f"[{EXTRAS}]")
    python = python_of(FOLDER)
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
        print(
            f"torch_free: torch is installed in {FOLDER}; one of the extras {EXTRAS} requires it.",
            file=sys.stderr,
        )
        return 1
    arguments = sys.argv[1:] or ["-n", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [python, "-m", "pytest", *arguments], cwd=ROOT, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
