"""Predictions of several seeds that a user already has: the table, tests and report of runs that were trained here."""

import json

import numpy as np
import pytest

from equipoise import Predictions, read_predictions, write_predictions
from equipoise.cli import main
from equipoise.core.errors import DataError, SpecError
from equipoise.experiments import ComparisonSpec, compare_seeds, report_of_runs, run_comparison
from equipoise.kernels.dispatch import use_backend
from equipoise.report import to_html
from helpers.tiny_runs import QUICK, TABLE


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    table = {**TABLE, "method": ["ce", "brier"], "seed": [0, 1]}
    folder = tmp_path_factory.mktemp("runs")
    return run_comparison(ComparisonSpec.from_table(table), folder, **QUICK, workers=1)


@pytest.fixture
def _as_runs_go():
    """The fallback, whatever was compiled before: what is compared is compared to the last bit."""
    with use_backend("fallback"):
        yield


def taken(trained, split):
    found = {}
    for folder in trained.summary.done:
        found.setdefault(folder.spec().method.label, []).append(folder.predictions(split))
    return found


@pytest.mark.usefixtures("_as_runs_go")
def test_numbers_and_tests_are_those_of_a_comparison_that_was_trained(trained):
    found = compare_seeds(taken(trained, "test"), calib=taken(trained, "calib"), n_resamples=20)
    [wanted] = trained.tables
    assert [row.method for row in found.table.rows] == [row.method for row in wanted.rows]
    for mine, theirs in zip(found.table.rows, wanted.rows, strict=True):
        assert mine.cells == theirs.cells
        assert (mine.marks, mine.versus, mine.differences) == (
            theirs.marks,
            theirs.versus,
            theirs.differences,
        )
    assert found.table.n_seeds == 2
    assert str(found).splitlines()[2:4]


@pytest.mark.usefixtures("_as_runs_go")
def test_the_report_tells_the_same(trained):
    found = compare_seeds(taken(trained, "test"), calib=taken(trained, "calib"), n_resamples=20).report()
    [wanted] = report_of_runs(trained.summary.done, tables=trained.tables).values()
    assert found.versus() == wanted.versus()
    assert found.gains() == wanted.gains()
    assert "brier" in to_html(found)


def rows(n=60, sharp=3.0, seed=0):
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    return Predictions(logits=sharp * np.eye(3)[labels] + generator.normal(size=(n, 3)), labels=labels)


def test_without_held_out_rows_there_is_no_calibrator():
    found = compare_seeds({"a": rows(), "b": [rows(sharp=1.0)]}, n_resamples=20)
    assert {row.calibrator for row in found.table.rows} == {"identity"}
    assert {row["method"] for row in found.rows()} == {"a", "b"}


@pytest.mark.parametrize(
    ("given", "options", "kind", "sentence"),
    [
        ({}, {}, DataError, "at least one training"),
        ({"a": []}, {}, DataError, "at least one training"),
        ({"a": [rows()], "b": [rows(30)]}, {}, DataError, "the same rows, got 30 and 60"),
        ({"a": [3]}, {}, DataError, "expected Predictions, got int"),
        ({"focal": [rows()]}, {"baseline": "focl"}, SpecError, "did you mean 'focal'"),
        ({"a": [rows()]}, {"metrics": ["eec"]}, SpecError, "did you mean"),
        ({"a": [rows()]}, {"calib": {"a": [rows(), rows()]}}, DataError, "as many predictions"),
        (
            {"a": [rows()]},
            {"calib": {"a": rows()}, "calibrators": ["vectr"]},
            SpecError,
            "did you mean 'vector'",
        ),
    ],
)
def test_mistakes(given, options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        compare_seeds(given, **options)


@pytest.fixture
def folders(tmp_path):
    for number in range(2):
        for name, sharp in (("ce", 3.0), ("focal", 1.0)):
            (tmp_path / name).mkdir(exist_ok=True)
            write_predictions(rows(sharp=sharp, seed=number), tmp_path / name / f"{number}.npz")
    return tmp_path


def test_files_of_a_folder_are_seeds(folders, capsys):
    files = [str(file) for name in ("ce", "focal") for file in sorted((folders / name).glob("*.npz"))]
    assert main(["compare-files", *files, "--resamples", "20", "--report", str(folders / "a.html")]) == 0
    printed = capsys.readouterr().out
    assert "over 2 seeds and 60 test rows" in printed
    assert "worse than ce" in printed
    assert "focal" in (folders / "a.html").read_text()


def test_methods_may_be_named(folders, capsys):
    words = [f"first={folders / 'ce'}", f"second={folders / 'focal'}/*.npz", "--baseline", "second"]
    assert main(["compare-files", *words, "--resamples", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["baseline"] == "second"
    assert {(row["method"], row["seed"]) for row in found["rows"]} == {
        (m, s) for m in ("first", "second") for s in (0, 1)
    }


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("nowhere", "no file of predictions for 'nowhere'"),
        ("nowhere/*", "no file of predictions for"),
        ("ce/0.npy", "there is no such file. Did you mean '0.npz'?"),
        ("a=nowhere/*.npz", "no file matches this pattern"),
        ("empty", "no file of predictions for"),
    ],
)
def test_files_that_are_not_there_are_named(folders, capsys, monkeypatch, word, sentence):
    (folders / "empty").mkdir()
    monkeypatch.chdir(folders)
    assert main(["compare-files", word]) == 2
    assert sentence in capsys.readouterr().err


def test_a_pattern_may_be_of_folders_and_files_of_every_kind(folders, capsys):
    (folders / "tables").mkdir()
    for seed, file in enumerate(sorted((folders / "ce").glob("*.npz"))):
        write_predictions(read_predictions(file), folders / "tables" / f"{seed}.tsv")
    words = [f"all={folders / '*'}/?.npz", f"few={folders / 'tables'}", "--resamples", "20", "--json"]
    assert main(["compare-files", *words]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    seeds = {(row["method"], row["seed"]) for row in rows}
    assert seeds == {("all", 0), ("all", 1), ("all", 2), ("all", 3), ("few", 0), ("few", 1)}


def test_a_folder_is_no_pattern_whatever_its_name_holds(folders, capsys):
    (folders / "ce").rename(folders / "ce[1]")
    assert (
        main(
            ["compare-files", f"a={folders}/ce[1]/*.npz", f"b={folders}/focal", "--resamples", "20", "--json"]
        )
        == 0
    )
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {(row["method"], row["seed"]) for row in rows} == {(m, s) for m in "ab" for s in (0, 1)}


def test_an_equals_sign_in_a_path_is_no_name(folders, capsys, monkeypatch):
    monkeypatch.chdir(folders)
    (folders / "ce").rename("lr=0.1")
    (folders / "focal").rename("lr=0.01")
    for words in (
        ["lr=0.1/0.npz", "lr=0.01/0.npz"],
        ["lr=0.1", "lr=0.01"],
        ["lr=0.1/*.npz", "lr=0.01/?.npz"],
    ):
        assert main(["compare-files", *words, "--resamples", "20", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert {row["method"] for row in rows} == {"lr=0.1", "lr=0.01"}
    assert main(["compare-files", "lr=0.1/7.npz"]) == 2
    assert "lr=0.1/7.npz" in capsys.readouterr().err


def test_two_folders_of_one_name_are_not_one_method(folders, capsys, monkeypatch):
    monkeypatch.chdir(folders)
    (folders / "again").mkdir()
    (folders / "focal").rename("again/ce")
    assert main(["compare-files", "ce/0.npz", "again/ce/0.npz"]) == 2
    assert "two folders are called 'ce'" in capsys.readouterr().err
    assert main(["compare-files", "ce", "other=again/ce", "--resamples", "20", "--json"]) == 0
    assert {row["method"] for row in json.loads(capsys.readouterr().out)["rows"]} == {"ce", "other"}
