"""`equipoise auto`: predictions, tables, specs, and one-line errors."""

import json

import numpy as np
import pytest

from equipoise import Predictions, write_predictions
from equipoise.calibrators import load
from helpers.command_line import run

TRAIN = ("--set", "recipe.epochs=1", "--workers", "1", "--threads", "1")


@pytest.fixture
def predictions(tmp_path):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(1200, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    rows = Predictions(logits=3 * logits + np.array([0, 3, 0, -3]), labels=labels, split="calib")
    write_predictions(rows, tmp_path / "rows.npz")
    return tmp_path / "rows.npz"


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 400)
    features = rng.normal(size=(400, 3)) + labels[:, None]
    lines = [
        ",".join([*map(str, row), "yes" if label else "no"])
        for row, label in zip(features, labels, strict=True)
    ]
    (tmp_path / "table.csv").write_text("a,b,c,label\n" + "\n".join(lines))
    return tmp_path / "table.csv"


def test_predictions_get_a_calibrator(predictions, tmp_path, capsys):
    code, out, _ = run(capsys, "auto", predictions, "-o", tmp_path / "model", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["calibrator"] != "temperature"
    assert found["tests"][0]["interval"][0] > 0
    assert found["cost"] == {}
    assert load(found["artifact"]).kind == found["calibrator"]
    assert "How it was found" in (tmp_path / "model/report.html").read_text()
    code, out, _ = run(capsys, "auto", predictions, "-o", tmp_path / "model")
    assert code == 0
    assert f"Use {found['calibrator']}. On 600 held-out rows" in out
    assert "equipoise apply" in out


def test_a_table_and_a_network(table, tmp_path, capsys):
    words = ("auto", table, "--model", "mlp", "--budget", "2", "-o", tmp_path / "model", *TRAIN)
    code, out, err = run(capsys, *words)
    assert code == 0
    assert "best so far" in err
    assert "ensemble of 2 + temperature" in out
    assert "Cost: 2 trainings" in out
    assert (tmp_path / "model/model.safetensors").exists()


def test_a_spec_with_method_auto(table, tmp_path, capsys):
    text = f"""
method = {{ name = "auto", budget = 1 }}
model = "mlp"
recipe = {{ name = "quick", epochs = 1 }}
data = {{ name = "table", options = {{ path = "{table}" }} }}
"""
    (tmp_path / "mine.toml").write_text(text)
    code, out, _ = run(capsys, "auto", tmp_path / "mine.toml", "-o", tmp_path / "model", "--json")
    assert code == 0
    first = json.loads(out)
    assert first["cost"]["trainings"] == 1
    code, out, _ = run(capsys, "train", tmp_path / "mine.toml", "--out", tmp_path / "runs", "--json")
    assert code == 0
    second = json.loads(out)
    assert second["tried"] == first["tried"]
    assert second["artifact"] == str(tmp_path / "runs/mine/model.safetensors")
    code, _, err = run(capsys, "compare", tmp_path / "mine.toml", "--out", tmp_path / "runs")
    assert code == 2
    assert "Use `equipoise auto FILE`" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.npz",), "does not exist"),
        (("table.csv", "--model", "mpl"), "did you mean 'mlp'"),
        (("table.csv", "--model", "mlp", "--budget", "0"), "above 0"),
        (("table.csv", "--model", "mlp", "--budget", "soon"), "such as 5, 5runs"),
        (("inputs.npz",), "--model mlp"),
        (("rows.npz", "--budget", "3"), "name a network with --model"),
        (("few.npz",), "at least 60 held-out rows"),
        (("unlabeled.npz",), "labels"),
        (("test.npz",), "Choose on 'calib'"),
        (("table.csv", "--model", "mlp", "--set", 'data.label="lable"'), "did you mean"),
        (("table.csv", "--model", "sklearn:GausianNB"), "did you mean 'GaussianNB'"),
        (("rows.npz", "--address", "auto"), "--engine ray"),
    ],
)
def test_errors_are_one_line(words, message, predictions, table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("inputs.npz", x=rng.normal(size=(90, 2)), y=rng.integers(0, 2, 90))
    logits, labels = rng.normal(size=(90, 2)), rng.integers(0, 2, 90)
    write_predictions(Predictions(logits=logits[:20], labels=labels[:20]), "few.npz")
    write_predictions(Predictions(logits=logits), "unlabeled.npz")
    write_predictions(Predictions(logits=logits, labels=labels, split="test"), "test.npz")
    code, out, err = run(capsys, "auto", *words, "-o", "model")
    assert code == 2
    assert not out
    assert message.lower() in err.lower()
    assert "Traceback" not in err
    assert not (tmp_path / "model/auto.json").exists()


def test_list_and_show_mention_it(capsys):
    code, out, _ = run(capsys, "show", "auto")
    assert code == 0
    assert "equipoise auto DATA" in out
    assert json.loads(run(capsys, "show", "auto", "--json")[1])["entries"][0]["key"] == "auto"
    assert "equipoise show auto" in run(capsys, "list", "objectives")[1]
    assert "equipoise auto data.npz --model small_cnn --budget 30m" in run(capsys, "auto", "--help")[1]
