"""Commands on files and functions of NumPy arrays never import torch; what needs it says how to install it."""

import subprocess
import sys

import numpy as np
import pytest

from equipoise.core import Predictions, write_predictions

#: Runs commands, one per line of the input, and prints the code of each and whether torch is loaded afterwards.
RUN = """
import sys
from equipoise.cli import main
for line in sys.stdin:
    code = main(line.split())
    print(f"\\n{line.strip()}: {code}, {'torch' if 'torch' in sys.modules else 'free'}")
"""
COMMANDS = """
audit test.npz
audit test.csv --report audit.html
score test.npz
calibrate calib.npz -o calibrator.json
calibrate calib.npz --method auto -o auto.json
apply calibrator.json test.csv -o out.csv
adapt calibrator.json --unlabelled test.csv -o adapted.json
report test.npz -o report.html
decide calib.npz --max-error 0.5 -o decision.json
apply decision.json test.csv -o decided.csv
audit test.csv --decision decision.json
watch watch.json test.csv --day 2026-03-09
watch --unlabelled test.csv --reference calib.npz
plan test.csv --width 10% -o rows.csv
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with predictions in two files."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    for name in ("calib", "test"):
        logits = rng.normal(size=(400, 3)) * 2
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        write_predictions(Predictions(logits=2 * logits, labels=labels), folder / f"{name}.npz")
    header = "logit_a,logit_b,logit_c,label"
    rows = np.column_stack([2 * logits, labels])
    np.savetxt(folder / "test.csv", rows, delimiter=",", header=header, comments="", fmt="%.6g")
    return folder


def run(folder, code, given=""):
    words = [sys.executable, "-c", code]
    found = subprocess.run(words, input=given, capture_output=True, text=True, cwd=folder, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


def test_commands_on_files_import_no_torch(files):
    commands = COMMANDS.strip().splitlines()
    printed = run(files, RUN, "\n".join(commands))
    found = [line for line in printed if line.endswith((", free", ", torch"))]
    # A monitor may alarm, which is code 1.
    expected = [f"{line}: {int(line.startswith('watch watch'))}, free" for line in commands]
    assert found == expected


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
equipoise.score(predictions)
print("torch" if "torch" in sys.modules else "free")
"""


def test_functions_on_arrays_import_no_torch(files):
    assert run(files, PYTHON)[-1] == "free"


#: As if torch were not installed: prints what each import and each command answers.
WITHOUT = """
import importlib, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name="torch")

sys.meta_path.insert(0, NoTorch())
for name in sys.stdin.readline().split():
    try:
        importlib.import_module(f"equipoise.{name}")
    except ImportError as error:
        print(f"{name}: {type(error).__name__}: {error}")
from equipoise.cli import main
sys.stderr = sys.stdout
for line in sys.stdin:
    print(f"{line.split()[0]}: {main(line.split())}")
"""
NEED_TORCH = (
    "losses training objectives models data testing integrations.huggingface integrations.lightning "
    "integrations.onnx integrations.run_model integrations.saved_model integrations.skorch integrations.torchmetrics"
)
TORCH_COMMANDS = """
train spec.toml
compare spec.toml
demo
save runs --method focal -o model.safetensors
export runs --method focal -o model.onnx
export model.safetensors -o model.onnx
"""


def test_what_needs_torch_names_the_command_that_installs_it(files):
    (files / "model.safetensors").write_bytes(b"")
    (files / "runs").mkdir()
    printed = iter(run(files, WITHOUT, f"{NEED_TORCH}\n{TORCH_COMMANDS.strip()}"))
    for name in NEED_TORCH.split():
        line = next(printed)
        assert line.startswith(f"{name}: MissingExtraError: torch is needed to ")
        assert line.endswith(" and is not installed. Run: pip install 'equipoise[torch]'")
    for command in TORCH_COMMANDS.strip().splitlines():
        message, code = next(printed), next(printed)
        assert message.startswith("equipoise: torch is needed to ")
        assert "Run: pip install 'equipoise[" in message
        assert code == f"{command.split()[0]}: 2"
