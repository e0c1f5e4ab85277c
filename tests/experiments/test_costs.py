"""What methods cost, in the table when it is asked for."""

import pytest

from equipoise.experiments import ComparisonSpec, RunFolder, format_tables, make_tables, run_comparison
from equipoise.experiments.results.costs import Cost, cost_cells
from equipoise.experiments.results.means import Cell
from helpers.tiny_runs import QUICK, TABLE

COSTS = ["accuracy", "ece", "seconds", "parameters", "ece_gain"]


def cell(mean):
    return Cell(mean=mean)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    table = {
        **TABLE,
        "name": "costs",
        "method": [
            "ce",
            {"name": "deep_ensemble", "options": {"n_members": 3}},
            "gamma_net",
            {"name": "focal", "choose": {"gamma": [1.0, 3.0]}},
        ],
        "metrics": COSTS,
        "recipe": {"name": "quick", "epochs": 1},
    }
    return run_comparison(ComparisonSpec.from_table(table), folder, **QUICK, workers=1)


def rows(outcome):
    [table] = outcome.tables
    return {row.method: row for row in table.rows if row.calibrator == "identity"}


def test_all_that_is_learned_is_counted_helpers_included(finished):
    known = {method: row.cells["parameters"].mean for method, row in rows(finished).items()}
    network = 64 * 16 + 16 + 16 * 10 + 10
    gammas = 16 * 128 + 128 + 128 + 1
    chosen = next(name for name in known if name.startswith("focal"))
    assert known == {
        "ce": network,
        "deep_ensemble(n_members=3)": 3 * network,
        "gamma_net": network + gammas,
        chosen: network,
    }


def test_seconds_are_those_of_the_history_and_of_a_choice_of_all_runs_tried(finished):
    runs = {run.spec().method.label: run for run in finished.summary.done}
    spent = {label: sum(row["seconds"] for row in run.history()) for label, run in runs.items()}
    found = {method: row.cells["seconds"].mean for method, row in rows(finished).items()}
    assert found["ce"] == pytest.approx(spent["ce"])
    chosen = next(name for name in found if name.startswith("focal"))
    assert found[chosen] == pytest.approx(spent["focal(gamma=1.0)"] + spent["focal(gamma=3.0)"])


def test_a_cost_is_neither_best_nor_tested(finished):
    for row in rows(finished).values():
        for key in set(COSTS[2:]) & row.cells.keys():
            assert (row.marks[key], row.versus[key]) == ("", "")
    [table] = finished.tables
    for style in ("text", "markdown", "latex", "csv"):
        assert "parameters" in format_tables([table], style)
    assert any("the machine that ran it" in note for note in table.notes)


def test_costs_are_no_columns_unless_they_are_asked_for(finished):
    [table] = make_tables(finished.summary.done)
    assert not {"seconds", "parameters", "ece_gain"} & set(table.metrics)
    assert not any("Seconds" in note for note in table.notes)


def test_gain_by_hand():
    costs = {
        "ce": {0: Cost(10.0, 5), 1: Cost(14.0, 5)},
        "big": {0: Cost(36.0, 9)},
        "same": {0: Cost(12.5, 5)},
    }
    ece = {"ce": cell(0.06), "big": cell(0.02), "same": cell(0.01)}
    # three times the mean of 12 seconds is two trainings on top, for 4 points
    assert cost_cells(costs, label="big", baseline="ce", ece=ece)["ece_gain"].mean == pytest.approx(0.02)
    assert "ece_gain" not in cost_cells(costs, label="same", baseline="ce", ece=ece), "the clock's noise"
    assert "ece_gain" not in cost_cells(costs, label="ce", baseline="ce", ece=ece)
    assert "ece_gain" not in cost_cells(costs, label="big", baseline="ce", ece={"big": cell(0.1)})


def test_runs_of_old_have_no_count(finished, tmp_path):
    [run] = [run for run in finished.summary.done if run.spec().method.name == "ce"]
    record = dict(run.record("trained"))
    assert record.pop("parameters")
    costs = {"ce": {0: Cost(1.0, None)}}
    assert set(cost_cells(costs, label="ce", baseline="ce", ece={})) == {"seconds"}
    assert RunFolder(run.path).record("trained")["parameters"] == 64 * 16 + 16 + 16 * 10 + 10
