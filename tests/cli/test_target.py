"""What is judged on the command line: targets, trends, gates of groups, and advice that names the user's files."""

import html
import json
import shlex

import numpy as np
import pytest

from equipoise import Predictions, write_predictions
from equipoise.cli import main
from helpers.command_line import run

FEW = ("--resamples", "60")


def fraud(seed=0, n=1500):
    rng = np.random.default_rng(seed)
    z = 1.1 * rng.normal(size=n) - 4.4
    labels = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-z - 3.4))
    return p, labels


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p, labels = fraud()
    lines = ["id,p_legit,p_fraud,label,site"]
    for row, (one, label) in enumerate(zip(p, labels, strict=True)):
        lines.append(f"r{row},{1 - one},{one},{['legit', 'fraud'][label]},{'ab'[row % 2]}")
    (tmp_path / "fraud.csv").write_text("\n".join(lines))
    return tmp_path


def test_a_rare_event_is_judged_first_and_gates_hold_both_views(place, capsys):
    code, out, _ = run(capsys, "audit", "fraud.csv", "--max", "ece=15%", "-q", *FEW)
    assert code == 1
    assert out.startswith("P(fraud) is too high by")
    assert "Predicted class: underconfident by" in out
    assert "PASS  ECE of the predicted class may be as high as" in out
    assert "FAIL  ECE of P(fraud) may be as high as" in out
    assert run(capsys, "audit", "fraud.csv", "--max", "ece=15%", "--target", "top", "-q", *FEW)[0] == 0


def test_every_line_names_the_positive_class(place, capsys):
    code, out, _ = run(capsys, "score", "fraud.csv", "--positive", "fraud", *FEW)
    assert code == 0
    for words in ("ECE of P(fraud)", "Brier score of P(fraud)", "AUROC of P(fraud)", "log-loss of P(fraud)"):
        assert words in out
    assert "underconfident" not in out


def test_json_says_what_numbers_are_of(place, capsys):
    both = json.loads(run(capsys, "audit", "fraud.csv", "--json", "--max", "ece=15%", *FEW)[1])
    assert both["target"]["kind"] == "top"
    assert both["event"]["target"] == {"kind": "positive", "positive": 1, "name": "fraud"}
    assert [gate["target"] for gate in both["gates"]] == ["top", "P(fraud)"]
    one = json.loads(run(capsys, "score", "fraud.csv", "--json", "--target", "positive", *FEW)[1])
    assert one["scores"]["ece"]["value"] == pytest.approx(both["event"]["scores"]["ece"]["value"])


def test_states_are_judged_merged_and_compared_for_the_event(place, capsys):
    assert run(capsys, "audit", "fraud.csv", "--save-state", "a.state", "-q", *FEW)[0] == 0
    p, labels = fraud(1)
    probs = np.stack([1 - p / 10, p / 10], axis=1)
    other = Predictions(probs=probs, labels=labels, class_names=["legit", "fraud"])
    write_predictions(other, "other.npz")
    run(capsys, "audit", "other.npz", "--save-state", "b.state", "-q", *FEW)
    words = ("--target", "positive", "--not-worse", "ece", "-q", *FEW)
    code, out, _ = run(capsys, "audit", "a.state", "--against", "b.state", *words)
    assert code == 1
    assert "FAIL  ECE of P(fraud) is worse than the baseline's" in out
    assert run(capsys, "audit", "b.state", "--against", "a.state", *words)[0] == 0
    assert run(capsys, "merge", "a.state", "b.state", "-o", "all.state")[0] == 0
    assert "ECE of P(fraud)" in run(capsys, "score", "all.state", "--target", "positive", *FEW)[1]
    code, _, err = run(capsys, "audit", "all.state", "--positive", "legit")
    assert code == 2
    assert "keeps sums of P(fraud), not of P(legit). Sum the rows again with --positive" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--positive", "frued"), "did you mean 'fraud'"),
        (("--target", "top", "--positive", "fraud"), "--positive names the class of target 'positive'"),
        (("--target", "classwise", "--by", "site"), "Leave --by out"),
        (("--worst-group", "--by", "site"), "--worst-group needs a limit"),
        (("--worst-group", "--max", "ece=3%"), "with --by"),
        (("--worst-group", "--max", "nll=1", "--by", "site"), "not known for each group"),
    ],
)
def test_mistakes_are_one_sentence(place, capsys, words, told):
    code, out, err = run(capsys, "audit", "fraud.csv", *words, *FEW)
    assert (code, out) == (2, "")
    assert told in err


def test_gates_of_groups_name_those_that_fail_and_those_too_small(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    site = rng.choice(["good", "bad", "tiny"], 5000, p=[0.59, 0.4, 0.01])
    logits = 2 * rng.normal(size=(5000, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    logits = np.where((site == "bad")[:, None], 2 * logits, logits)
    write_predictions(Predictions(logits=logits, labels=labels, groups={"site": site}), "rows.npz")
    words = ("audit", "rows.npz", "--by", "site", "--max", "ece=8%", "-q", *FEW)
    assert run(capsys, *words)[0] == 0
    code, out, _ = run(capsys, *words, "--worst-group")
    assert code == 1
    assert "FAIL  ECE of site=bad is" in out
    assert "UNDECIDED  ECE of site=tiny is" in out
    assert "1 of 3 gates of groups are shown to hold" in out
    gates = json.loads(run(capsys, *words, "--worst-group", "--json")[1])["gates"]
    assert {gate["group"]: (gate["passed"], gate["decided"]) for gate in gates[1:]} == {
        "site=bad": (False, True),
        "site=good": (True, True),
        "site=tiny": (True, False),
    }
    kept = tuple(word if word != "ece=8%" else "ece=30%" for word in words)
    assert run(capsys, *kept, "--worst-group")[0] == 0


def test_ten_days_are_a_trend(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [f"day{n}.state" for n in range(1, 11)]
    for seed, name in enumerate(names):
        rng = np.random.default_rng(seed)
        logits = 2 * rng.normal(size=(1500, 3))
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
        write_predictions(Predictions(logits=logits / (0.85 if seed < 8 else 0.55), labels=labels), "d.npz")
        main(["audit", "d.npz", "--save-state", name, "-q", *FEW])
    capsys.readouterr()
    code, out, _ = run(capsys, "report", *names, "-o", "trend.html", "--resamples", "200")
    assert code == 0
    assert out.startswith("Worse since day9: ECE")
    record = json.loads(run(capsys, "report", *names, "-o", "trend.md", "--json", "--resamples", "200")[1])
    assert record["trend"]["changes"][0]["first"] == "day9"
    assert "methods" not in record
    given = [word for n in range(1, 11) for word in ("--name", f"March {n}")]
    assert run(capsys, "report", *names, *given, "-o", "n.md", *FEW)[1].startswith("Worse since March 9")


def test_what_to_do_names_the_files_that_were_given(place, capsys):
    columns = ["--probs", "p_*", "--ids", "id"]
    run(capsys, "report", "fraud.csv", *columns, "-o", "r.html", "-q", *FEW)
    hint = commands(place / "r.html")[0]
    assert hint[:3] == ["equipoise", "report", "fraud.csv"]
    assert columns[0] in hint
    assert main([*hint[1:], "-q"]) == 0
    fit, use = commands(place / "r.html")[0:2]
    assert fit[:3] == ["equipoise", "calibrate", "fraud.csv"]
    assert use[0:2] == ["equipoise", "apply"]
    assert "fraud.csv" in use
    for command in (fit, use):
        assert main(command[1:]) == 0
    run(capsys, "audit", "fraud.csv", *columns, "--report", "a.html", "-q", *FEW)
    hint = commands(place / "a.html")[0]
    assert hint[:3] == ["equipoise", "report", "fraud.csv"]
    assert main([*hint[1:], "-q"]) == 0


def commands(page):
    """Return the commands of the section on what to do, as words."""
    section = page.read_text(encoding="utf-8").split('id="advice"')[1].split("</section>")[0]
    code = section.split("<pre><code>")[1].split("</code></pre>")[0]
    return [shlex.split(html.unescape(line)) for line in code.splitlines()]
