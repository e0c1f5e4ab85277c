"""`equipoise calibrate` and `equipoise apply`: the whole path without Python."""

import json

import numpy as np
import pytest

from equipoise import Predictions, read_predictions, score, write_predictions
from equipoise.calibrators import artifact, load
from equipoise.cli import main
from helpers.command_line import run


def rows(seed, *, split=None, n=1500):
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(n, 4))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": np.arange(n) % 3}
    return Predictions(
        logits=2.5 * logits, labels=labels, split=split, class_names=list("wxyz"), groups=groups
    )


@pytest.fixture
def paths(tmp_path):
    write_predictions(rows(0, split="calib"), tmp_path / "calib.npz")
    write_predictions(rows(1, split="test"), tmp_path / "test.npz")
    return tmp_path


@pytest.mark.parametrize("method", ["temperature", "vector", "isotonic"])
@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet", ".safetensors"])
def test_the_whole_path(method, ending, paths, capsys):
    fitted, out = paths / "map.json", paths / f"out{ending}"
    assert run(capsys, "calibrate", paths / "calib.npz", "-o", fitted, "--method", method)[0] == 0
    assert run(capsys, "apply", fitted, paths / "test.npz", "-o", out)[0] == 0
    before, after = read_predictions(paths / "test.npz"), read_predictions(out)
    assert after.split == "test"
    assert after.class_names == ("w", "x", "y", "z")
    assert after.groups["site"].tolist() == before.groups["site"].tolist()
    assert score(after, n_resamples=5)["nll"].value < score(before, n_resamples=5)["nll"].value - 0.1
    np.testing.assert_allclose(after.probs, load(fitted)(before).probs, atol=1e-6)


@pytest.mark.parametrize("rule", ["one_standard_error", "best"])
def test_a_rule_of_the_choice(rule, paths, capsys):
    words = ("calibrate", paths / "calib.npz", "-o", paths / "map.json", "--rule", rule, "--json")
    code, out, _ = run(capsys, *words)
    trials = json.loads(out)["trials"]
    best = min((one for one in trials if "left out" not in one["note"]), key=lambda one: one["log_loss"])
    assert code == 0
    assert rule != "best" or json.loads(out)["method"] == best["name"]
    code, out, err = run(capsys, *words, "--method", "platt")
    assert (code, out) == (2, "")
    assert "--rule needs --method auto" in err


def test_an_array_of_scores_alone_is_calibrated_beside_itself(paths, capsys):
    fitted = paths / "map.json"
    np.save(paths / "logits.npy", rows(2).logits)
    assert run(capsys, "calibrate", paths / "calib.npz", "-o", fitted, "--method", "temperature")[0] == 0
    code, told, _ = run(capsys, "apply", fitted, paths / "logits.npy")
    assert (
        code,
        told.endswith("logits.calibrated.npz, with logits calibrated by temperature. They have no labels.\n"),
    ) == (
        0,
        True,
    )
    after = read_predictions(paths / "logits.calibrated.npz")
    np.testing.assert_allclose(after.probs, load(fitted)(rows(2)).probs, atol=1e-6)
    code, _, told = run(capsys, "apply", fitted, paths / "logits.npy")
    assert (code, "already exists" in told) == (2, True)
    code, _, told = run(capsys, "apply", fitted, paths / "logits.npy", paths / "labels.npy")
    assert (code, "need --output" in told) == (2, True)


def test_rows_without_labels_are_calibrated_but_not_scored(paths, capsys):
    fitted, out = paths / "map.json", paths / "out.npz"
    np.savez(paths / "production.npz", logits=rows(2).logits)
    assert run(capsys, "calibrate", paths / "calib.npz", "-o", fitted, "--method", "temperature")[0] == 0
    code, told, _ = run(capsys, "apply", fitted, paths / "production.npz", "-o", out)
    assert (code, told.endswith("calibrated by temperature. They have no labels.\n")) == (0, True)
    np.testing.assert_allclose(read_predictions(out).probs, load(fitted)(rows(2)).probs, atol=1e-6)
    for command in ("score", "audit", "report"):
        code, _, told = run(capsys, command, out)
        assert (code, "out.npz: holds no labels under a known name" in told) == (2, True)
    assert run(capsys, "calibrate", paths / "production.npz", "-o", fitted)[0] == 2


def test_auto_chooses_and_says_why(paths, capsys):
    code, out, _ = run(capsys, "calibrate", paths / "calib.npz", "-o", paths / "map.json")
    assert code == 0
    assert "expected gain in log-loss" in out
    assert "overconfident: divide logits by 2." in out
    assert "equipoise apply" in out


def test_json(paths, capsys):
    code, out, _ = run(capsys, "calibrate", paths / "calib.npz", "-o", paths / "map.json", "--json")
    content = json.loads(out)
    assert code == 0
    assert content["method"] == load(paths / "map.json").kind
    assert content["nll_after"] < content["nll_before"]
    assert {trial["name"] for trial in content["trials"]} >= {"identity", "temperature"}
    words = ["apply", paths / "map.json", paths / "test.npz", "-o", paths / "out.npz", "--json"]
    assert json.loads(run(capsys, *words)[1])["n_samples"] == 1500


def test_quiet_apply_says_nothing(paths, capsys):
    words = ["calibrate", paths / "calib.npz", "-o", paths / "map.json", "--method", "temperature", "-q"]
    assert run(capsys, *words)[0] == 0
    words = ["apply", paths / "map.json", paths / "test.npz", "-o", paths / "out.npz", "-q"]
    assert run(capsys, *words) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["calibrate", "{test}", "-o", "{out}.json"], "which only judges"),
        (["calibrate", "{calib}", "-o", "{out}.pkl"], ".json or .safetensors"),
        (["calibrate", "{calib}", "-o", "{out}/deep/map.json"], "does not exist"),
        (
            ["calibrate", "{calib}", "-o", "{out}.json", "--method", "temprature"],
            "did you mean 'temperature'",
        ),
        (["calibrate", "{calib}"], "--output"),
        (["apply", "{out}.json", "{test}", "-o", "{out}.npz"], "cannot be read"),
        (["apply", "{calib}", "{test}", "-o", "{out}.npz"], "not a saved calibrator"),
        (["apply", "{calib}", "{test}", "-o", "{out}.xls"], "must end in"),
    ],
)
def test_mistakes_leave_nothing_behind(words, sentence, paths, capsys):
    names = {"calib": paths / "calib.npz", "test": paths / "test.npz", "out": paths / "out"}
    before = sorted(paths.iterdir())
    code, out, err = run(capsys, *(word.format(**names) for word in words))
    assert (code, out) == (2, "")
    assert sentence in err
    assert sorted(paths.iterdir()) == before


def test_another_number_of_classes_is_refused(paths, capsys):
    write_predictions(Predictions(logits=np.eye(3), labels=[0, 1, 2]), paths / "three.npz")
    assert (
        main(["calibrate", str(paths / "calib.npz"), "-o", str(paths / "map.json"), "--method", "vector"])
        == 0
    )
    capsys.readouterr()
    code, _, err = run(capsys, "apply", paths / "map.json", paths / "three.npz", "-o", paths / "out.npz")
    assert code == 2
    assert "must have 4 classes" in err


def test_apply_neither_overwrites_its_input_nor_calibrates_twice_unless_forced(paths, capsys):
    fitted, test, out = paths / "map.json", paths / "test.npz", paths / "out.npz"
    assert run(capsys, "calibrate", paths / "calib.npz", "-o", fitted, "--method", "temperature")[0] == 0
    raw = test.read_bytes()
    code, _, complaint = run(capsys, "apply", fitted, test, "-o", test)
    assert code == 2
    assert "is the input itself" in complaint
    assert "--force" in complaint
    assert test.read_bytes() == raw
    assert run(capsys, "apply", fitted, test, "-o", out)[0] == 0
    code, _, complaint = run(capsys, "apply", fitted, out, "-o", paths / "twice.npz")
    assert code == 2
    assert "was applied to these predictions already" in complaint
    assert not (paths / "twice.npz").exists()
    assert run(capsys, "apply", fitted, out, "-o", out, "--force")[0] == 0


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet", ".safetensors"])
@pytest.mark.parametrize("early", [False, True])
def test_rows_known_by_ids_are_not_calibrated_twice_either(ending, early, paths, capsys):
    fitted, out = paths / "map.json", paths / f"out{ending}"
    assert run(capsys, "calibrate", paths / "calib.npz", "-o", fitted, "--method", "temperature")[0] == 0
    if early:  # files of early versions know no rows
        content = json.loads(fitted.read_text())
        del content["rows"]
        fitted.write_text(json.dumps(content | {"checksum": artifact._checksum(content)}))
    named = rows(1, n=200)
    np.savez(paths / "named.npz", logits=named.logits, labels=named.labels, key=np.arange(200))
    assert run(capsys, "apply", fitted, paths / "named.npz", "-o", out, "--ids", "key")[0] == 0
    code, _, complaint = run(capsys, "apply", fitted, out, "-o", paths / "twice.npz")
    assert (code, "was applied to these predictions already" in complaint) == (2, True)


def test_one_file_is_divided_fitted_on_and_judged(paths, capsys):
    fitted, source = paths / "map.json", paths / "test.npz"
    words = ["calibrate", source, "-o", fitted, "--method", "temperature", "--holdout", "0.3"]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "Fitted on 1,050 rows, scored on 450 others (seed 0), before (first) and after (second):" in out
    code, out, _ = run(capsys, *words, "--json")
    told = json.loads(out)["holdout"]
    assert (told["seed"], told["n_fit"], told["n_judged"]) == (0, 1050, 450)
    nll = next(row for row in told["differences"] if row["metric"] == "nll")
    assert nll["verdict"] == "better"
    # The calibrator knows what it was fitted on: the whole file cannot judge it.
    assert run(capsys, "apply", fitted, source, "-o", paths / "all.npz")[0] == 0
    code, _, err = run(capsys, "score", paths / "all.npz")
    assert (code, "1050 of 1500 rows were used to fit" in err) == (2, True)


@pytest.mark.parametrize("share", ["0", "1", "1.5", "x"])
def test_a_share_is_between_none_and_all(share, paths, capsys):
    source = paths / "calib.npz"
    assert run(capsys, "calibrate", source, "-o", paths / "map.json", "--holdout", share)[0] == 2
    assert run(capsys, "report", source, "-o", paths / "page.md", "--calib-share", share)[0] == 2
    assert not (paths / "map.json").exists()
