"""The file of differences that a comparison writes: the verdicts of its table, whole and tidy."""

import csv

import pytest

from equipoise.experiments import ComparisonSpec, run_comparison
from helpers.tiny_runs import QUICK, TABLE

SPEC = ComparisonSpec.from_table(
    {**TABLE, "method": ["ce", "focal", "brier"], "seed": [0, 1], "recipe": {"name": "quick", "epochs": 1}}
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("differences")
    return folder, run_comparison(SPEC, folder, **QUICK, workers=1)


def test_rows_are_the_differences_of_the_table(finished):
    folder, outcome = finished
    with (folder / "comparison.differences.csv").open(newline="") as stream:
        rows = {(row["method"], row["calibrator"], row["metric"]): row for row in csv.DictReader(stream)}
    [table] = outcome.tables
    found = {
        (row.method, row.calibrator, metric): (row, one)
        for row in table.rows
        for metric, one in row.differences.items()
    }
    assert rows.keys() == found.keys()
    for key, (row, one) in found.items():
        for name in ("difference", "low", "high", "p_value"):
            assert float(rows[key][name]) == getattr(one, name)
        assert int(rows[key]["comparisons"]) == 2
        assert rows[key]["baseline"] == "ce"
        if key[2] in row.versus:
            assert rows[key]["verdict"] == row.versus[key[2]]


def test_one_method_leaves_no_file(tmp_path):
    alone = ComparisonSpec.from_table({**TABLE, "recipe": {"name": "quick", "epochs": 1}})
    run_comparison(alone, tmp_path, **QUICK, workers=1)
    assert not list(tmp_path.glob("*.differences.csv"))
