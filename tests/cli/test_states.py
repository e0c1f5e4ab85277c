"""Saved states on the command line: kept, added, audited, compared and drawn without rows."""

import json

import numpy as np
import pytest

from equipoise import Predictions, write_predictions
from equipoise.cli import main
from helpers.command_line import run

FEW = ("--resamples", "60")


def rows(n=800, seed=0, *, temperature=0.9):
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(n, 3))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": np.array(["north", "south"])[np.arange(n) % 2]}
    return Predictions(logits=logits / temperature, labels=labels, groups=groups)


@pytest.fixture
def days(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number, day in enumerate(("mon", "tue", "wed")):
        write_predictions(rows(seed=number, temperature=0.4 if day == "wed" else 0.9), f"{day}.npz")
        assert main(["audit", f"{day}.npz", "--save-state", f"{day}.state", *FEW]) == 0
    capsys.readouterr()
    return tmp_path


def test_a_week_of_states_says_what_the_rows_say(days, capsys):
    assert run(capsys, "merge", "mon.state", "tue.state", "wed.state", "-o", "week.state")[:2] == (
        0,
        "week.state\n",
    )
    code, out, _ = run(capsys, "audit", "week.state", "--json", *FEW)
    _, whole, _ = run(capsys, "audit", "mon.npz", "tue.npz", "wed.npz", "--json", *FEW)
    of_states, of_rows = json.loads(out), json.loads(whole)
    assert code == 0
    assert of_states["settings"]["n_samples"] == 2400
    assert list(of_states["groups"]) == ["site"]
    for metric, score in of_rows["scores"].items():
        assert of_states["scores"][metric]["value"] == pytest.approx(score["value"], rel=1e-9)
    for mine, theirs in zip(of_states["groups"]["site"], of_rows["groups"]["site"], strict=True):
        assert mine["name"] == theirs["name"]
        assert mine["gap"] == pytest.approx(theirs["gap"], rel=1e-9)
    assert (
        run(capsys, "audit", "mon.state", "tue.state", "wed.state", "--json", *FEW)[1].replace(
            '"mon.state",\n    "tue.state",\n    "wed.state"', '"week.state"'
        )
        == out
    )


def test_score_takes_a_state(days, capsys):
    code, out, _ = run(capsys, "score", "mon.state", "--json", *FEW)
    expected = json.loads(run(capsys, "score", "mon.npz", "--json", *FEW)[1])
    assert code == 0
    assert json.loads(out)["scores"]["ece"]["value"] == pytest.approx(expected["scores"]["ece"]["value"])


def test_a_daily_gate_needs_no_rows(days, capsys):
    code, out, _ = run(capsys, "audit", "tue.state", "--against", "mon.state", "--not-worse", "ece", *FEW)
    assert code == 0
    assert "The rows are not the same" in out
    code, out, _ = run(capsys, "audit", "wed.state", "--against", "mon.state", "--not-worse", "ece", *FEW)
    assert code == 1
    assert "FAIL  ECE is worse than the baseline's by" in out


def test_rows_of_today_are_held_against_a_state(days, capsys):
    words = ("audit", "wed.npz", "--logits", "logits", "--against", "mon.state", "--not-worse", "ece", *FEW)
    assert run(capsys, *words)[0] == 1
    assert "same bins" in run(capsys, *words, "--bins", "7")[2]


def test_a_state_is_kept_from_a_paired_audit_too(days, capsys):
    assert run(capsys, "audit", "mon.npz", "--against", "mon.npz", "--save-state", "x.json", *FEW)[0] == 0
    assert run(capsys, "audit", "x.json", *FEW)[0] == 0


def test_drift_is_drawn(days, capsys):
    code, _, _ = run(capsys, "report", "mon.state", "tue.state", "wed.state", "-o", "drift.html", *FEW)
    page = (days / "drift.html").read_text()
    assert code == 0
    assert "Over time" in page
    assert "Worse since wed: ECE" in page
    assert run(capsys, "report", "mon.state", "-o", "one.md", *FEW)[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("merge", "mon.state", "mon.state", "-o", "x.state"), "named twice"),
        (("merge", "mon.npz", "-o", "x.state"), "contains rows, not a saved state"),
        (("merge", "mon.state", "tue.npz", "-o", "x.state"), "Name files of one kind"),
        (("merge", "mon.state", "-o", "x.csv"), "must end in"),
        (("merge", "week.state", "mon.state", "-o", "x.state"), "would count twice"),
        (("merge", "missing.state", "-o", "x.state"), "missing.state: cannot be read"),
        (("audit", "mon.state", "--bins", "10"), "--bins applies to rows"),
        (("audit", "mon.state", "--labels", "y"), "--labels applies to rows"),
        (("audit", "mon.state", "--by", "sight"), "did you mean 'site'"),
        (("score", "mon.state", "--probs", "y"), "--probs applies to rows"),
        (("report", "mon.state", "--closed", "left", "-o", "x.html"), "--closed applies to rows"),
        (("audit", "mon.npz", "--save-state", "x.txt"), "must end in"),
    ],
)
def test_mistakes_are_one_sentence(days, capsys, words, told):
    run(capsys, "merge", "mon.state", "tue.state", "-o", "week.state")
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert told in err
    assert not list(days.glob("x.*"))


def test_rows_that_were_summed_in_other_ways_do_not_count_twice(days, capsys, monkeypatch):
    np.savez("plain.npz", logits=rows().logits, labels=rows().labels)
    main(["audit", "plain.npz", "--save-state", "a.state", *FEW])
    monkeypatch.setenv("EQUIPOISE_PLAIN", "1")
    main(["audit", "plain.npz", "--save-state", "b.json", *FEW])
    main(["audit", "mon.npz", "--by", "site", "--save-state", "c.state", *FEW])
    main(["merge", "mon.state", "tue.state", "-o", "two.state"])
    capsys.readouterr()
    for first, second in (("a.state", "b.json"), ("mon.state", "c.state"), ("two.state", "tue.state")):
        code, _, error = run(capsys, "merge", first, second, "-o", "sum.state")
        assert code == 2
        assert f"{second}: its rows are in {first} already, and would count twice" in error


def test_a_bug_is_no_failed_gate(days, capsys, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("equipoise.evaluate.audit_state.AuditState.update", fail)
    code, _, error = run(capsys, "audit", "mon.npz", *FEW)
    assert code == 70
    assert "ZeroDivisionError: a bug" in error
