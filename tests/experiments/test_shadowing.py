"""Files in the current folder that are called like packages are never imported, in no process that we start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.daily import daily

SPEC = """
data = { name = "digits", options = { noise = 0.3 } }
model = MODEL
method = ["ce", "focal"]
calibrators = ["temperature"]
recipe = { name = "quick", epochs = 1 }
"""
CATALOGUE_MODEL = '{ name = "mlp", options = { hidden = [16] } }'
#: Packages and modules that a run imports, here or in its workers.
NAMES = (
    "click", "cloudpickle", "colorsys", "filelock", "lightning_fabric", "matplotlib", "numba", "numpy", "pandas",
    "pyarrow", "ray", "safetensors", "scipy", "sklearn", "tomllib", "torch", "yaml",
)  # fmt: skip
#: A cluster of its own takes a while to start, and is not tested every day.
ENGINES = [("--workers", "1"), ("--workers", "2"), ("--engine", "ray")]


@pytest.fixture
def folder(tmp_path):
    """A folder with a spec and modules that leave a mark when they are imported."""
    home = tmp_path / "home"
    home.mkdir()
    for name in NAMES:
        mark = tmp_path / f"imported-{name}"
        (home / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise ImportError('shadow')\n")
    return home


def compare(home, model, *words):
    (home / "spec.toml").write_text(SPEC.replace("MODEL", model))
    source = Path(__file__).parents[2] / "src"
    command = [
        sys.executable,
        "-m",
        "equipoise",
        "compare",
        "spec.toml",
        "--resamples",
        "20",
        "--quiet",
        *words,
    ]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    environment["PYTHONPATH"] = str(source)
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)


def imported(home):
    return [file.name for file in home.parent.glob("imported-*")]


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("engine", daily(ENGINES, keep=ENGINES[:2]), ids=" ".join)
def test_a_module_in_the_current_folder_stands_in_for_no_package(folder, engine):
    if "ray" in engine:
        pytest.importorskip("ray")
    done = compare(folder, CATALOGUE_MODEL, "--no-code", *engine)
    assert imported(folder) == []
    assert done.returncode == 0, done.stderr


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("engine", daily(ENGINES, keep=ENGINES[1:2]), ids=" ".join)
@pytest.mark.parametrize("reference", daily(["net.py:Net", "net:Net"], keep=["net:Net"]))
def test_code_that_a_spec_names_is_found_together_with_what_it_imports(tmp_path, engine, reference):
    if "ray" in engine:
        pytest.importorskip("ray")
    (tmp_path / "parts.py").write_text("SIZE = 8\n")
    (tmp_path / "net.py").write_text(
        "import torch\nfrom parts import SIZE\n\n"
        "class Net(torch.nn.Sequential):\n"
        "    def __init__(self, n_classes):\n"
        "        super().__init__(torch.nn.Flatten(), torch.nn.LazyLinear(SIZE), torch.nn.LazyLinear(n_classes))\n"
        "        self(torch.zeros(2, 1, 8, 8))\n"
    )
    done = compare(tmp_path, f'"{reference}"', *engine)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_audit_on_ray_imports_nothing_from_the_current_folder(folder):
    pytest.importorskip("ray")
    (folder / "rows.csv").write_text("label,prob_0,prob_1\n" + "0,0.75,0.25\n1,0.5,0.5\n0,0.125,0.875\n" * 20)
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "equipoise", "audit", "rows.csv", "--engine", "ray", "--resamples", "20"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert imported(folder) == []
    assert done.returncode == 0, done.stderr
