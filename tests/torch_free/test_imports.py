"""Commands on files and functions of NumPy arrays never import torch, whether it is installed or not."""

import subprocess
import sys

import numpy as np
import pytest

from equipoise.core import Predictions, write_predictions

RUN = """
import sys
from equipoise.cli import main
code = main(sys.argv[1:])
print("code", code, "torch" if "torch" in sys.modules else "free")
"""


@pytest.fixture
def files(tmp_path):
    """A folder with predictions in two files and a calibrator fitted on the first."""
    rng = np.random.default_rng(0)
    for name in ("calib", "test"):
        logits = rng.normal(size=(400, 3)) * 2
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        write_predictions(Predictions(logits=2 * logits, labels=labels), tmp_path / f"{name}.npz")
    header = "logit_a,logit_b,logit_c,label"
    rows = np.column_stack([2 * logits, labels])
    np.savetxt(tmp_path / "test.csv", rows, delimiter=",", header=header, comments="", fmt="%.6g")
    return tmp_path


def run(folder, code, *arguments):
    words = [sys.executable, "-c", code, *arguments]
    found = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "command",
    [
        "audit test.npz",
        "audit test.csv --report audit.html",
        "score test.npz",
        "calibrate calib.npz -o calibrator.json",
        "calibrate calib.npz --method auto -o calibrator.json",
        "report test.npz -o report.html",
    ],
)
def test_commands_on_files_import_no_torch(command, files):
    assert run(files, RUN, *command.split()) == "code 0 free"


def test_a_calibrator_is_applied_without_torch(files):
    assert run(files, RUN, "calibrate", "calib.npz", "-o", "calibrator.json") == "code 0 free"
    assert run(files, RUN, "apply", "calibrator.json", "test.csv", "-o", "out.csv") == "code 0 free"


PYTHON = """
import sys
import numpy as np
import equipoise
from equipoise.calibrators import choose, load
from equipoise.calibrators.loading import KINDS

predictions = equipoise.read_predictions("calib.npz")
for kind in KINDS:
    fitted = KINDS[kind]().fit(predictions)
    fitted(predictions.logits)
    fitted.save("calibrator.json")
    load("calibrator.json")(predictions)
choose(predictions)
print("torch" if "torch" in sys.modules else "free")
"""


def test_every_calibrator_works_on_arrays_without_torch(files):
    assert run(files, PYTHON) == "free"
