"""``equipoise plot``: every kind of figure from folders of runs."""

import re

import pytest

from equipoise.cli import main
from equipoise.experiments import NEEDS_NO_RUNS, PLOTS

SPEC = """
name = "tiny"
data = { name = "digits", options = { noise = 0.3 } }
model = { name = "mlp", options = { hidden = [16] } }
method = ["ce", { name = "focal", choose = { gamma = [1.0, 3.0] } }, "cals_alm", "gamma_net"]
shift = [{ corruption = "contrast", severity = [1, 5] }]
recipe = { name = "quick", epochs = 2 }
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    (folder / "tiny.toml").write_text(SPEC)
    words = ["--out", str(folder / "runs"), "--resamples", "20", "--workers", "1", "--quiet"]
    assert main(["compare", str(folder / "tiny.toml"), *words]) == 0
    return str(folder / "runs")


MORE = {
    "hyperparameter": ["--parameter", "gamma"],
    "history": ["--ema", "0.5"],
    "phi": ["--gamma", "3", "--rival", "0.2"],
}


def test_help_names_every_kind_in_words_that_are_whole(capsys):
    assert main(["plot", "--help"]) == 0
    usage, text = capsys.readouterr().out.split("\n\n", 1)
    assert usage == "Usage: equipoise plot [OPTIONS] KIND [RUNS]..."
    assert {*PLOTS, *NEEDS_NO_RUNS} <= set(re.findall(r"\w+", text.split("Options:")[0]))


@pytest.mark.parametrize("kind", sorted(PLOTS))
def test_every_kind_draws_runs(kind, runs, tmp_path, capsys):
    target = tmp_path / "x.svg"
    assert main(["plot", kind, runs, "-o", str(target), *MORE.get(kind, [])]) == 0
    assert capsys.readouterr().out.strip() == str(target)
    assert "<svg" in target.read_text()


@pytest.mark.parametrize("words", [["plot", "reliability"], ["report"]])
def test_diagrams_and_reports_of_runs_take_other_bins(words, runs, tmp_path):
    usual, other = (tmp_path / f"{name}.{'svg' if len(words) > 1 else 'html'}" for name in ("usual", "other"))
    assert main([*words, runs, "-o", str(usual), "--quiet"]) == 0
    assert main([*words, runs, "--bins", "25", "-o", str(other), "--quiet"]) == 0
    assert usual.read_text() != other.read_text()


@pytest.mark.parametrize("kind", sorted(NEEDS_NO_RUNS))
@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_theory_needs_no_runs(kind, ending, tmp_path):
    target = tmp_path / f"x.{ending}"
    assert main(["plot", kind, "-o", str(target), "--quiet", *MORE.get(kind, [])]) == 0
    assert target.read_bytes()[:4] in (b"\x89PNG", b"%PDF")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["plot", "phi", "RUNS"], "takes no runs"),
        (["plot", "bars"], "needs a folder of runs"),
        (["plot", "bars", "RUNS", "-o", "x.gif"], "must end in"),
        (["plot", "bars", "RUNS", "--metric", "eec"], "did you mean 'ece'"),
        (
            ["plot", "hyperparameter", "RUNS", "--parameter", "margin"],
            "expected in --parameter a hyperparameter",
        ),
        (["plot", "dial", "RUNS"], "'dial' is not one of"),
        (["plot", "shift", "RUNS", "--corruption", "contrst"], "did you mean 'contrast'"),
        (["plot", "history", "RUNS", "--column", "tune_eec"], "did you mean 'tune_ece'"),
        (["plot", "bars", "RUNS", "--calibrator", "vector"], "vector"),
        (["plot", "reliability", "RUNS", "--calibrator", "vector"], "no run was scored after 'vector'"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_2(words, sentence, runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([runs if word == "RUNS" else word for word in words]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
