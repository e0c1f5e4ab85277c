"""`equipoise adapt`: known and estimated class frequencies from files, and one line for every mistake."""

import json

import numpy as np
import pytest

from equipoise.calibrators import PriorShift, load
from equipoise.cli import main
from equipoise.core import Predictions, read_predictions, write_predictions

NEW = [0.7, 0.2, 0.1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name, priors in (("calib", [1 / 3] * 3), ("today", NEW)):
        labels = rng.choice(3, size=3000, p=priors)
        logits = 3 * rng.normal(1.5 * np.eye(3)[labels], 1.0)
        write_predictions(
            Predictions(logits=logits, labels=labels if name == "calib" else None), tmp_path / f"{name}.npz"
        )
    monkeypatch.chdir(tmp_path)
    assert (
        main(["calibrate", "calib.npz", "--method", "temperature", "-o", "calibrator.json", "--quiet"]) == 0
    )
    return tmp_path


def test_known_priors(folder):
    (folder / "priors.json").write_text(json.dumps(NEW))
    assert main(["adapt", "calibrator.json", "--priors", "priors.json", "-o", "adapted.json"]) == 0
    adapted = load("adapted.json")
    assert isinstance(adapted, PriorShift)
    np.testing.assert_allclose(adapted.priors, NEW)


def test_class_weights_are_undone(folder):
    (folder / "priors.json").write_text(json.dumps({"0": 0.7, "1": 0.2, "2": 0.1}))
    (folder / "even.json").write_text(json.dumps([1, 1, 1]))
    words = ["--priors", "priors.json", "--trained-priors", "even.json", "-o", "adapted.safetensors"]
    assert main(["adapt", "calibrator.json", *words]) == 0
    expected = np.log(np.array(NEW) * 3)
    np.testing.assert_allclose(load("adapted.safetensors").result.parameters["log_ratio"], expected)


def test_unlabelled_rows_and_apply(folder, capsys):
    capsys.readouterr()
    assert (
        main(["adapt", "calibrator.json", "--unlabelled", "today.npz", "-o", "adapted.json", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    for key, frequency in zip("012", NEW, strict=True):
        low, high = found["priors"][key]["interval"]
        assert low <= frequency <= high
    assert main(["apply", "adapted.json", "today.npz", "-o", "out.npz", "--quiet"]) == 0
    np.testing.assert_allclose(read_predictions("out.npz").probs.mean(axis=0), NEW, atol=0.03)


def test_reference_rows_correct_the_estimate(folder, capsys):
    capsys.readouterr()
    words = ["--unlabelled", "today.npz", "--reference", "calib.npz", "-o", "adapted.json"]
    assert main(["adapt", "calibrator.json", *words]) == 0
    shown = capsys.readouterr()
    assert "95% interval" in shown.out
    assert shown.err == ""
    assert main(["adapt", "calibrator.json", "--unlabelled", "today.npz", "-o", "adapted.json"]) == 0
    assert "Warning: the interval treats the calibrator as exact" in capsys.readouterr().err
    assert main(["adapt", "calibrator.json", "--unlabelled", "calib.npz", "-o", "same.json"]) == 0
    assert "no change is shown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "either --priors or --unlabelled"),
        (["--priors", "zero.json", "--reference", "calib.npz"], "--reference needs --unlabelled"),
        (
            ["--unlabelled", "today.npz", "--reference", "calib.npz", "--trained-priors", "zero.json"],
            "either --reference or --trained-priors",
        ),
        (["--unlabelled", "today.npz", "--reference", "today.npz"], "are among the reference rows"),
        (["--unlabelled", "calibrated.npz"], "a calibrator was applied to these predictions already"),
        (["--priors", "missing.json"], "missing.json' does not exist"),
        (["--priors", "bad.json"], "one share or count per class"),
        (["--priors", "zero.json"], "above 0"),
        (
            ["--priors", "named.json"],
            "expected the classes 0, 1, 2, got cat, dog, cow. Name the classes in order",
        ),
        (["--priors", "named.json", "--class-names", "cat,dog"], "--class-names must have 3 names, got 2"),
        (
            ["--priors", "short.json"],
            "`priors` and `trained_priors` must have equally many classes, got 2 and 3",
        ),
        (["--priors", "sum.json"], "shares that sum to 0.9"),
        (["--priors", "twice.json"], "a class is named twice"),
    ],
)
def test_mistakes_are_one_line(folder, words, message, capsys):
    (folder / "bad.json").write_text('"even"')
    (folder / "zero.json").write_text("[1, 1, 0]")
    (folder / "named.json").write_text('{"cat": 1, "dog": 1, "cow": 1}')
    (folder / "short.json").write_text("[1, 1]")
    (folder / "sum.json").write_text("[0.6, 0.2, 0.1]")
    (folder / "twice.json").write_text('{"0": 1, "1": 1, "2": 1, "2": 5}')
    assert main(["apply", "calibrator.json", "today.npz", "-o", "calibrated.npz", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["adapt", "calibrator.json", *words, "-o", "adapted.json"]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


def test_frequencies_by_name(folder):
    (folder / "priors.json").write_text(json.dumps({"dog": 0.2, "cow": 0.1, "cat": 0.7}))
    words = ["--priors", "priors.json", "--class-names", "cat,dog,cow", "-o", "adapted.json", "--quiet"]
    assert main(["adapt", "calibrator.json", *words]) == 0
    np.testing.assert_allclose(load("adapted.json").priors, NEW)


def test_probabilities_that_need_no_calibrator(folder, capsys):
    assert main(["calibrate", "calib.npz", "--method", "identity", "-o", "same.json", "--quiet"]) == 0
    words = [
        "adapt",
        "same.json",
        "--unlabelled",
        "today.npz",
        "--reference",
        "calib.npz",
        "-o",
        "adapted.json",
    ]
    assert main(words) == 2
    assert "--calibrated" in capsys.readouterr().err
    assert main([*words, "--calibrated"]) == 0
    assert isinstance(load("adapted.json"), PriorShift)
    (folder / "priors.json").write_text(json.dumps(NEW))
    assert main(["adapt", "same.json", "--priors", "priors.json", "--calibrated", "-o", "other.json"]) == 2
    assert "--calibrated needs --unlabelled" in capsys.readouterr().err
