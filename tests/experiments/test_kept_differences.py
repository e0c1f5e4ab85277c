"""Paired differences beside the runs of a comparison: whole, tidy, and never those of other predictions."""

import csv
import shutil
from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace

import pytest

from equipoise.core.errors import DataError
from equipoise.evaluate import Difference, compare
from equipoise.experiments import (
    ComparisonSpec,
    find_runs,
    make_tables,
    results,
    run_comparison,
    tuning_outcome,
)
from equipoise.experiments.kept_differences import differences_beside, write_differences
from helpers.tiny_runs import QUICK, TABLE

SPEC = ComparisonSpec.from_table(
    {**TABLE, "method": ["ce", "focal"], "seed": [0, 1], "recipe": {"name": "quick", "epochs": 1}}
)
FILE = "comparison.differences.csv"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    return folder, run_comparison(SPEC, folder, options=QUICK, workers=1)


@pytest.fixture
def copied(finished, tmp_path):
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def n_tests(monkeypatch):
    """Count paired tests."""
    made = []

    def counted(*args, **settings):
        made.append(settings)
        return compare(*args, **settings)

    monkeypatch.setattr(results, "compare", counted)
    return made


def read(folder):
    with (folder / FILE).open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_rows_are_what_two_runs_of_a_seed_differ_by(finished):
    folder, outcome = finished
    runs = {(run.spec().method.label, run.spec().seed): run for run in outcome.summary.done}
    for row in read(folder):
        pair = [runs[row[name], int(row["seed"])] for name in ("first_method", "second_method")]
        card = pair[0].scores(row["calibrator"]).test
        rows = compare(
            *(run.calibrated(row["calibrator"]) for run in pair),
            n_bins=card.n_bins,
            closed=card.closed,
            n_resamples=card.n_resamples,
            seed=card.seed,
        )
        wanted = rows.of(row["metric"])
        assert [float(row[name]) for name in wanted._fields[1:-1]] == list(wanted[1:-1])
        assert row["verdict"] == wanted.verdict
    assert {row["seed"] for row in read(folder)} == {"0", "1"}


def test_a_table_tests_nothing_again(copied, finished, n_tests):
    assert make_tables(find_runs(copied)) == finished[1].tables
    assert not n_tests


def test_without_the_file_a_table_is_the_same(copied, finished, n_tests):
    (copied / FILE).unlink()
    assert make_tables(find_runs(copied)) == finished[1].tables
    assert n_tests


def test_a_baseline_that_nobody_asked_for_yet_is_tested(copied, n_tests):
    (copied / FILE).write_text("".join((copied / FILE).read_text().splitlines(keepends=True)[:1]))
    [table] = make_tables(find_runs(copied), baseline="focal")
    assert n_tests
    assert [bool(row.differences) for row in table.rows if row.method == "ce"] == [True, True]


def test_runs_that_were_scored_anew_are_tested_anew(copied, n_tests):
    before = {row["first_stamp"] for row in read(copied)}
    run_comparison(SPEC, copied, options=replace(QUICK, n_resamples=30), workers=1)
    assert n_tests
    assert {made["n_resamples"] for made in n_tests} == {30}
    assert not before & {row["first_stamp"] for row in read(copied)}


@pytest.mark.parametrize("field", ["difference", "high", "verdict", "first_stamp"])
def test_a_row_that_was_changed_is_not_believed(copied, field):
    rows = read(copied)
    rows[1][field] = {"verdict": "tie", "first_stamp": "sha256:0"}.get(field, "0.125")
    if rows[1] == read(copied)[1]:
        rows[1][field] = "second better"
    with (copied / FILE).open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(DataError, match=r"differences\.csv: damaged: .* Delete it"):
        make_tables(find_runs(copied))


def test_another_file_in_its_place_is_named(copied):
    (copied / FILE).write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"differences\.csv: damaged"):
        make_tables(find_runs(copied))


def test_one_method_leaves_no_file(tmp_path):
    alone = ComparisonSpec.from_table({**TABLE, "recipe": {"name": "quick", "epochs": 1}})
    run_comparison(alone, tmp_path, options=QUICK, workers=1)
    assert not list(tmp_path.glob("*.differences.csv"))


def test_two_methods_are_compared_once_whichever_is_first(copied, n_tests):
    assert len(make_tables(find_runs(copied), baseline="focal")) == 1
    assert not n_tests, "what the file says of the two, turned"
    (copied / FILE).unlink()
    [table] = make_tables(find_runs(copied), baseline="focal")
    asked = {(calibrator, *sorted(labels)) for calibrator, *labels in table.by_seed}
    assert len(n_tests) == 2 * len(asked)
    for (calibrator, first, second), seeds in table.by_seed.items():
        turned = table.by_seed.get((calibrator, second, first))
        assert turned in (None, {seed: [row.turned() for row in rows] for seed, rows in seeds.items()})


def test_a_run_under_two_labels_is_read_once(tmp_path, n_tests, monkeypatch):
    gammas = [{"name": "focal", "parameters": {"gamma": gamma}} for gamma in (1.0, 2.0)]
    chosen = {"name": "focal", "choose": {"gamma": [1.0, 2.0]}}
    spec = ComparisonSpec.from_table(
        {
            **TABLE,
            "method": ["ce", *gammas, chosen],
            "seed": [0, 1],
            "calibrators": [],
            "recipe": {"name": "quick", "epochs": 1},
        }
    )
    # Of each setting one seed, so that neither label stands for the same runs as the choice.
    places = cycle([0, 1])
    monkeypatch.setattr(tuning_outcome, "pick_setting", lambda *_, **settings: next(places))
    first = run_comparison(spec, tmp_path, options=QUICK, workers=1)
    text = (tmp_path / FILE).read_text()
    n_tests.clear()
    assert run_comparison(spec, tmp_path, options=QUICK, workers=1).tables == first.tables
    assert not n_tests
    assert (tmp_path / FILE).read_text() == text


@pytest.mark.parametrize(
    "change",
    [
        {"metric": 7},
        {"first": "text"},
        {"second": None},
        {"difference": 5.0},
        {"low": 1.0, "high": -1.0},
        {"p_value": -0.5},
        {"p_value": 1e300},
        {"verdict": "third better"},
    ],
)
def test_values_that_are_no_difference_are_reported(tmp_path, change):
    """A seal tells of damage, not of forgery: the values have to be possible too."""
    row = Difference("ece", 0.1, 0.2, 0.1, 0.05, 0.15, 0.001, "first better")._asdict()
    stamps = {"first_stamp": "sha256:1", "second_stamp": "sha256:2"}
    runs = [SimpleNamespace(path=tmp_path / "run")]
    write_differences(tmp_path, "a", [row | stamps])
    assert len(differences_beside(runs)) == 1
    write_differences(tmp_path, "a", [row | stamps | change])
    with pytest.raises(DataError, match="damaged: inconsistent"):
        differences_beside(runs)
