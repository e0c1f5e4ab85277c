"""Comparisons: every combination once, results as tidy rows, a table that calls ties ties."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from equipoise.core.errors import DataError, SpecError
from equipoise.experiments import (
    ComparisonSpec,
    find_runs,
    format_table,
    make_tables,
    read_comparison,
    run_comparison,
)
from equipoise.experiments.engines.local import fair_threads
from helpers.tiny_runs import DIVERGING, FAILING, QUICK, TABLE

SPECS = sorted((Path(__file__).resolve().parents[2] / "examples" / "specs").glob("*.toml"))


@pytest.fixture
def comparison(table):
    return {
        "name": "tiny",
        "data": table["data"],
        "model": table["model"],
        "method": ["ce", {"name": "focal", "options": {"gamma": 2.0}}],
        "seed": [0, 1],
        "recipe": table["recipe"],
    }


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_shipped_comparisons_are_valid(path):
    found = read_comparison(path)
    assert found.specs
    assert found.name == path.stem


def test_every_combination_is_a_run(comparison):
    found = ComparisonSpec.from_table(comparison)
    assert [(spec.method.label, spec.seed) for spec in found.specs] == [
        ("ce", 0),
        ("ce", 1),
        ("focal(gamma=2.0)", 0),
        ("focal(gamma=2.0)", 1),
    ]
    assert [one.name for one in found.calibrators] == ["identity", "temperature"]
    assert found.baseline == "ce"


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("methods", ["ce"], "did you mean 'method'"),
        ("method", ["ce", "ce"], "listed twice"),
        ("calibrators", ["temprature"], "did you mean 'temperature'"),
        ("baseline", "focal", "baseline: no method of this comparison 'focal'; known: ce"),
        ("data", [], "data: is an empty list"),
        ("seed", [], "seed: is an empty list"),
    ],
)
def test_mistakes_name_key_and_remedy(comparison, key, value, sentence):
    with pytest.raises(SpecError, match=re.escape(sentence)):
        ComparisonSpec.from_table({**comparison, key: value})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    table = {**TABLE, "name": "tiny", "method": ["ce", "focal"], "seed": [0, 1]}
    return folder, run_comparison(ComparisonSpec.from_table(table), folder, **QUICK, workers=1)


def test_results_are_tidy_rows(finished):
    folder, outcome = finished
    assert outcome.summary.is_whole
    with (folder / "tiny.results.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["method"] for row in rows} == {"ce", "focal"}
    keys = [tuple(row[k] for k in ("run", "split", "calibrator", "metric")) for row in rows]
    assert len(keys) == len(set(keys))


@pytest.mark.slow
def test_workers_give_the_same_bits_as_one_process(finished, tmp_path, quick):
    folder, _ = finished
    table = {**TABLE, "name": "tiny", "method": ["ce", "focal"], "seed": [0, 1]}
    outcome = run_comparison(ComparisonSpec.from_table(table), tmp_path, **quick, workers=2)
    assert outcome.summary.failed == {}
    assert (tmp_path / "tiny.results.csv").read_bytes() == (folder / "tiny.results.csv").read_bytes()


def test_one_failure_does_not_stop_the_others(tmp_path, quick):
    table = {**DIVERGING, "method": ["ce", {"name": "ce", "title": "calm", "recipe": {"lr": 0.01}}]}
    outcome = run_comparison(ComparisonSpec.from_table(table), tmp_path, **quick, workers=1)
    assert len(outcome.summary.done) == 1
    [sentence] = outcome.summary.failed.values()
    assert "stopped being finite" in sentence


def test_what_cannot_be_built_is_said_before_the_first_run(tmp_path, quick):
    table = {**FAILING, "data": ["digits", FAILING["data"]]}
    with pytest.raises(SpecError, match=r"mine\.toml\.method: .*need a 'tune' split"):
        run_comparison(ComparisonSpec.from_table(table, where="mine.toml"), tmp_path, **quick, workers=1)
    assert list(tmp_path.iterdir()) == []


def test_missing_data_are_named_before_the_first_run(comparison, tmp_path, quick):
    missing = {"name": "npz", "options": {"path": "nowhere.npz"}}
    table = {**comparison, "data": [comparison["data"], missing]}
    with pytest.raises(DataError, match=r"nowhere\.npz"):
        run_comparison(ComparisonSpec.from_table(table), tmp_path, **quick, workers=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["../../x", "/tmp/x", "a/b", "..", ".hidden", "", "a\0b", "a\\b", 5, "x" * 200]
)
def test_a_name_is_a_name(comparison, name):
    with pytest.raises(SpecError, match="must be a name for files"):
        ComparisonSpec.from_table({**comparison, "name": name})


@pytest.mark.parametrize("style", ["text", "markdown", "latex", "csv"])
def test_tables_hold_the_means(finished, style):
    folder, outcome = finished
    [table] = make_tables(outcome.summary.done, baseline="ce")
    text = format_table(table, style)
    cell = table.rows[0].cells["ece"]
    assert (repr(cell.mean) if style == "csv" else f"{100 * cell.mean:.2f}") in text
    assert "focal" in text
    assert len(find_runs(folder)) == 4


def test_table_marks_best_and_ties(finished):
    [table] = make_tables(finished[1].summary.done)
    for metric in table.metrics:
        for calibrator in ("identity", "temperature"):
            marks = [row.marks[metric] for row in table.rows if row.calibrator == calibrator]
            assert marks.count("best") == 1
    assert all(row.versus["ece"] == "" for row in table.rows if row.method == "ce")


def test_cores_are_shared_fairly():
    assert [fair_threads(n, cores=4) for n in (1, 2, 3, 8)] == [4, 2, 1, 1]


@pytest.mark.slow
def test_killed_and_repeated_equals_undisturbed(finished, tmp_path):
    """The short form of tests/stress/crash.py: three kills, the same command again, the same bits."""
    folder, _ = finished
    spec = tmp_path / "tiny.toml"
    spec.write_text(
        'name = "tiny"\ndata = { name = "digits", options = { noise = 0.3 } }\n'
        'model = { name = "mlp", options = { hidden = [16] } }\nmethod = ["ce", "focal"]\nseed = [0, 1]\n'
        'recipe = { name = "quick", epochs = 2 }\n'
    )
    words = ["compare", str(spec), "--out", str(tmp_path / "runs"), "--workers", "2", "--threads", "1"]
    command = [
        sys.executable,
        "-m",
        "equipoise",
        *words,
        "--resamples",
        "20",
        "--quiet",
        "--accelerator",
        "cpu",
    ]
    for seconds in (4.0, 6.0, 8.0):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            time.sleep(0.5)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "runs" / "tiny.results.csv").read_bytes() == (folder / "tiny.results.csv").read_bytes()
