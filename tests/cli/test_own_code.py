"""Specs that name code, as a shell sees them."""

import subprocess
import sys

import pytest

from equipoise.cli import main
from helpers.own_code import write_code

SPEC = """
data = "mine.py:points"
model = "mine.py:Net"
method = "mine.py:Smoothed"
recipe = { name = "quick", epochs = 1 }
"""


@pytest.fixture
def home(tmp_path):
    write_code(tmp_path)
    (tmp_path / "run.toml").write_text(SPEC)
    (tmp_path / "both.toml").write_text(SPEC + "seed = [0, 1]\n")
    return tmp_path


def words(home, command="train", file="run.toml"):
    return [command, str(home / file), "--out", str(home / "runs"), "--resamples", "20"]


@pytest.mark.slow
def test_the_files_are_named_and_a_second_command_says_that_nothing_was_run(home):
    call = [sys.executable, "-m", "equipoise", *words(home, "compare", "both.toml"), "--workers", "1"]
    first, second = (
        subprocess.run(call, capture_output=True, text=True, cwd=home, check=False) for _ in range(2)
    )
    assert first.returncode == 0, first.stderr
    assert "both.toml runs code: mine.py, sizes.py\n" in first.stderr
    assert "already finished" not in first.stderr
    assert second.stderr.count("already finished: ") == 2
    assert first.stdout == second.stdout


def test_code_is_refused_before_any_of_it_runs(home, capsys):
    (home / "mine.py").write_text("raise SystemExit('ran')")
    for command, file in (("train", "run.toml"), ("compare", "both.toml")):
        assert main([*words(home, command, file), "--no-code"]) == 2
        assert "names code that would be run, 'mine.py:points'" in capsys.readouterr().err
    assert not (home / "runs").exists()


@pytest.mark.parametrize(
    "line",
    [
        'calibrators = ["judge.py:Scaled"]',
        'metrics = ["ece", "judge.py:hits"]',
        'shift = [{ data = "judge.py:noise", kind = "ood" }]',
    ],
)
def test_code_that_judges_is_refused_as_well(home, capsys, line):
    (home / "judge.py").write_text("raise SystemExit('ran')")
    (home / "judged.toml").write_text(f'data = "digits"\nmodel = "mlp"\nmethod = "ce"\n{line}\n')
    assert main([*words(home, "compare", "judged.toml"), "--no-code"]) == 2
    assert "names code that would be run, 'judge.py:" in capsys.readouterr().err


def test_a_calibrator_of_the_command_line_is_code_too(home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    (home / "run.toml").write_text(
        'data = "digits"\nmodel = "mlp"\nrecipe = { name = "quick", epochs = 1 }\n'
    )
    call = [*words(home), "--calibrator", "judge.py:Scaled"]
    assert main([*call, "--no-code"]) == 2
    assert "names code that would be run, 'judge.py:Scaled'" in capsys.readouterr().err
    assert main(call) == 0
    told = capsys.readouterr()
    assert "runs code: judge.py\n" in told.err
    assert "judge.py-Scaled" in told.out


def test_a_spec_without_code_does_not_mind(home, capsys):
    plain = (
        SPEC.replace("mine.py:points", "digits")
        .replace("mine.py:Net", "mlp")
        .replace("mine.py:Smoothed", "ce")
    )
    (home / "run.toml").write_text(plain)
    assert main([*words(home), "--no-code"]) == 0
    assert "runs code" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            ('"mine.py:Smoothed"', '{ name = "focal", options = { gamma = -3 } }'),
            "run.toml.method: FocalLoss: `gamma`",
        ),
        (
            ('"mine.py:points"', '"cifar10"'),
            "run.toml.data: cifar10: no data folder is given. Pass --data FOLDER,",
        ),
        (('"mine.py:Net"', '"my_module:Net"'), "run.toml.model: no module 'my_module'"),
        (('"mine.py:Net"', '"mine.py:Nets"'), "did you mean 'Net'"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(home, capsys, monkeypatch, change, sentence):
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    (home / "run.toml").write_text(SPEC.replace(*change))
    assert main(words(home)) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert sentence in told
    assert told.startswith("equipoise: ")
    assert not (home / "runs").exists()
