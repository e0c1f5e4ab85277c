"""What only tells something answers at once: torch stays out."""

import json
import subprocess
import sys
from typing import NamedTuple

import pytest

from equipoise.calibrators.loading import KINDS
from equipoise.cli import main
from equipoise.cli.commands import COMMANDS, load_command
from equipoise.experiments import Spec, run
from helpers.tiny_runs import quick_options

TALK = """
import sys
from equipoise.cli import main
code = 0
try:
    code = main(sys.argv[1:])
finally:
    loaded = [name for name in ("torch", "numpy", "scipy", "numba") if name in sys.modules]
    print("LOADED", code, *loaded)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["list"],
        ["list", "losses", "--json"],
        ["show", "focal+mdca"],
        ["show", "cifar10"],
    ],
    ids=" ".join,
)
def test_no_torch_to_tell_what_there_is(words):
    result = subprocess.run([sys.executable, "-c", TALK, *words], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "LOADED 0"
    assert len(result.stdout.splitlines()) > 1


def test_a_mistake_is_told_without_torch_too():
    result = subprocess.run(
        [sys.executable, "-c", TALK, "show", "focall"], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == ["LOADED 2"]
    assert "did you mean 'focal'?" in result.stderr


def test_a_table_of_runs_needs_no_torch(tmp_path):
    table = {"data": "digits", "model": "mlp", "recipe": {"name": "quick", "epochs": 1}}
    run(Spec.from_table(table), tmp_path, **quick_options())
    words = [sys.executable, "-c", TALK, "table", str(tmp_path)]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    loaded = result.stdout.splitlines()[-1].split()
    assert loaded[:2] == ["LOADED", "0"]
    assert "torch" not in loaded


#: Every answer in one process, in which nothing heavy is to be had: an import of it is recorded.
ASK = """
import contextlib, importlib.abc, io, json, os, sys
from equipoise.cli import main

class Door(importlib.abc.MetaPathFinder):
    asked = []

    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "numpy", "scipy", "numba"):
            self.asked.append(name)
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Door())
for words, variables in json.load(sys.stdin):
    # Completions are written as bytes, which need a stream that has a buffer, as that of a process does.
    Door.asked, out, err = [], io.TextIOWrapper(io.BytesIO()), io.StringIO()
    os.environ.update(variables)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as stop:
            code = stop.code
        except ModuleNotFoundError as error:
            code = str(error)
    for name in variables:
        del os.environ[name]
    out.seek(0)
    print(json.dumps([code, out.read(), err.getvalue(), Door.asked]))
"""
#: Commands that cannot be called without a word more.
NEEDY = [name for name in sorted(COMMANDS) if any(part.required for part in load_command(name).params)]


class Answer(NamedTuple):
    """What a command answered, and what it would have loaded."""

    code: int
    out: str
    err: str
    asked: list


def completing(line):
    """Give what a shell passes on when the last word of a line is to be completed."""
    words = {"COMP_WORDS": f"equipoise {line}", "COMP_CWORD": str(len(line.split()))}
    return [], {"_EQUIPOISE_COMPLETE": "bash_complete", **words}


@pytest.fixture(scope="module")
def answers():
    """What is answered to a line of words, and to the key that completes it."""
    lines = [f"{name} {word}" for name in COMMANDS for word in ("--help", "--nonsense")]
    lines += [*NEEDY, "runs export --help", "runs export --to nobody"]
    unfinished = [f"{name} --" for name in COMMANDS] + [
        "runs export --",
        "audit --max ece=0.03 --m",
        "aduit --",
    ]
    asked = {line: (line.split(), {}) for line in lines} | {line: completing(line) for line in unfinished}
    words = [sys.executable, "-c", ASK]
    text = json.dumps(list(asked.values()))
    result = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    told = [Answer(*json.loads(line)) for line in result.stdout.splitlines()]
    return dict(zip(asked, told, strict=True))


@pytest.mark.parametrize("name", [*sorted(COMMANDS), "runs export"])
def test_help_needs_nothing_heavy(name, answers):
    answer = answers[f"{name} --help"]
    assert answer.asked == []
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: equipoise {name} ")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_an_unknown_option_is_refused_without_anything_heavy(name, answers):
    answer = answers[f"{name} --nonsense"]
    assert answer.asked == []
    assert answer.code == 2
    assert "No such option" in answer.err


@pytest.mark.parametrize("line", [*NEEDY, "runs export --to nobody"])
def test_a_missing_or_wrong_word_is_told_without_anything_heavy(line, answers):
    answer = answers[line]
    assert answer.asked == []
    assert answer.code == 2
    assert "Missing" in answer.err or "'nobody' is not one of" in answer.err


@pytest.mark.parametrize("name", [*sorted(COMMANDS), "runs export"])
def test_options_are_completed_without_anything_heavy(name, answers):
    answer = answers[f"{name} --"]
    assert answer.asked == []
    assert answer.code == 0
    assert "plain,--help" in answer.out.splitlines()


def test_words_that_were_typed_before_are_not_looked_up(answers):
    answer = answers["audit --max ece=0.03 --m"]
    assert answer.asked == []
    assert {"plain,--max", "plain,--min", "plain,--max-bytes"} == set(answer.out.splitlines())


def test_help_names_every_map_that_can_be_fitted(capsys):
    main(["calibrate", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    named = text.partition("or one of ")[2].partition(".")[0]
    assert sorted(named.split(", ")) == sorted(KINDS)


@pytest.mark.parametrize(
    "name", ["focal", "adafocal", "gamma_net", "cifar10c", "quick", "resnet20", "temperature"]
)
def test_show_fits_a_screen(name, capsys):
    main(["show", name.replace("cifar10c", "cifar10c")])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 50
    assert "option" in "\n".join(lines)
    before_papers = lines[
        : next((n for n, line in enumerate(lines) if line.startswith("Published results")), len(lines))
    ]
    assert max(map(len, before_papers)) <= 100


def test_numbers_told_beside_others_are_listed_and_told_where(capsys):
    assert main(["list", "metrics"]) == 0
    assert "ece_over" in capsys.readouterr().out
    assert main(["show", "ece_over"]) == 2
    assert "part of 'ece'" in capsys.readouterr().err


def test_a_slip_in_a_command_is_not_told_in_the_middle_of_a_line(answers):
    answer = answers["aduit --"]
    assert (answer.code, answer.err) == (0, "")
