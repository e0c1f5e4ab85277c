"""What ``train`` and ``compare`` accept and print: names, epochs in a log file, execution, paths with plus signs."""

import json
import re

import pytest

from equipoise.cli import main

SPEC = """
data = "digits"
model = { name = "mlp", options = { hidden = [8] } }
method = "ce"
recipe = { name = "quick", epochs = 3 }
"""


@pytest.fixture
def train(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(text, *options, command="train"):
        (tmp_path / "run.toml").write_text(text)
        return main([command, "run.toml", "--resamples", "20", "--accelerator", "cpu", *options])

    return call


def test_a_log_file_gets_lines_about_epochs(train, capsys):
    assert train(SPEC) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("epoch ")]
    assert [line.partition(":")[0] for line in (lines[0], lines[-1])] == ["epoch 1/3", "epoch 3/3"]
    assert re.fullmatch(
        r"epoch 3/3: loss \d\.\d{4}, tune_nll \d\.\d{4}, tune_accuracy 0\.\d{4}, [\d.]+ s", lines[-1]
    )


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_quiet_and_json_print_none(option, train, capsys):
    assert train(SPEC, option) == 0
    assert "epoch" not in capsys.readouterr().err


def test_a_name_is_shown_and_leaves_the_identity_as_it_is(train, capsys):
    assert train('name = "mine"\n' + SPEC, "--json") == 0
    named = json.loads(capsys.readouterr().out)
    assert train(SPEC, "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert (named["name"], plain["name"]) == ("mine", None)
    assert named["run"] == plain["run"]


def test_a_name_must_be_one(train, capsys):
    assert train('name = "../mine"\n' + SPEC) == 2
    assert "run.toml.name: must be a name for files" in capsys.readouterr().err


def test_execution_options_leave_the_identity_and_recipe_options_change_it(train, capsys):
    found = {}
    for options in ((), ("--loader-workers", "2", "--strategy", "auto"), ("--precision", "64-true")):
        assert train(SPEC, "--json", *options) == 0
        found[options[:1]] = json.loads(capsys.readouterr().out)["run"]
    plain, loaders, precise = found.values()
    assert plain == loaders
    assert plain != precise


@pytest.mark.parametrize("key", ["model", "method", "sum"])
def test_a_plus_in_a_path_is_no_sum(key, train, tmp_path, capsys):
    folder = tmp_path / "c++"
    folder.mkdir()
    (folder / "own.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Sequential):\n"
        "    def __init__(self, n_inputs, n_classes):\n"
        "        super().__init__(nn.Flatten(), nn.Linear(n_inputs, n_classes))\n"
        "class Loss(nn.CrossEntropyLoss):\n"
        "    pass\n"
    )
    model, method = {
        "model": ("c++/own.py:Net", "ce"),
        "method": ("mlp", "c++/own.py:Loss"),
        "sum": ("c++/own.py:Net", "ce+0.5*c++/own.py:Loss"),
    }[key]
    text = f'data = "digits"\nmodel = "{model}"\nmethod = "{method}"\nrecipe = {{ name = "quick", epochs = 1 }}\n'
    assert train(text, "--json") == 0
    assert "c++/own.py" in capsys.readouterr().err
    assert train(text, command="compare") == 0
    assert main(["table", "runs"]) == 0


ADAPTIVE = """
import torch
from torch import nn

class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("smoothing", torch.tensor(0.0))
        self.steps = 0
    def forward(self, logits, labels):
        return nn.functional.cross_entropy(logits, labels, label_smoothing=float(self.smoothing))
    def update(self, logits, labels):
        self.smoothing += 0.1

class Lost(Mine):
    def update(self, logits, labels):
        self.steps += 1
"""


def test_compare_updates_a_loss_of_ones_own(train, tmp_path, capsys):
    (tmp_path / "loss.py").write_text(ADAPTIVE)
    text = SPEC.replace('"ce"', '["ce", "loss.py:Mine"]')
    assert train(text, "--workers", "1", command="compare") == 0
    histories = [file.read_text() for file in tmp_path.glob("runs/*/history.csv")]
    [mine] = [text.splitlines() for text in histories if "smoothing" in text]
    column = mine[0].split(",").index("smoothing")
    assert [float(line.split(",")[column]) for line in mine[1:]] == pytest.approx([0.0, 0.1, 0.2])


def test_compare_refuses_state_that_is_not_saved_before_the_first_run(train, tmp_path, capsys):
    (tmp_path / "loss.py").write_text(ADAPTIVE)
    assert train(SPEC.replace('"ce"', '["ce", "loss.py:Lost"]'), command="compare") == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert "run.toml.method" in message
    assert "Lost.update changes `steps`" in message
    assert not list(tmp_path.glob("runs/*/spec.toml"))
