import json
from pathlib import Path

import numpy as np
import pytest

from equipoise.cli.app import run
from equipoise.core.reading import read_predictions

COMPARED = ["--unlabelled", "many.csv", "--reference", "day.csv"]


def write_day(path, seed, shift=0.0, n=300, *, labels=True):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.6, 1, n).round(5)
    right = rng.random(n) < confidence - shift
    site = np.array(["north", "south"])[np.arange(n) % 2]
    lines = [
        f"{seed}-{i},{site[i]},{confidence[i]}" + (f",{int(right[i])}" if labels else "") for i in range(n)
    ]
    path.write_text("\n".join(["id,site,confidence" + (",correct" if labels else ""), *lines]) + "\n")
    return str(path)


def test_days_are_watched_until_a_shift_alarms(tmp_path, capsys):
    state, metrics = str(tmp_path / "model.json"), tmp_path / "metrics.jsonl"
    codes = []
    for day in range(1, 15):
        rows = write_day(tmp_path / "today.csv", day, 0.2 if day > 5 else 0.0)
        words = ["--day", f"2026-03-{day:02}", "--by", "site", "--metrics-out", str(metrics)]
        codes.append(run(["watch", state, rows, *words]))
        if codes[-1]:
            break
    assert codes[:5] == [0] * 5
    assert codes[-1] == 1
    out = capsys.readouterr().out
    assert "No alarm: evidence " in out
    assert "ALARM  calibration" in out
    assert "since 2026-03-06" in out or "since 2026-03-05" in out
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [one["day"] for one in lines] == [f"2026-03-{day:02}" for day in range(1, len(codes) + 1)]
    assert run(["watch", state, rows, "--day", "2026-03-30"]) == 2
    assert "rows were added on" in capsys.readouterr().err


def test_metrics_for_prometheus(tmp_path, capsys):
    rows, metrics = write_day(tmp_path / "today.csv", 1), tmp_path / "equipoise.prom"
    words = ["--day", "2026-03-01", "--metrics-out", str(metrics), "-q"]
    assert run(["watch", str(tmp_path / "state.json"), rows, *words]) == 0
    assert capsys.readouterr().out == ""
    text = metrics.read_text()
    assert 'equipoise_evidence{monitor="calibration"} ' in text
    assert "equipoise_alarms 0\n" in text
    assert "equipoise_evidence_mean " in text
    assert all(line.startswith("#") or float(line.split()[-1]) >= 0 for line in text.splitlines())


def test_missed_days_are_reported_even_if_quiet(tmp_path, capsys):
    state = str(tmp_path / "state.json")
    for day in (1, 4):
        rows = write_day(tmp_path / f"{day}.csv", day)
        assert run(["watch", state, rows, "--day", f"2026-03-0{day}", "-q"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "Warning: no rows for 2 days: 2026-03-02, 2026-03-03.\n"


def test_settings_of_the_first_day_stay(tmp_path, capsys):
    state = str(tmp_path / "state.json")
    assert (
        run(["watch", state, write_day(tmp_path / "1.csv", 1), "--day", "2026-03-01", "--alpha", "1%"]) == 0
    )
    second = write_day(tmp_path / "2.csv", 2)
    assert run(["watch", state, second, "--day", "2026-03-02", "--alpha", "5%"]) == 2
    assert "--alpha must be that of the first day, 1%" in capsys.readouterr().err
    assert run(["watch", state, second, "--day", "2026-03-02", "--min-accuracy", "70%"]) == 2
    assert run(["watch", state, second, "--day", "2026-03-02", "--looks", "3"]) == 2
    assert run(["watch", state, second, "--day", "2026-03-02", "--alpha", "1%"]) == 0


def test_looks_without_labels_share_alpha(tmp_path, capsys):
    new, old = (write_day(tmp_path / f"{i}.csv", i, labels=False) for i in (1, 2))
    metrics = tmp_path / "out.prom"
    words = [
        "watch",
        "--unlabelled",
        new,
        "--reference",
        old,
        "--looks",
        "365",
        "--metrics-out",
        str(metrics),
    ]
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["level"] == pytest.approx(0.05 / 365)
    assert 'equipoise_p_value{test="confidence"}' in metrics.read_text()
    assert "equipoise_accuracy_expected_if_calibration_holds 0.79" in metrics.read_text()
    assert run([*words, "--day", "2026-03-01"]) == 2


def test_rows_without_labels_are_compared_with_a_reference(tmp_path, capsys):
    new, old = (write_day(tmp_path / f"{i}.csv", i, labels=False) for i in (1, 2))
    assert run(["watch", "--unlabelled", new, "--reference", old, "--by", "site"]) == 0
    assert "Accuracy expected if calibration still holds" in capsys.readouterr().out
    text = (tmp_path / "1.csv").read_text().replace(",0.", ",0.9")
    (tmp_path / "3.csv").write_text(text)
    assert run(["watch", "--unlabelled", str(tmp_path / "3.csv"), "--reference", old, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["shifted"] is True


def test_plan_writes_the_rows_to_label_and_score_reads_them(tmp_path, capsys):
    rows, output = write_day(tmp_path / "rows.csv", 1, n=5000), tmp_path / "label.csv"
    assert run(["plan", rows, "--width", "8%", "-o", str(output)]) == 0
    assert "a random sample would need" in capsys.readouterr().out
    lines = output.read_text().splitlines()
    assert lines[0] == "row,stratum,weight,confidence"
    assert 100 < len(lines) < 1500
    right = [line.rsplit(",", 1)[1] for line in (tmp_path / "rows.csv").read_text().splitlines()[1:]]
    labelled = [f"{line},{right[int(line.split(',')[0])]}" for line in lines[1:]]
    output.write_text("\n".join([f"{lines[0]},correct", *labelled]) + "\n")
    words = ["score", str(output), "--strata", "stratum"]
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["accuracy"]
    assert found["low"] < np.mean([one == "1" for one in right]) < found["high"]
    assert found["high"] - found["low"] == pytest.approx(0.08, rel=0.1)
    assert run(words) == 0
    assert "as many random rows would give" in capsys.readouterr().out
    assert run([*words, "--unlabelled", rows]) == 2
    assert run(["score", str(output), "--unlabelled", rows]) == 2
    assert "expected a random sample without weights" in capsys.readouterr().err


def test_plan_writes_ids(tmp_path, capsys):
    rows, output = write_day(tmp_path / "rows.csv", 1, n=500), tmp_path / "label.csv"
    assert run(["plan", rows, "--ids", "id", "--width", "20%", "-o", str(output)]) == 0
    assert "Add a column `correct`, then:  equipoise score" in capsys.readouterr().out
    lines = output.read_text().splitlines()
    assert lines[0] == "id,stratum,weight,confidence"
    assert all(line.startswith("1-") for line in lines[1:])
    text = (tmp_path / "rows.csv").read_text().splitlines()
    text[3] = "1-2,north,,1"
    (tmp_path / "rows.csv").write_text("\n".join(text) + "\n")
    assert run(["plan", rows, "--drop-missing", "--width", "20%", "-o", str(output)]) == 2
    assert "Name their ids: --ids" in capsys.readouterr().err


def test_score_uses_rows_without_labels(tmp_path, capsys):
    some = write_day(tmp_path / "some.csv", 1)
    many = write_day(tmp_path / "many.csv", 2, n=5000, labels=False)
    rule = str(tmp_path / "rule.json")
    assert (
        run(["decide", write_day(tmp_path / "l.csv", 3, n=3000), "--max-error", "15%", "-o", rule, "-q"]) == 0
    )
    capsys.readouterr()
    assert run(["score", some, "--ids", "id", "--unlabelled", many, "--decision", rule, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"accuracy", "error among accepted"}
    labelled = str(tmp_path / "l.csv")
    assert run(["score", labelled, "--unlabelled", many, "--decision", rule]) == 2
    assert "3000 of 3000 rows were used to certify the threshold" in capsys.readouterr().err
    fitted, calibrated = str(tmp_path / "c.json"), str(tmp_path / "calibrated.csv")
    assert run(["calibrate", some, "--method", "isotonic", "-o", fitted, "-q"]) == 0
    assert run(["apply", fitted, some, "-o", calibrated, "-q"]) == 0
    assert run(["score", calibrated, "--unlabelled", many]) == 2
    assert "were used to fit the calibrator" in capsys.readouterr().err
    assert found["accuracy"]["n_unlabelled"] == 5000
    assert found["accuracy"]["low"] < 0.8 < found["accuracy"]["high"]


def test_a_decision_must_accept_enough_labelled_rows(tmp_path, capsys):
    rule, few = str(tmp_path / "rule.json"), tmp_path / "few.csv"
    rows = write_day(tmp_path / "l.csv", 3, n=3000)
    assert run(["decide", rows, "--max-error", "15%", "-o", rule, "-q"]) == 0
    few.write_text("confidence,correct\n" + "".join(f"0.{50 + i},1\n" for i in range(15)) + "0.99,1\n")
    many = write_day(tmp_path / "many.csv", 2, labels=False)
    capsys.readouterr()
    assert run(["score", str(few), "--unlabelled", many, "--decision", rule]) == 2
    assert (
        "at least 10 labelled rows and 1 other row that the decision accepts, got 1"
        in capsys.readouterr().err
    )


def test_labelled_rows_of_another_source_are_reported(tmp_path, capsys):
    some, same = (write_day(tmp_path / f"{seed}.csv", seed) for seed in (1, 2))
    rows = read_predictions(same)
    other = tmp_path / "other.csv"
    other.write_text("confidence\n" + "".join(f"{value / 2}\n" for value in rows.confidence))
    assert run(["score", some, "--unlabelled", same]) == 0
    assert capsys.readouterr().err == ""
    assert run(["score", some, "--unlabelled", str(other)]) == 0
    assert "the confidence of labelled rows and of the other rows differs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["watch"], "Expected STATE and FILE"),
        (["watch", "--unlabelled", "a.csv"], "give both"),
        (["watch", "state.json", "no-such.csv", "--day", "2026-03-01"], "no-such.csv"),
        (["watch", "state.json", "day.csv", "--by", "site", "--by", "site"], "must be named once"),
        (["watch", "state.json", "day.csv", "--day", ""], "must be a date such as 2026-03-09, got ''"),
        (["watch", "damaged.json", "day.csv"], "Restore a backup of it, or start a new STATE"),
        (["watch", *COMPARED, "--tolerance", "2%"], "--tolerance needs labels"),
        (["watch", *COMPARED, "--day", "2026-03-01"], "--day needs labels"),
        (["watch", "--unlabelled", "day.csv", "--reference", "day.csv"], "300 of 300 rows are in both files"),
        (["score", "day.csv", "--unlabelled", "many.csv", "--cluster", "site"], "--cluster does not apply"),
        (["score", "day.csv", "--strata", "site", "--target", "positive"], "--target does not apply"),
        (["plan", "day.csv", "--width", "0.0000001%"], "got 300 rows"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_day(tmp_path / "day.csv", 1)
    write_day(tmp_path / "many.csv", 2, labels=False)
    (tmp_path / "damaged.json").write_text("{")
    assert run(words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "state.json").exists()


def test_only_alarms_are_printed_if_quiet(tmp_path, capsys):
    new, old = (write_day(tmp_path / f"{i}.csv", i, labels=False) for i in (1, 2))
    assert run(["watch", "--unlabelled", new, "--reference", old, "-q"]) == 0
    assert capsys.readouterr().out == ""


def test_names_of_groups_in_prometheus_text(tmp_path):
    rows, metrics = tmp_path / "today.csv", tmp_path / "out.prom"
    text = Path(write_day(rows, 1)).read_text()
    rows.write_text(text.replace("id,site", 'id,"größe ""a"" \\"'))
    words = ["--by", 'größe "a" \\', "--metrics-out", str(metrics), "-q"]
    assert run(["watch", str(tmp_path / "s.json"), str(rows), *words]) == 0
    assert 'equipoise_evidence{monitor="größe \\"a\\" \\\\"} ' in metrics.read_text()
