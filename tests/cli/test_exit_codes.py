"""Exit code 1 means that a check failed; no other error may end with it."""

import subprocess
import sys

import pytest

from equipoise.cli import main
from equipoise.cli.commands import load_command


def raise_error(error):
    raise error


@pytest.mark.parametrize(
    "error",
    [KeyError("gone"), RuntimeError("bad\nworse"), AssertionError(), ZeroDivisionError("x"), SystemExit(1)],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("debug", ["", "1"])
def test_an_unexpected_error_is_one_line_and_exit_70(error, debug, monkeypatch, capsys):
    monkeypatch.setenv("EQUIPOISE_DEBUG", debug)
    monkeypatch.setattr(load_command("list"), "invoke", lambda *_: raise_error(error))
    assert main(["list"]) == 70
    said = capsys.readouterr().err
    assert ("Traceback" in said) is bool(debug)
    last = said.splitlines()[-1]
    assert last.startswith(f"equipoise: unexpected {type(error).__name__}: ")
    assert last.endswith("Set EQUIPOISE_DEBUG=1 for the traceback.")
    assert len(said.splitlines()) == 1 or debug


def test_a_traceback_on_request_does_not_change_the_exit_code(monkeypatch, capsys):
    monkeypatch.setenv("EQUIPOISE_DEBUG", "1")
    assert main(["score", "nowhere.npz"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_installation_that_is_not_whole_is_exit_70(tmp_path):
    (tmp_path / "click.py").write_text("raise RuntimeError('not click')")
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    code = f"{path}; from equipoise.cli import main; sys.exit(main(['list']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    [line] = done.stderr.splitlines()
    assert "unexpected RuntimeError: not click" in line
