"""What only tells something answers at once: torch stays out."""

import subprocess
import sys

import pytest

from equipoise.cli import main

TALK = """
import sys
from equipoise.cli import main
code = 0
try:
    code = main(sys.argv[1:])
finally:
    loaded = [name for name in ("torch", "numpy", "scipy", "numba", "rich") if name in sys.modules]
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


@pytest.mark.parametrize(
    "name", ["focal", "adafocal", "gamma_net", "cifar10c", "quick", "resnet20", "temperature"]
)
def test_show_fits_a_screen(name, capsys):
    main(["show", name.replace("cifar10c", "cifar10c")])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 50
    assert "parameter" in "\n".join(lines)
    before_papers = lines[
        : next((n for n, line in enumerate(lines) if line.startswith("Printed")), len(lines))
    ]
    assert max(map(len, before_papers)) <= 100


def test_numbers_told_beside_others_are_listed_and_told_where(capsys):
    assert main(["list", "metrics"]) == 0
    assert "ece_over" in capsys.readouterr().out
    assert main(["show", "ece_over"]) == 2
    assert "part of 'ece'" in capsys.readouterr().err
