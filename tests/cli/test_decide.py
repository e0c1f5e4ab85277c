import json

import numpy as np
import pytest
from click.testing import CliRunner

from equipoise.calibrators import TemperatureScaling
from equipoise.cli.app import run
from equipoise.core import Predictions
from equipoise.core.reading import read_predictions

FIELDS = {
    "certified", "threshold", "coverage", "coverage_low", "coverage_high", "observed_error", "error_bound", "n",
    "n_accepted", "max_error", "confidence", "groups",
}  # fmt: skip


def write_answers(path, n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.5, 1, n).round(4)
    right = rng.random(n) < np.sqrt(confidence) - shift
    site = np.array(["north", "south", "tiny"])[np.minimum(rng.integers(0, 40, n) // 19, 2)]
    lines = [f"{path.name}-{i},{site[i]},{confidence[i]},{int(right[i])}" for i in range(n)]
    path.write_text("\n".join(["id,site,confidence,correct", *lines]) + "\n")
    return str(path)


@pytest.fixture
def labelled(tmp_path):
    return write_answers(tmp_path / "labelled.csv", 2000, 1)


def test_threshold_is_certified_applied_and_audited(labelled, tmp_path, capsys):
    rule, decided = str(tmp_path / "decision.json"), tmp_path / "decided.csv"
    words = ["--ids", "id", "--max-error", "10%", "--confidence", "95%", "-o", rule]
    assert run(["decide", labelled, *words]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "Accept predictions with confidence at least 0.652: 70.1% of them [68.0, 72.1]."
    want = "With 95% confidence, at most 10% of accepted predictions are wrong (observed 8.35% of 1,402)."
    assert second == want
    today = write_answers(tmp_path / "today.csv", 50, 2)
    assert run(["apply", rule, today, "-o", str(decided), "-q"]) == 0
    old, new = (one.read_text().splitlines() for one in (tmp_path / "today.csv", decided))
    assert [line.rsplit(",", 1)[0] for line in new] == old
    accepted = [line.endswith("True") for line in new[1:]]
    assert accepted == [float(line.split(",")[2]) >= 0.6524 for line in old[1:]]
    assert not (tmp_path / "decided.csv.equipoise.json").exists()
    good, bad = (write_answers(tmp_path / f"{i}.csv", 3000, i, shift) for i, shift in ((3, 0.0), (4, 0.2)))
    assert run(["audit", good, "--ids", "id", "--decision", rule]) == 0
    assert "PASS  The promise is kept: 9.26% of 2,040" in capsys.readouterr().out
    assert run(["audit", bad, "--ids", "id", "--decision", rule]) == 1
    assert "FAIL  The promise is broken" in capsys.readouterr().out
    assert run(["audit", labelled, "--ids", "id", "--decision", rule]) == 2
    assert "2000 of 2000 rows were used to certify the threshold" in capsys.readouterr().err


def test_json_has_exactly_the_named_fields(labelled, capsys):
    assert run(["decide", labelled, "--max-error", "0.1", "--by", "site", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == FIELDS
    assert set(found["groups"]) == {"north", "south", "tiny"}
    assert all(set(one) == FIELDS for one in found["groups"].values())


def test_nothing_certifiable_is_one_sentence_and_exit_1(tmp_path, capsys):
    few = write_answers(tmp_path / "few.csv", 412, 5, 0.12)
    rule = tmp_path / "decision.json"
    assert run(["decide", few, "--max-error", "5%", "-o", str(rule)]) == 1
    text = capsys.readouterr().out
    assert text.startswith(
        "No threshold keeps errors at or below 5% with 95% confidence on these 412 rows; the best"
    )
    assert not rule.exists()
    tiny = write_answers(tmp_path / "tiny.csv", 40, 5)
    assert run(["decide", tiny, "--max-error", "5%"]) == 1
    assert "even without a mistake, 59 accepted rows are needed" in capsys.readouterr().out


def test_groups_that_cannot_be_certified_are_named(labelled, tmp_path, capsys):
    rule = str(tmp_path / "decision.json")
    assert run(["decide", labelled, "--max-error", "10%", "--by", "site", "-o", rule]) == 0
    out = capsys.readouterr().out
    assert "north: Accept predictions" in out
    assert "tiny: No threshold keeps errors" in out
    assert "labelled rows might be enough" in out
    decided = tmp_path / "decided.csv"
    assert run(["apply", rule, labelled, "-o", str(decided), "-q"]) == 0
    lines = decided.read_text().splitlines()[1:]
    assert not any(line.endswith("True") for line in lines if ",tiny," in line)
    assert any(line.endswith("True") for line in lines if ",north," in line)
    assert run(["decide", labelled, "--max-error", "15%", "--by", "site", "--shared"]) == 0


def test_other_questions(labelled, tmp_path, capsys):
    assert run(["decide", labelled, "--min-coverage", "80%"]) == 0
    assert "80.0% of them" in capsys.readouterr().out
    rule = str(tmp_path / "costs.json")
    assert run(["decide", labelled, "--cost", "wrong=10", "--cost", "abstain=1", "-o", rule]) == 0
    assert "Expected cost per row 0.8995" in capsys.readouterr().out
    decided = tmp_path / "decided.csv"
    assert run(["apply", rule, labelled, "-o", str(decided), "-q"]) == 0
    assert {line.rsplit(",", 1)[1] for line in decided.read_text().splitlines()[1:]} == {"accept", "abstain"}
    assert run(["audit", labelled, "--decision", rule]) == 0


def images(n, seed, factor=1.0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 3))
    labels = (logits + rng.gumbel(size=(n, 3))).argmax(1)
    names = ["cat", "dog", "bird"]
    return Predictions(
        logits=factor * logits, labels=labels, class_names=names, ids=np.arange(n) + 10**6 * seed
    )


def test_sets_are_fitted_saved_applied_and_audited(tmp_path, capsys):
    from equipoise.core import write_predictions

    calib, new, sets = (tmp_path / name for name in ("calib.npz", "new.npz", "sets.json"))
    write_predictions(images(1000, 1, 3.0), calib)
    write_predictions(images(1000, 2, 3.0), new)
    fitted = tmp_path / "calibrator.json"
    TemperatureScaling().fit(images(800, 3, 3.0)).save(fitted)
    words = ["--method", "aps", "--calibrator", str(fitted)]
    assert run(["decide", str(calib), "--sets", "90%", *words, "--holdout", "0.5"]) == 0
    out = capsys.readouterr().out
    assert "Without the calibrator" in out
    assert "rows by size" in out
    assert "classes have a 95% interval below the requested coverage" in out
    assert "Least covered: " in out
    assert run(["decide", str(calib), "--sets", "90%", *words, "-o", str(sets), "-q"]) == 0
    assert run(["audit", str(new), "--decision", str(sets)]) == 0
    assert "The promise is kept" in capsys.readouterr().out
    decided = tmp_path / "decided.npz"
    assert run(["apply", str(sets), str(new), "-o", str(decided), "-q"]) == 0
    found = np.load(decided)["set"]
    assert set("|".join(found).split("|")) <= {"cat", "dog", "bird", ""}
    assert read_predictions(decided).logits.shape == (1000, 3)


def test_a_cost_matrix_file_names_classes_and_actions(tmp_path, capsys):
    from equipoise.core import write_predictions

    rows = tmp_path / "rows.npz"
    write_predictions(images(500, 4), rows)
    costs = tmp_path / "costs.csv"
    costs.write_text("class,keep,drop\nbird,9,0\ncat,0,1\ndog,0,1\n")
    assert run(["decide", str(rows), "--cost-matrix", str(costs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["shares"]) == {"keep", "drop"}
    want = (images(500, 4).probs[:, 2] * 9 > 1 - images(500, 4).probs[:, 2]).mean()
    assert found["shares"]["drop"] == pytest.approx(want)
    costs.write_text("class,keep,drop\nfish,9,0\ncat,0,1\ndog,0,1\n")
    assert run(["decide", str(rows), "--cost-matrix", str(costs)]) == 2
    assert "one line for each class (cat, dog, bird), got lines for fish" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "exactly one goal"),
        (["--max-error", "5%", "--sets", "90%"], "exactly one goal"),
        (["--max-error", "0"], "must be above 0, got 0. No number of rows"),
        (["--max-error", "5"], "for percent write 5%"),
        (["--cost", "wrong=10"], "--cost abstain=NUMBER is missing"),
        (["--cost", "wrong"], "must be wrong=NUMBER"),
        (["--max-error", "5%", "--shared"], "requires"),
        (["--max-error", "5%", "--score", "no_such"], "no_such"),
        (["--max-error", "5%", "--correct", "site", "--probs", "confidence"], "--confidence-column"),
        (["--sets", "90%", "--holdout", "100%"], "must be above 0 and below 1"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(labelled, capsys, words, message):
    assert run(["decide", labelled, *words]) == 2
    assert message in capsys.readouterr().err


def test_help_shows_examples():
    from equipoise.cli.decide import command

    shown = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "--max-error 5%" in shown
    assert "with--confidence-columnalone" in shown.replace(" ", "")  # wrapped at a hyphen


def test_a_decision_with_a_calibrator_needs_raw_predictions(tmp_path, capsys):
    rows = [read_only(tmp_path / f"{name}.npz", images(2000, seed, 3.0)) for seed, name in enumerate("abc")]
    fitted, decision, calibrated = (str(tmp_path / name) for name in ("t.json", "d.json", "b.npz"))
    assert run(["calibrate", rows[0], "--method", "temperature", "-o", fitted, "-q"]) == 0
    words = ["--calibrator", fitted, "--max-error", "25%", "-o", decision]
    assert run(["decide", rows[1], *words]) == 0
    assert run(["audit", rows[2], "--decision", decision]) == 0
    assert "The decision applies its calibrator first" in capsys.readouterr().out
    assert run(["apply", fitted, rows[2], "-o", calibrated, "-q"]) == 0
    for command in (
        ["decide", calibrated, *words],
        ["apply", decision, calibrated],
        ["audit", calibrated, "--decision", decision],
        ["watch", str(tmp_path / "state.json"), calibrated, "--decision", decision],
        ["score", rows[0], "--unlabelled", calibrated, "--decision", decision],
    ):
        assert run(command) == 2
        assert "a calibrator was applied to these predictions already" in capsys.readouterr().err


def read_only(path, rows):
    np.savez(path, logits=rows.logits, labels=rows.labels)
    return str(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--max-error", "5%", "--holdout", "0.5"],
            "--holdout has no effect with --max-error; it goes with --sets.",
        ),
        (["--max-error", "5%", "--method", "aps"], "--method has no effect"),
        (["--max-error", "5%", "--conditional", "class"], "--conditional has no effect"),
        (["--sets", "90%", "--score", "margin"], "it goes with --max-error and --min-coverage"),
        (["--sets", "90%", "--confidence", "99%"], "--confidence has no effect"),
        (["--sets", "90%", "--by", "site"], "--by with --sets needs --conditional group"),
        (["--cost", "wrong=10", "--cost", "abstain=1", "--by", "site"], "--by has no effect with --cost"),
        (["--cost", "wrong=10", "--cost", "wrong=9", "--cost", "abstain=1"], "once for each of wrong"),
        (["--cost", "wrong=10", "--cost", "abstain=-1"], "at least 0, got -1"),
        (["--cost", "wrong=10", "--cost", "abstain=11"], "must be between 0.0"),
        (["--max-error", "nan"], "'nan' must be from 0 to 1."),
    ],
)
def test_options_without_effect_are_errors(labelled, tmp_path, capsys, words, message):
    rule = tmp_path / "decision.json"
    assert run(["decide", labelled, *words, "-o", str(rule)]) == 2
    assert message in capsys.readouterr().err
    assert not rule.exists()


def test_too_few_rows_for_sets_are_reported(tmp_path, capsys):
    from equipoise.core import write_predictions

    few, sets = tmp_path / "few.npz", tmp_path / "sets.json"
    write_predictions(images(8, 5), few)
    assert run(["decide", str(few), "--sets", "90%", "-o", str(sets)]) == 1
    out = capsys.readouterr().out
    assert out == (
        "Every set contains all classes, since 90% needs at least 9 calibration rows, got 8. Label more rows.\n"
    )
    assert not sets.exists()
    write_predictions(images(20, 6), few)
    assert run(["decide", str(few), "--sets", "90%", "--conditional", "class", "-o", str(sets)]) == 0
    out = capsys.readouterr().out
    assert "at least 90% within every class." in out
    assert (
        "Every set contains 2 of 3 classes, since 90% needs at least 9 calibration rows of the class:" in out
    )


def test_apply_counts_decisions_and_names_groups_without_threshold(labelled, tmp_path, capsys):
    rule, decided = str(tmp_path / "decision.json"), tmp_path / "decided.csv"
    assert run(["decide", labelled, "--max-error", "10%", "--by", "site", "-o", rule, "-q"]) == 0
    capsys.readouterr()
    assert run(["apply", rule, labelled, "-o", str(decided)]) == 0
    wrote, without = capsys.readouterr().out.splitlines()
    share = sum(line.endswith("True") for line in decided.read_text().splitlines()) / 2000
    assert wrote == f"Wrote 2,000 rows to {decided}, with a column `accept`: {share:.1%} are accepted."
    n_tiny = sum(",tiny," in line for line in decided.read_text().splitlines())
    assert without == f"Groups without a certified threshold, never accepted: tiny ({n_tiny} rows)."
    assert run(["apply", rule, labelled, "-o", str(decided), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {"True": round(2000 * share), "False": 2000 - round(2000 * share)}
    assert found["groups_without_threshold"] == {"tiny": n_tiny}


def test_a_check_reports_rows_that_it_cannot_compare(labelled, tmp_path, capsys):
    rule = str(tmp_path / "decision.json")
    assert run(["decide", labelled, "--ids", "id", "--max-error", "10%", "-o", rule]) == 0
    new = write_answers(tmp_path / "new.csv", 2000, 9)
    capsys.readouterr()
    assert run(["audit", new, "--decision", rule]) == 0
    assert "Whether rows were used to make the decision was not checked: " in capsys.readouterr().out
    assert run(["audit", new, "--ids", "id", "--decision", rule]) == 0
    assert "was not checked" not in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["html", "md"])
def test_the_report_of_an_audit_shows_the_decision(labelled, tmp_path, capsys, ending):
    rule, report = str(tmp_path / "decision.json"), tmp_path / f"audit.{ending}"
    assert run(["decide", labelled, "--ids", "id", "--max-error", "10%", "-o", rule]) == 0
    for seed, shift, verdict in ((3, 0.0, "kept"), (4, 0.2, "broken")):
        new = write_answers(tmp_path / "new.csv", 3000, seed, shift)
        assert run(["audit", new, "--ids", "id", "--decision", rule, "--report", str(report)]) == (shift > 0)
        text = report.read_text()
        assert f"The promise is {verdict}: " in text
        assert text.index("If you act on it") < text.index(f"The promise is {verdict}")


def test_a_calibrator_of_rows_without_ids_is_reported(tmp_path, capsys):
    calib, labelled = (write_answers(tmp_path / f"{name}.csv", 2000, seed) for seed, name in enumerate("ab"))
    fitted = str(tmp_path / "c.json")
    assert run(["calibrate", calib, "--method", "isotonic", "-o", fitted, "-q"]) == 0
    words = ["--max-error", "15%", "--calibrator", fitted]
    assert run(["decide", labelled, "--ids", "id", *words]) == 0
    assert "Warning: Whether rows were used to fit the calibrator was not checked" in capsys.readouterr().err
    assert run(["decide", calib, *words]) == 2
    assert "2000 of 2000 rows were used to fit the calibrator" in capsys.readouterr().err
