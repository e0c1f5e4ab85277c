"""`equipoise audit`: what it prints, what its gates say, and how it exits."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from equipoise import Predictions, read_predictions, write_predictions
from equipoise.cli import main
from equipoise.core.errors import DataError
from equipoise.evaluate import audit
from equipoise.metrics import CalibrationState
from helpers.command_line import run

#: A folder with outputs of published networks; the files and their published numbers are listed below.
OUTPUTS = os.environ.get("EQUIPOISE_OUTPUTS")


def rows(n=1200, seed=0, *, temperature=0.5, **extra):
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(n, 3))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": np.array(["north", "south"])[np.arange(n) % 2]}
    return Predictions(**{"logits": logits / temperature, "labels": labels, "groups": groups} | extra)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "predictions.npz"
    write_predictions(rows(), path)
    return str(path)


def test_json_is_what_the_library_says(file, capsys):
    code, out, err = run(capsys, "audit", file, "--json", "--resamples", "50", "--bins", "10", "--seed", "4")
    content = json.loads(out)
    expected = audit(read_predictions(file), n_bins=10, n_resamples=50, seed=4).to_dict()
    assert (code, err) == (0, "")
    assert content.pop("files") == [file]
    assert content.pop("gates") == []
    assert content.pop("passed") is True
    assert content == json.loads(json.dumps(expected).replace("NaN", "null"))


def test_text_has_verdict_scores_slices_and_no_escapes_in_a_pipe(file, capsys):
    code, out, _ = run(capsys, "audit", file, "--by", "site", "--resamples", "50")
    assert code == 0
    assert "Overconfident by" in out
    assert "Groups by site: 2 of 2 are off" in out
    assert "north" in out
    assert "\x1b" not in out


class Terminal(io.StringIO):
    """Text that claims to be shown."""

    encoding = "utf-8"

    def isatty(self):
        return True


def test_a_terminal_gets_colors(file, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    code = main(["audit", file, "--resamples", "20", "--max", "ece=0.01"])
    text = sys.stdout.getvalue()
    assert code == 1
    assert "\x1b[33m\x1b[1m" in text
    assert "north" in text
    assert "FAIL" in text


def test_hostile_names_stay_text_on_a_terminal(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    names = ["\x1b[2Jgone", "[bold]loud[/bold]", "a\nb"]
    write_predictions(rows(class_names=names, groups={}), path)
    monkeypatch.setattr(sys, "stdout", Terminal())
    main(["audit", str(path), "--resamples", "20"])
    text = sys.stdout.getvalue()
    assert "\x1b[2J" not in text
    assert "[bold]loud[/bold]" in text


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["--max", "ece=0.5"], 0),
        (["--max", "ece=50%"], 0),
        (["--max", "ece=0.01"], 1),
        (["--max", "nll=5", "--max", "ece=0.01"], 1),
        (["--min", "accuracy=0.4"], 0),
        (["--min", "accuracy=99%"], 1),
        (["--max", "ece=0.5", "--min", "auroc=0.999"], 1),
    ],
)
def test_limits_decide_the_exit_code(gates, code, file, capsys):
    found, out, err = run(capsys, "audit", file, "--resamples", "50", *gates)
    assert found == code
    assert ("FAIL" in out) == bool(code)
    assert err == ""


def test_the_bound_decides_which_number_is_compared(file, capsys):
    ece = audit(read_predictions(file), n_resamples=50).card["ece"]
    between = f"ece={(ece.value + ece.high) / 2}"
    assert run(capsys, "audit", file, "--resamples", "50", "--max", between)[0] == 1
    assert run(capsys, "audit", file, "--resamples", "50", "--max", between, "--bound", "value")[0] == 0


def test_a_failed_gate_fails_whether_or_not_its_words_are_read(file):
    reader, writer = os.pipe()
    os.close(reader)
    words = ["audit", file, "--resamples", "50", "--max", "ece=0.01"]
    done = subprocess.run([sys.executable, "-m", "equipoise", *words], stdout=writer, check=False)
    os.close(writer)
    assert done.returncode == 1


def test_a_failed_gate_is_told_in_json(file, capsys):
    code, out, _ = run(capsys, "audit", file, "--json", "--resamples", "50", "--max", "ece=0.01")
    content = json.loads(out)
    assert code == 1
    assert content["passed"] is False
    assert "above the limit of 1%" in content["gates"][0]["text"]


def test_against_a_baseline(tmp_path, capsys):
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    write_predictions(rows(temperature=1.0), good)
    write_predictions(rows(temperature=0.25), bad)
    words = ["--resamples", "100", "--not-worse", "ece", "--not-worse", "accuracy=1%"]
    code, out, _ = run(capsys, "audit", str(good), "--against", str(bad), *words)
    assert code == 0
    assert "  better" in out
    code, out, _ = run(capsys, "audit", str(bad), "--against", str(good), *words)
    assert code == 1
    assert "FAIL  ECE is worse than the baseline's by" in out


def test_rows_are_read_and_summed_once_with_a_report_too(file, tmp_path, capsys, monkeypatch):
    seen = []
    add = CalibrationState._add
    monkeypatch.setattr(
        CalibrationState, "_add", lambda self, part, sums: (seen.append(len(part)), add(self, part, sums))[1]
    )
    run(capsys, "audit", file, "--report", str(tmp_path / "report.html"), "--resamples", "20")
    assert sum(seen) == len(read_predictions(file))


def test_a_report_beside_the_audit(file, tmp_path, capsys):
    path = tmp_path / "report.html"
    code, out, _ = run(capsys, "audit", file, "--report", str(path), "--resamples", "20", "--max", "ece=0.01")
    assert code == 1
    assert "FAIL" in out
    assert "<html" in path.read_text()[:500]
    words = ["--against", file, "--report", str(tmp_path / "both.md"), "--resamples", "20", "--json"]
    assert json.loads(run(capsys, "audit", file, *words)[1])["comparison"]
    assert "baseline" in (tmp_path / "both.md").read_text()


def test_files_and_patterns_are_one_stream(tmp_path, capsys):
    data = rows()
    for number, part in enumerate(data.blocks(500)):
        write_predictions(part, tmp_path / f"part-{number}.npz")
    whole = audit(data, n_resamples=50)
    parts = sorted(str(path) for path in tmp_path.glob("part-*.npz"))
    for words in ([str(tmp_path / "part-*.npz")], parts):
        code, out, _ = run(capsys, "audit", *words, "--json", "--resamples", "50")
        content = json.loads(out)
        assert code == 0
        assert content["settings"]["n_samples"] == 1200
        assert content["scores"]["ece"]["value"] == pytest.approx(whole.card["ece"].value, abs=1e-12)


def test_columns_are_named(tmp_path, capsys):
    data, path = rows(), tmp_path / "own.npz"
    np.savez(path, scores=data.logits, truth=data.labels, region=data.groups["site"])
    code, _, err = run(capsys, "audit", str(path))
    assert code == 2
    assert "--logits 'scores' or --probs 'scores'" in err
    words = ["--logits", "scores", "--labels", "truth", "--by", "region", "--resamples", "20"]
    code, out, _ = run(capsys, "audit", str(path), *words)
    assert code == 0
    assert "Groups by region" in out


def test_columns_of_classes_by_list_or_pattern(tmp_path, capsys):
    probs, path = rows().probs, tmp_path / "own.csv"
    lines = [f"{p[0]},{p[1]},{p[2]},{y}" for p, y in zip(probs, rows().labels, strict=True)]
    path.write_text("s_0,s_1,s_2,truth\n" + "\n".join(lines))
    for named in ("s_*", "s_0, s_1, s_2"):
        words = ["--probs", named, "--labels", "truth", "--json", "--resamples", "20"]
        code, out, _ = run(capsys, "audit", str(path), *words)
        assert code == 0
        assert json.loads(out)["settings"]["n_classes"] == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--max", "ecee=0.1"], "did you mean 'ece'"),
        (["--max", "tace=0.1"], "no scorecard has it; equipoise.metrics.thresholded_adaptive"),
        (["--max", "ece"], "ece=0.03 or ece=3%"),
        (["--max", "ece=much"], "ece=0.03 or ece=3%"),
        (["--max", "ece=nan"], "ece=0.03 or ece=3%"),
        (["--max", "ece=3"], "ece=3%"),
        (["--max", "top5_accuracy=0.5"], "five classes or fewer"),
        (["--not-worse", "ece"], "--against"),
        (["--by", "sight"], "no column 'sight'"),
        (["--bins", "0"], "--bins"),
        (["--level", "1"], "--level"),
        (["--resamples", "0"], "--resamples"),
        (["--against", "nowhere.npz"], "nowhere.npz"),
        (["--report", "report.pdf"], "must end in .html"),
        (["--report", "no/such/folder/report.html"], "does not exist"),
    ],
)
def test_mistakes(words, sentence, file, capsys):
    code, out, err = run(capsys, "audit", file, *words)
    assert code == 2
    assert out == ""
    assert sentence in err


def test_rows_that_fitted_the_calibrator_are_refused(tmp_path, capsys):
    raw, fitted, out = (str(tmp_path / name) for name in ("calib.npz", "map.json", "out.npz"))
    write_predictions(rows(), raw)
    assert main(["calibrate", raw, "-o", fitted, "--method", "temperature", "-q"]) == 0
    assert main(["apply", fitted, raw, "-o", out]) == 0
    code, _, err = run(capsys, "audit", out)
    assert code == 2
    assert len(err.splitlines()) == 1


#: Some sources computed in single precision, and some rounded; the tolerances are theirs.
PUBLISHED = {
    "resnet20_cifar10_test_logits.npz": (["accuracy"], [1 - 0.0827], 1e-9, 15),
    "resnet44_cifar10_test_logits.npz": (["accuracy"], [1 - 0.0690], 1e-9, 15),
    "wideresnet-16-4-cifar-10.npz": (["ece"], [0.05372], 5e-6, 15),
    # The source rounds 0.142153 up.
    "densenet-bc-100-cifar-100.npz": (["ece"], [0.14216], 1e-5, 15),
    "resnet110_cifar10_top1.csv": (["ece", "mce"], [0.047503518641, 0.295798957348], 5e-7, 15),
    "densenet40_cifar100_top1.csv": (["ece", "mce"], [0.211562852757, 0.45400331452], 5e-7, 15),
    "resnet101_imagenet_top1.csv": (["ece"], [0.0491], 5e-5, 10),
}


@pytest.mark.reference
@pytest.mark.skipif(not OUTPUTS, reason="EQUIPOISE_OUTPUTS names no folder with outputs of networks")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers(name, capsys):
    keys, values, tolerance, n_bins = PUBLISHED[name]
    path = Path(str(OUTPUTS)) / name
    words = ["--json", "--resamples", "20", "--bins", str(n_bins)]
    code, out, _ = run(capsys, "audit", str(path), *words)
    scores = json.loads(out)["scores"]
    assert code == 0
    for key, value in zip(keys, values, strict=True):
        assert scores[key]["value"] == pytest.approx(value, abs=tolerance)


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (["--min", "accuracy=-1"], "expected a number from 0% to 100%"),
        (["--min", "accuracy=101%"], "expected a number from 0% to 100%"),
        (["--max", "nll=-1"], "expected a number at least 0"),
        (["--max", "brier=3"], "expected a number from 0 to 2"),
        (["--max", "unheard=1"], "known: accuracy,"),
    ],
)
def test_limits_that_nothing_can_miss_or_keep_are_refused(gate, words, file, capsys):
    code, _, said = run(capsys, "audit", file, "--resamples", "20", *gate)
    assert code == 2
    assert words in said
    assert "seconds" not in said  # no scorecard has it, so it is not offered


def test_a_name_that_is_empty_is_not_the_folder_one_is_in(file, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, said = run(capsys, "audit", "")
    assert code == 2
    assert "the name of the file is empty" in said


def test_a_file_named_twice_is_refused(file, capsys):
    code, _, said = run(capsys, "audit", file, file)
    assert code == 2
    assert "is named twice" in said


def test_columns_named_twice_are_refused(tmp_path):
    for name, part in (("probs", rows().probs), ("labels", rows().labels)):
        np.save(tmp_path / f"{name}.npy", part)
    columns = {name: tmp_path / f"{name}.npy" for name in ("probs", "labels")}
    with pytest.raises(DataError, match="is named twice"):
        read_predictions([columns, dict(columns)])


def test_absent_classes_are_told_by_name(capsys, tmp_path):
    rows = "".join(f"{'ab'[n % 2]},{'abc'[n % 3]},0.9\n" for n in range(60))
    (tmp_path / "top1.csv").write_text("label,predicted,confidence\n" + rows)
    code, out, _ = run(capsys, "audit", str(tmp_path / "top1.csv"), "--resamples", "20")
    assert code == 0
    assert "1 of 3 classes never occur among the labels: c." in out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("label,p_1,p_3\n1,0.5,0.5\n", "--probs FIRST,SECOND,... or --logits FIRST,SECOND,..."),
        ("label,p_0,p_1,p_2\n0,0.33,0.33,0.33\n", "line 2 sums to 0.99. Rounded? Save more digits"),
        ("label,p_0,p_1,p_2\n0,48,3,0\n1,0,51,0\n", "Counts, such as votes? Divide every row by its sum."),
    ],
    ids=["columns with a gap", "rounded", "votes"],
)
def test_rows_that_are_no_probabilities_are_told_what_they_look_like(text, sentence, capsys, tmp_path):
    (tmp_path / "rows.csv").write_text(text)
    code, _, said = run(capsys, "audit", str(tmp_path / "rows.csv"))
    assert code == 2
    assert sentence in said
