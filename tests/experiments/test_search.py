"""Settings that are sought on tune with Optuna: ordinary runs, the same when it is repeated; test takes no part."""

import json

import pytest

from equipoise.core.errors import SpecError
from equipoise.evaluate.selection import selection_value
from equipoise.experiments import ComparisonSpec, find_runs, make_tables, report_of_runs, run_comparison
from equipoise.experiments.specs.tuning import parse_tuned_method
from equipoise.experiments.tuning.samplers import first_settings
from equipoise.plots import draw_sweep
from equipoise.report import to_html
from helpers.tiny_runs import QUICK, TABLE

pytest.importorskip("optuna")

SPACE = {"gamma": {"low": 0.0, "high": 6.0}}
CHOICE = {"name": "focal", "choose": SPACE, "search": "optuna", "trials": 4}
LABEL = "focal(gamma by nll)"


def compare(folder, choice=CHOICE, **more):
    recipe = {"name": "quick", "epochs": 1}
    table = {**TABLE, "name": "tiny", "method": ["ce", choice], "recipe": recipe, "seed": [0, 1], **more}
    return run_comparison(ComparisonSpec.from_table(table), folder, **QUICK, workers=1)


def chosen(folder):
    return json.loads((folder / "tiny.choices.json").read_text())["choices"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sought")
    return folder, compare(folder)


def test_every_seed_seeks_its_own_settings_and_the_best_on_tune_stands_in_the_table(finished):
    folder, outcome = finished
    assert len(outcome.summary.done) == 2 * (1 + 4)
    runs = {run.name: run for run in find_runs(folder)}
    one, other = chosen(folder)
    assert one["settings"] != other["settings"]
    for found in (one, other):
        assert found["settings"][0] == {"gamma": 0.0}, "it begins at the low end"
        assert all(0 <= setting["gamma"] <= 6 for setting in found["settings"])
        values = [selection_value(runs[name].predictions("tune"), metric="nll") for name in found["runs"]]
        assert found["index"] == values.index(min(values))
    [table] = outcome.tables
    assert {row.method for row in table.rows} == {"ce", LABEL}
    assert table.notes[0].endswith("chosen on tune by nll, the best; 8 runs.")
    assert make_tables(find_runs(folder)) == outcome.tables


def test_a_search_that_is_given_again_finds_its_runs_done(finished):
    folder, before = finished
    marks = {file: file.stat().st_mtime_ns for file in folder.glob("*/last.pt")}
    again = compare(folder)
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*/last.pt")} == marks
    assert again.tables == before.tables


def test_the_picture_and_the_report_show_all_that_was_tried(finished):
    folder, _ = finished
    [report] = report_of_runs(find_runs(folder)).values()
    [sweep] = report.sweeps
    assert (len(sweep.settings), sum(sweep.chosen)) == (8, 2)
    across = draw_sweep(sweep).lines[0].get_xdata()
    assert list(across) == sorted(across), "lines go from left to right"
    assert sweep.words in to_html(report)


def test_lists_whole_numbers_and_several_space():
    space = {"margin": {"low": 2, "high": 12, "step": 2}, "strength": {"low": 0.01, "high": 1.0, "log": True}}
    choice = parse_tuned_method(
        {"name": "mbls", "choose": {**space, "over_classes": ["mean", "sum"]}, "trials": 3}, where="doc"
    )
    assert first_settings(choice) == [{"margin": 2, "strength": 0.01, "over_classes": "mean"}]
    assert (choice.rule, choice.sampler, choice.trials) == ("best", "optuna", 3)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"search": "optna"}, "Did you mean 'optuna'"),
        ({"trials": 1}, "at least 2"),
        ({"rule": "one_standard_error"}, "has no simplest setting"),
        ({"choose": {"gamma": {"low": 3.0, "high": 1.0}}}, "low below high"),
        ({"choose": {"gamma": {"low": 0.0, "high": 1.0, "log": True}}}, "numbers above 0"),
        ({"choose": {"gamma": {"low": 0.0, "hihg": 1.0}}}, "low = .., high = .."),
        ({"choose": {"gamma": 3.0}}, "or a range"),
    ],
)
def test_mistakes_are_told_before_anything_runs(changes, sentence):
    with pytest.raises(SpecError, match=sentence):
        ComparisonSpec.from_table({**TABLE, "method": [{**CHOICE, **changes}]})


def test_a_range_needs_a_search():
    with pytest.raises(SpecError, match="a list of values that differ, the simplest first"):
        ComparisonSpec.from_table({**TABLE, "method": [{"name": "focal", "choose": SPACE}]})
