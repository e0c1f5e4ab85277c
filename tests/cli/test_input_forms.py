"""Files as people have them, through the commands."""

import json

import numpy as np
import pytest

from equipoise import read_predictions
from equipoise.cli import main

N = 600


def run(capsys, *words):
    code = main([str(word) for word in words])
    found = capsys.readouterr()
    return code, found.out, found.err


@pytest.fixture
def answers(tmp_path):
    """Confidences of a model that is too sure, as CSV and as JSON lines."""
    generator = np.random.default_rng(0)
    said = generator.choice([0.5, 0.7, 0.8, 0.9, 0.95], N)
    right = generator.random(N) < said - 0.15
    rows = [{"id": f"q{n}", "confidence": float(said[n]), "correct": bool(right[n])} for n in range(N)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{row['id']},{row['confidence']},{row['correct']},{n % 30}" for n, row in enumerate(rows)]
    (tmp_path / "a.csv").write_text("id,confidence,correct,author\n" + "\n".join(lines) + "\n")
    order = generator.permutation(N)
    shuffled = [f"{lines[n].split(',')[0]},{0.85 * said[n]:.4f},{int(right[n])}" for n in order]
    (tmp_path / "calmer.csv").write_text("id,confidence,judged\n" + "\n".join(shuffled) + "\n")
    return tmp_path


def test_every_command_reads_confidence_and_correct(answers, capsys):
    code, out, _ = run(capsys, "score", answers / "a.jsonl", "--json", "--resamples", 20)
    scores = json.loads(out)["scores"]
    assert code == 0
    assert {"ece", "correct_nll", "correct_brier"} <= set(scores)
    assert "nll" not in scores
    code, out, _ = run(
        capsys, "audit", answers / "a.csv", "--resamples", 50, "--save-state", answers / "a.state"
    )
    assert code == 0
    assert "Brier score of being right" in out
    assert "Predicted classes" not in out
    code, out, _ = run(capsys, "audit", answers / "a.state", "--resamples", 50, "--max", "correct_brier=0.1")
    assert code == 1
    assert "FAIL  Brier score of being right" in out
    code, out, _ = run(capsys, "report", answers / "a.csv", "-o", answers / "a.html", "--resamples", 50)
    assert code == 0
    assert "Brier score of being right" in (answers / "a.html").read_text()
    words = [
        "calibrate",
        answers / "a.csv",
        "--method",
        "isotonic",
        "--holdout",
        "0.5",
        "-o",
        answers / "m.json",
    ]
    code, out, _ = run(capsys, *words, "--json")
    assert code == 0
    assert json.loads(out)["holdout"]["n_judged"] == N / 2
    (answers / "new.jsonl").write_text('{"confidence": 0.9}\n')
    code, _, _ = run(capsys, "apply", answers / "m.json", answers / "new.jsonl", "-o", answers / "out.jsonl")
    assert code == 0
    assert read_predictions(answers / "out.jsonl").confidence[0] < 0.9


def test_a_gate_of_another_form_names_the_metric(answers, capsys):
    code, _, said = run(capsys, "audit", answers / "a.csv", "--max", "brier=0.2", "--resamples", 20)
    assert code == 2
    assert "'correct_brier' judges the confidence" in said


def test_names_of_columns_are_options(answers, capsys):
    code, _, said = run(capsys, "score", answers / "calmer.csv", "--resamples", 20)
    assert code == 2
    assert "--correct" in said
    assert run(capsys, "score", answers / "calmer.csv", "--correct", "judged", "--resamples", 20)[0] == 0


def test_rows_are_matched_by_id(answers, capsys, tmp_path):
    renamed = (answers / "calmer.csv").read_text().replace("judged", "correct")
    (answers / "b.csv").write_text(renamed)
    words = ["--ids", "id", "--resamples", 99]
    code, out, _ = run(
        capsys, "audit", answers / "a.csv", "--against", answers / "b.csv", *words, "--not-worse", "ece"
    )
    assert code == 1
    (accuracy,) = (line for line in out.splitlines() if line.startswith("accuracy") and "tie" in line)
    assert "+0.0000" in accuracy
    for command in (
        ["compare-files", f"a={answers / 'a.csv'}", f"b={answers / 'b.csv'}"],
        ["report", answers / "a.csv", answers / "b.csv", "-o", tmp_path / "r.html"],
    ):
        assert run(capsys, *command, *words)[0] == 0
    (answers / "less.csv").write_text(
        "".join(line + "\n" for line in renamed.splitlines() if not line.startswith("q7"))
    )
    for command in (
        ["audit", answers / "a.csv", "--against", answers / "less.csv"],
        ["compare-files", f"a={answers / 'a.csv'}", f"b={answers / 'less.csv'}"],
        ["report", answers / "a.csv", answers / "less.csv", "-o", tmp_path / "r.html"],
    ):
        code, _, said = run(capsys, *command, *words)
        assert code == 2
        assert "11 of 600 ids" in said or "same rows" in said
        assert "q7" in said or command[0] == "compare-files"


def test_missing_values_are_counted(answers, capsys):
    text = (answers / "a.csv").read_text().splitlines()
    text[3] = "q2,,True,1"
    (answers / "holes.csv").write_text("\n".join(text) + "\n")
    code, _, said = run(capsys, "audit", answers / "holes.csv")
    assert code == 2
    assert "line 4, column 'confidence'" in said
    assert "--drop-missing" in said
    words = [answers / "holes.csv", "--drop-missing", "--resamples", 20]
    assert "1 row with missing values" in run(capsys, "audit", *words)[1]
    for command in ("audit", "score"):
        assert json.loads(run(capsys, command, *words, "--json")[1])["n_dropped"] == 1
    words = [
        "calibrate",
        answers / "holes.csv",
        "--drop-missing",
        "--method",
        "platt",
        "-o",
        answers / "m.json",
    ]
    assert json.loads(run(capsys, *words, "--json")[1])["n_dropped"] == 1


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("confidence,correct\n85,1\n", "--percent"),
        ("p_0,p_1,p_2,y\n0.33,0.33,0.33,1\n", "--normalize"),
        ("p_0,p_1,y\n0.5,0.5,1\n0.5,0.5,2\n", "--first-label 1"),
        ("prob,y\n0.5,1\n0.5,-1\n0.5,0\n", "--ignore-index"),
        ("confidence,correct\n0.8,\n", "--drop-missing"),
        ("y,confidence\n1,0.8\n", "--correct 'y'"),
    ],
)
def test_errors_name_the_option(text, option, tmp_path, capsys):
    (tmp_path / "a.csv").write_text(text)
    code, _, said = run(capsys, "score", tmp_path / "a.csv")
    assert code == 2
    assert option in said


def test_clusters_are_held_out_as_wholes(tmp_path, capsys, monkeypatch):
    from equipoise.core.predictions import combine as module

    generator, sides = np.random.default_rng(0), []
    logits = generator.normal(size=(N, 2))
    labels = (logits + generator.gumbel(size=(N, 2))).argmax(1)
    np.savez(tmp_path / "a.npz", logits=3 * logits, labels=labels, author=np.arange(N) % 30)
    divided = module.divide

    def watched(*arguments, **options):
        sides.extend(divided(*arguments, **options))
        return sides

    monkeypatch.setattr(module, "divide", watched)
    words = ["--cluster", "author", "--calib-share", "0.4", "--resamples", 50]
    code, _, said = run(capsys, "report", tmp_path / "a.npz", "-o", tmp_path / "r.html", *words)
    assert code == 0, said
    ((fit, judged),) = sides
    assert len(fit) == 0.4 * N
    assert not set(fit.groups["author"]) & set(judged.groups["author"])


def test_the_command_of_a_report_keeps_flags(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("confidence,correct\n" + "85,1\n60,0\n,1\n" * 20)
    words = ["--percent", "--drop-missing", "--resamples", 20]
    assert run(capsys, "report", tmp_path / "a.csv", "-o", tmp_path / "r.html", *words)[0] == 0
    text = (tmp_path / "r.html").read_text()
    assert "--drop-missing --percent" in text
    assert "--percent True" not in text
