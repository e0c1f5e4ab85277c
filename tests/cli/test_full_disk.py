"""Commands on a disk that is full: one line, exit code 2, and no part of a file."""

import os
import subprocess
import sys

import numpy as np
import pytest

from helpers.calibration_data import sample
from helpers.daily import daily

#: A file can grow to so many bytes only; what is imported first may be cached on the disk before.
LIMITED = """
import resource, signal, sys
from equipoise.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""
COMMANDS = {
    "calibrate.safetensors": ["calibrate", "rows.npz", "--method", "vector", "-o"],
    "calibrate.json": ["calibrate", "rows.npz", "--method", "vector", "-o"],
    "figure.svg": ["plot", "phi", "-o"],
    "figure.png": ["plot", "phi", "-o"],
    "figure.pdf": ["plot", "phi", "-o"],
}


@pytest.fixture
def folder(tmp_path):
    logits, labels = sample(200, 3)
    np.savez(tmp_path / "rows.npz", logits=logits, labels=labels)
    return tmp_path


@pytest.mark.parametrize("limit", daily([0, 100], keep=[100]))
@pytest.mark.parametrize("name", COMMANDS)
def test_no_part_of_a_file_is_left_and_the_old_one_stays(folder, name, limit):
    (folder / name).write_text("old")
    command = [sys.executable, "-B", "-c", LIMITED, str(limit), *COMMANDS[name], name]
    # Caches of fonts and compiled code are not what is tested.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"equipoise: {name}: cannot be written (")
    assert "Traceback" not in done.stderr
    assert (folder / name).read_text() == "old"
    assert sorted(file.name for file in folder.iterdir()) == sorted([name, "rows.npz"])
