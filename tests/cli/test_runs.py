"""``train``, ``compare``, ``runs``, ``table``, ``list`` and ``show`` as a shell sees them."""

import csv
import json
import os
import subprocess
import sys

import pytest

from equipoise.cli import main
from equipoise.cli.commands import load_command
from equipoise.experiments import find_runs
from equipoise.experiments.runs import folder
from equipoise.experiments.runs.scores import read_scores
from equipoise.training import hardware

SPEC = """
data = { name = "digits", options = { noise = 0.3 } }
model = { name = "mlp", options = { hidden = [16] } }
recipe = { name = "quick", epochs = 1 }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two methods on two kinds of data, compared once."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "run.toml").write_text(SPEC)
    (folder / "both.toml").write_text(
        'method = ["ce", "focal"]\nmodel = { name = "mlp", options = { hidden = [16] } }\n'
        'data = [{ name = "digits", options = { noise = 0.3 } }, { name = "digits", options = { noise = 0.1 } }]\n'
        'recipe = { name = "quick", epochs = 1 }\n'
    )
    words = ["--out", str(folder / "runs"), "--resamples", "20", "--workers", "1", "--quiet"]
    assert main(["compare", str(folder / "both.toml"), *words]) == 0
    return folder


def test_train_prints_only_json_if_asked(home, capsys):
    words = ["train", str(home / "run.toml"), "--out", str(home / "runs"), "--resamples", "20", "--json"]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert {row["calibrator"] for row in json.loads(captured.out)["scores"]} == {"identity", "temperature"}
    assert captured.err == ""


def test_memory_is_kept_unless_told_otherwise(home, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(hardware, "_keep_memory", lambda: asked.append(True))
    words = ["train", str(home / "run.toml"), "--resamples", "20", "--accelerator", "cpu", "--quiet", "--out"]
    assert main([*words, str(tmp_path / "back"), "--no-keep-memory"]) == 0
    assert not asked
    assert main([*words, str(tmp_path / "kept")]) == 0
    assert asked


def test_train_prints_scores_by_name_and_in_their_unit(home, capsys):
    words = ["train", str(home / "run.toml"), "--out", str(home / "runs"), "--resamples", "20"]
    assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    assert main([*words, "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for key, shown in (
        ("ece", "ECE {:.2f}% [{:.2f}, {:.2f}]"),
        ("nll", "negative log-likelihood {:.4f} [{:.4f}, {:.4f}]"),
    ):
        [row] = [
            row
            for row in rows
            if (row["split"], row["calibrator"], row["metric"]) == ("test", "temperature", key)
        ]
        scale = 100 if key == "ece" else 1
        wanted = shown.format(*(scale * row[name] for name in ("value", "low", "high")))
        assert f"temperature {wanted}" in [" ".join(line.split()) for line in lines]


def test_compare_and_table_print_only_json_if_asked(home, capsys):
    words = ["--out", str(home / "runs"), "--resamples", "20", "--workers", "1", "--json"]
    assert main(["compare", str(home / "both.toml"), *words]) == 0
    assert json.loads(capsys.readouterr().out)["failed"] == {}
    assert main(["table", str(home / "runs"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]


def test_json_of_a_comparison_holds_the_rows_of_its_file(home, capsys, monkeypatch):
    words = ["--out", str(home / "runs"), "--resamples", "20", "--workers", "1"]
    (home / "plain.toml").write_text(f"calibrators = []\n{(home / 'both.toml').read_text()}")
    reads = []
    monkeypatch.setattr(folder, "read_scores", lambda path: reads.append(path) or read_scores(path))
    assert main(["compare", str(home / "plain.toml"), *words, "--json"]) == 0
    assert len(reads) == len(set(reads)), "each score is read once"
    rows = json.loads(capsys.readouterr().out)["rows"]
    with (home / "runs" / "plain.results.csv").open(newline="") as stream:
        told = list(csv.DictReader(stream))
    keys = ("run", "data", "calibrator", "split", "metric", "chosen_as")
    assert [[row[key] for key in keys] for row in rows] == [[row[key] for key in keys] for row in told]
    assert {row["calibrator"] for row in rows} == {"identity"}, (
        "the calibrator of another comparison is no part of it"
    )
    assert {row["data"] for row in rows} == {"digits (noise=0.3)", "digits (noise=0.1)"}


def test_table_keeps_data_of_other_settings_apart(home, capsys):
    assert main(["table", str(home / "runs"), "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"digits (noise=0.3)", "digits (noise=0.1)"}


def test_report_on_two_kinds_of_data_is_one_json_document(home, capsys):
    words = ["report", str(home / "runs"), "-o", str(home / "report.html"), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["reports"]
    assert len(found) == 2
    assert len({report["report"] for report in found}) == 2


def test_a_failed_run_is_exit_1_named_and_cleaned(tmp_path, capsys):
    (tmp_path / "bad.toml").write_text(
        'data = "digits"\nmodel = "mlp"\nmethod = ["ce"]\n'
        'recipe = { name = "quick", epochs = 1, optimizer = "SGD", lr = 1e30 }\n'
    )
    runs = str(tmp_path / "runs")
    assert main(["compare", str(tmp_path / "bad.toml"), "--out", runs, "--workers", "1", "--quiet"]) == 1
    assert "stopped being finite" in capsys.readouterr().err
    assert main(["runs", runs, "--why"]) == 0
    assert "stopped being finite" in capsys.readouterr().out
    assert main(["runs", str(find_runs(runs)[0].path), "--clean", "--yes", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["removed"]) == 1
    assert find_runs(runs) == []


def test_a_failed_run_is_told_once(tmp_path, capsys):
    (tmp_path / "bad.toml").write_text(
        'data = "digits"\nmodel = "mlp"\nmethod = ["ce"]\n'
        'recipe = { name = "quick", epochs = 1, optimizer = "SGD", lr = 1e30 }\n'
    )
    assert (
        main(["compare", str(tmp_path / "bad.toml"), "--out", str(tmp_path / "runs"), "--workers", "1"]) == 1
    )
    told = capsys.readouterr().err
    assert told.count("stopped being finite") == 1
    assert told.endswith("1 of 1 runs failed; see above.\n")


@pytest.mark.parametrize(
    ("command", "resumes"), [("train", True), ("compare", True), ("demo", True), ("score", False)]
)
@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(143)], ids=["ctrl-c", "terminated"])
def test_a_stopped_command_says_whether_it_resumes(command, resumes, stop, monkeypatch, capsys):
    def interrupted(*args, **options):
        raise stop

    monkeypatch.setattr(load_command(command), "invoke", interrupted)
    words = [command] if command == "demo" else [command, "a.toml"]
    if isinstance(stop, SystemExit):
        with pytest.raises(SystemExit):
            main(words)
    else:
        assert main(words) == 130
    assert ("run the same command again" in capsys.readouterr().err) == resumes


def test_a_broken_run_is_named(tmp_path, home, capsys):
    assert (
        main(["train", str(home / "run.toml"), "--out", str(tmp_path), "--resamples", "20", "--quiet"]) == 0
    )
    [run] = find_runs(tmp_path)
    (run.path / "predictions" / "test.npz").write_bytes(b"PK")
    capsys.readouterr()
    assert main(["runs", str(tmp_path), "--why"]) == 0
    printed = capsys.readouterr().out
    assert "broken" in printed
    assert "test.npz: damaged" in printed


def test_a_renamed_run_is_never_cleaned_away(tmp_path, home, capsys):
    assert (
        main(["train", str(home / "run.toml"), "--out", str(tmp_path), "--resamples", "20", "--quiet"]) == 0
    )
    [run] = find_runs(tmp_path)
    run.path.rename(tmp_path / "the-good-one")
    assert main(["runs", str(tmp_path), "--clean", "--yes"]) == 0
    assert (tmp_path / "the-good-one" / "spec.toml").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compare", "{home}/both.toml", "--address", "auto"], "--address needs --engine ray"),
        (["compare", "{home}/both.toml", "--engine", "ray", "--workers", "2"], "--workers needs"),
        (["train", "{home}/run.toml", "--calibrator", "temprature"], "did you mean 'temperature'"),
        (["train", "{home}/run.toml", "--set", "recipe.epoch=1"], "run.toml.recipe: no key 'epoch'"),
        (["train", "{home}/both.toml"], "this is a comparison. Use `equipoise compare"),
        (["table", "{home}/runs", "--baseline", "focall"], "did you mean 'focal'"),
        (["table", "{home}/runs", "--metric", "eec"], "did you mean 'ece'"),
        (["report", "{home}/runs", "--baseline", "focall"], "did you mean 'focal'"),
        (["runs", "{home}/nowhere"], "no such folder"),
        (["list", "loses"], "did you mean 'losses'"),
        (["show", "focall"], "did you mean 'focal'"),
    ],
)
def test_mistakes_exit_2_with_a_sentence(home, words, sentence, capsys, monkeypatch):
    monkeypatch.chdir(home)
    assert main([word.format(home=home) for word in words]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("words", "code"), [(["list", "--json"], 0), (["--help"], 0), (["show", "focall"], 2)]
)
def test_a_reader_that_is_gone_changes_no_exit_code(words, code):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "equipoise", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == code
    assert bool(done.stderr) == (code == 2)


def test_a_standard_output_that_was_closed_is_no_failure():
    command = f"{sys.executable} -m equipoise list >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
