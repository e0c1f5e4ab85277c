"""The command line: exit codes, JSON, one sentence for a mistake."""

import json
import subprocess
import sys

import numpy as np
import pytest

import equipoise
from equipoise.cli import main
from equipoise.cli.commands import COMMANDS, load_command


@pytest.fixture
def predictions_file(tmp_path):
    path = tmp_path / "predictions.npz"
    rng = np.random.default_rng(0)
    np.savez(path, logits=rng.normal(size=(200, 3)).astype(np.float32), labels=rng.integers(0, 3, 200))
    return path


def test_demo_prints_a_table_and_writes_a_report(capsys, tmp_path):
    words = ["--set", "recipe.epochs=1", "--set", "seed=0", "--set", 'method="ce"', "--quiet"]
    assert main(["demo", "--out", str(tmp_path), *words]) == 0
    printed = capsys.readouterr().out
    assert "ECE" in printed
    assert printed.rstrip().endswith("report.html")
    assert "<html" in (tmp_path / "report.html").read_text()


def test_score_prints_what_the_library_says(predictions_file, capsys):
    assert main(["score", str(predictions_file), "--json", "--resamples", "50"]) == 0
    printed = json.loads(capsys.readouterr().out)
    card = equipoise.score(equipoise.read_predictions(predictions_file), n_resamples=50)
    assert printed == {"file": str(predictions_file), **card.to_dict()}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["score", "nowhere.npz"], "nowhere.npz"),
        (["score"], "Missing argument"),
        (["scroe", "x"], "No such command 'scroe'. Did you mean 'score'?"),
        (["unheard", "x"], "No such command 'unheard'."),
        (["score", "{file}", "--bins", "0"], "'--bins': 0 is not in the range"),
        (["score", "{file}", "--labels", "lables"], "lables"),
    ],
)
def test_mistakes_exit_2_with_a_sentence(arguments, sentence, predictions_file, capsys):
    words = [word.format(file=predictions_file) for word in arguments]
    assert main(words) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_an_example(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"equipoise {name}" in text.split("Example", 1)[-1]
    assert COMMANDS[name].help == load_command(name).get_short_help_str(limit=1000)


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(predictions_file):
    command = f"{sys.executable} -m equipoise score {predictions_file} --resamples 50 | head -1"
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in result.stderr
