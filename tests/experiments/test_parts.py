"""Parts of a comparison: disjoint, complete, and the same results as one command, also at the same time."""

import json
import threading

import pytest

from equipoise.cli import main
from equipoise.experiments import ComparisonSpec, run_comparison
from equipoise.experiments.comparison import part_of
from equipoise.experiments.runs.finding import find_runs
from helpers.tiny_runs import QUICK, TABLE

GRID = {
    **TABLE,
    "name": "grid",
    "method": ["ce", {"name": "focal", "choose": {"gamma": [1.0, 3.0]}}],
    "seed": [0, 1],
    "recipe": {"name": "quick", "epochs": 1},
}
FILES = ("grid.results.csv", "grid.table.md", "grid.choices.json", "grid.differences.csv")


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
def test_parts_are_disjoint_and_complete(n_parts):
    specs = ComparisonSpec.from_table(GRID).specs
    parts = [part_of(specs, (number, n_parts)) for number in range(1, n_parts + 1)]
    assert sorted(spec.identity for part in parts for spec in part) == sorted(s.identity for s in specs)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parts == [part_of(specs, (number, n_parts)) for number in range(1, n_parts + 1)]


def test_parts_at_the_same_time_give_the_results_of_one_command(tmp_path):
    comparison = ComparisonSpec.from_table(GRID)
    results = {}

    def work(number):
        results[number] = run_comparison(comparison, tmp_path / "parts", **QUICK, workers=1, part=(number, 2))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = run_comparison(comparison, tmp_path / "whole", **QUICK, workers=1)
    assert any(result.tables for result in results.values())  # the last one to finish
    names = [[one.name for one in find_runs(tmp_path / folder)] for folder in ("parts", "whole")]
    assert names[0] == names[1]
    for file in FILES:
        assert (tmp_path / "parts" / file).read_text() == (tmp_path / "whole" / file).read_text()
    assert len(whole.summary.done) == 6


def test_a_part_leaves_the_results_to_the_last_one(tmp_path, capsys):
    spec = tmp_path / "grid.toml"
    spec.write_text(
        'data = "digits"\nmodel = { name = "mlp", options = { hidden = [8] } }\nmethod = ["ce", "brier"]\n'
        'recipe = { name = "quick", epochs = 1 }\n'
    )
    command = ["compare", str(spec), "--out", str(tmp_path / "runs"), "--resamples", "20", "--workers", "1"]
    assert main([*command, "--part", "1/2", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["part"], len(first["runs"]), first["left"], first["failed"]) == ("1/2", 1, 1, {})
    assert not (tmp_path / "runs" / "grid.results.csv").exists()
    assert main([*command, "--part", "1/2"]) == 0
    assert "1 runs of the comparison are left" in capsys.readouterr().out
    assert main([*command, "--part", "2/2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"]
    assert (tmp_path / "runs" / "grid.results.csv").exists()
    assert main(["table", str(tmp_path / "runs")]) == 0
    assert "brier" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["0/2", "3/2", "2", "a/b", "1/0"])
def test_a_part_that_does_not_exist_is_bad_usage(part, tmp_path, capsys):
    assert main(["compare", str(tmp_path / "grid.toml"), "--part", part]) == 2
    assert "expected i/n with i from 1 to n" in capsys.readouterr().err


def test_python_counts_parts_from_one(tmp_path):
    with pytest.raises(ValueError, match="Count parts from 1"):
        run_comparison(ComparisonSpec.from_table(GRID), tmp_path, part=(0, 2))
