"""`--cluster` on the command line."""

import json

import numpy as np
import pytest

from equipoise import write_predictions
from helpers.cluster_trials import Design, draw_models
from helpers.command_line import run

FEW = ("--resamples", "60")
LINE = "Intervals resample 12 clusters (cluster), not 600 rows: design effect"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, model in zip("ab", draw_models(np.random.default_rng(1), Design("", (50,) * 12)), strict=True):
        (tmp_path / name).mkdir()
        write_predictions(model, f"{name}.npz")
        write_predictions(model, f"{name}/0.csv")
    return tmp_path


@pytest.mark.parametrize("command", ["score", "audit"])
def test_scores_name_the_clusters(files, capsys, command):
    code, out, _ = run(capsys, command, "a.npz", "--cluster", "cluster", *FEW)
    assert code == 0
    assert LINE in out
    assert "Groups by cluster" not in out
    found = json.loads(run(capsys, command, "a.npz", "--cluster", "cluster", "--json", *FEW)[1])
    assert {key: found["clusters"][key] for key in ("column", "n_clusters")} == {
        "column": "cluster",
        "n_clusters": 12,
    }
    assert found["clusters"]["design_effect"] > 2
    plain = json.loads(run(capsys, command, "a.npz", "--json", *FEW)[1])
    assert "clusters" not in plain
    wide, narrow = (one["scores"]["accuracy"]["high"] for one in (found, plain))
    assert wide > narrow


def test_an_audit_slices_by_clusters_if_asked(files, capsys):
    out = run(capsys, "audit", "a.npz", "--cluster", "cluster", "--by", "cluster", *FEW)[1]
    assert LINE in out
    assert "Groups by cluster" in out


def test_several_files_are_one_set_of_clusters(files, capsys):
    found = json.loads(run(capsys, "audit", "a.npz", "b.npz", "--cluster", "cluster", "--json", *FEW)[1])
    assert (found["settings"]["n_samples"], found["clusters"]["n_clusters"]) == (1200, 12)


def test_gates_hold_the_wider_interval_against_limits(files, capsys):
    high = json.loads(run(capsys, "audit", "a.npz", "--json", *FEW)[1])["scores"]["ece"]["high"]
    limit = ("--max", f"ece={high + 0.001}")
    assert run(capsys, "audit", "a.npz", *limit, *FEW)[0] == 0
    assert run(capsys, "audit", "a.npz", "--cluster", "cluster", *limit, *FEW)[0] == 1


def test_a_baseline_is_compared_by_clusters(files, capsys):
    words = ("audit", "a.npz", "--against", "b.npz", "--not-worse", "accuracy=20%", "--json", *FEW)
    code, out, _ = run(capsys, *words, "--cluster", "cluster")
    assert code in (0, 1)
    found, plain = json.loads(out), json.loads(run(capsys, *words)[1])
    wide, narrow = (
        next(row for row in one["comparison"] if row["metric"] == "accuracy") for one in (found, plain)
    )
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]


def test_files_of_seeds_are_compared_by_clusters(files, capsys):
    code, out, _ = run(capsys, "compare-files", "a", "b", "--cluster", "cluster", *FEW)
    assert code == 0
    assert "resample 12 clusters (cluster)" in " ".join(out.split())
    found = json.loads(run(capsys, "compare-files", "a", "b", "--cluster", "cluster", "--json", *FEW)[1])
    assert found["clusters"]["n_clusters"] == 12


def test_a_report_names_the_clusters(files, capsys):
    assert run(capsys, "report", "a.npz", "b.npz", "--cluster", "cluster", "-o", "page.html", *FEW)[0] == 0
    page = (files / "page.html").read_text(encoding="utf-8")
    assert LINE in page
    assert "--cluster cluster" in page


def test_sums_keep_no_clusters(files, capsys):
    assert run(capsys, "audit", "a.npz", "--save-state", "a.state", *FEW)[0] == 0
    cluster = ("--cluster", "cluster")
    for words in (
        ("audit", "a.npz", "--save-state", "b.state"),
        ("audit", "a.state"),
        ("audit", "a.npz", "--against", "a.state"),
        ("audit", "a.npz", "--engine", "ray"),
        ("score", "a.state"),
        ("score", "a.npz", "--engine", "ray"),
        ("report", "a.state"),
    ):
        code, _, err = run(capsys, *words, *cluster)
        assert code == 2, words
        assert "--cluster needs rows" in err, words
        assert "keeps no clusters" in err
    assert not (files / "b.state").exists()


def test_a_column_that_is_not_there_is_named(files, capsys):
    code, _, err = run(capsys, "audit", "a.npz", "--cluster", "clustre", *FEW)
    assert code == 2
    assert "clustre" in err
    assert "Did you mean" in err
