"""Settings are chosen on tune, for each seed, by runs like any other; test takes no part."""

import csv
import json
import shutil

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.core.errors import DataError, SpecError
from equipoise.core.writing import write_predictions
from equipoise.evaluate.selection import select_candidate
from equipoise.experiments import (
    ComparisonSpec,
    RunFolder,
    find_runs,
    format_tables,
    make_tables,
    read_spec,
    report_of_runs,
    run_comparison,
)
from equipoise.experiments.specs.tuning import parse_tuned_method
from equipoise.experiments.tuning import study as tuning_study
from equipoise.experiments.tuning.samplers import first_settings
from equipoise.experiments.tuning.study import scale_half
from equipoise.report import to_html, to_markdown
from helpers.tiny_runs import QUICK, TABLE, quick_options

GAMMAS = [0.0, 1.0, 5.0]
CHOICE = {"name": "focal", "choose": {"gamma": GAMMAS}, "by": "nll"}
LABEL = "focal(gamma by nll)"


def table(**more):
    recipe = {"name": "quick", "epochs": 1}
    return {**TABLE, "name": "tiny", "method": ["ce", CHOICE], "recipe": recipe, "seed": [0, 1], **more}


def compare(folder, **more):
    return run_comparison(ComparisonSpec.from_table(table(**more)), folder, **QUICK, workers=1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chosen")
    return folder, compare(folder)


def chosen(folder):
    return json.loads((folder / "tiny.choices.json").read_text())["choices"]


def test_only_the_chosen_run_stands_in_the_table(finished):
    folder, outcome = finished
    assert len(outcome.summary.done) == 2 * (1 + len(GAMMAS))
    [found] = outcome.tables
    assert {row.method for row in found.rows} == {"ce", LABEL}
    assert [one["index"] for one in chosen(folder)].count(None) == 0
    assert found.notes[0].startswith(f"{LABEL}: gamma=")
    assert found.notes[0].endswith(
        "chosen on tune by nll, the simplest within one standard error of the best; 6 runs."
    )
    assert found.notes[0] in format_tables([found], "markdown")
    with (folder / "tiny.results.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["run"] for row in rows if row["chosen_as"]} == {
        one["runs"][one["index"]] for one in chosen(folder)
    }


def test_what_is_in_the_folder_tells_the_same_later(finished):
    folder, outcome = finished
    assert make_tables(find_runs(folder)) == outcome.tables


def test_the_report_shows_every_setting(finished):
    folder, _ = finished
    [report] = report_of_runs(find_runs(folder)).values()
    assert [method.name for method in report.methods] == ["ce", LABEL]
    [sweep] = report.sweeps
    assert sweep.values == tuple(GAMMAS)
    assert sum(sweep.chosen) == 2
    assert all(one.low <= one.value <= one.high for one in (*sweep.tune, *sweep.test))
    assert sweep.words in to_html(report)
    assert "6 runs" in to_markdown(report)


def test_shuffled_test_predictions_leave_the_choice(finished, tmp_path):
    folder, before = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for run in find_runs(tmp_path):
        found = run.predictions("test")
        order = np.random.default_rng(0).permutation(len(found))
        write_predictions(
            found.with_scores(logits=found.logits[order]), run.path / "predictions" / "test.npz"
        )
        record = run.record("predicted")
        run.write_record("predicted", record["files"], splits=record["splits"])
        run.clear_stages("scored")
    after = compare(tmp_path)
    assert [one["index"] for one in chosen(tmp_path)] == [one["index"] for one in chosen(folder)]
    assert [one["test"] for one in chosen(tmp_path)] != [one["test"] for one in chosen(folder)]
    assert after.tables[0].rows[0].cells != before.tables[0].rows[0].cells


def test_a_setting_may_be_listed_too(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    listed = {"name": "focal", "options": {"gamma": 1.0}}
    outcome = compare(tmp_path, method=["ce", CHOICE, listed])
    assert len(outcome.summary.done) == 8, "the listed run is one of those that are tried"
    assert {row.method for row in outcome.tables[0].rows} == {"ce", LABEL, "focal(gamma=1.0)"}


def test_a_comparison_without_choices_forgets_them(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    compare(tmp_path, method=["ce"])
    assert not (tmp_path / "tiny.choices.json").exists()


def test_a_seed_whose_runs_failed_chooses_nothing(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    _, other, lost = chosen(folder)[0]["runs"]
    shutil.rmtree(tmp_path / lost)
    shutil.copytree(folder / other, tmp_path / lost)  # another run under its name is refused
    outcome = compare(tmp_path)
    assert len(outcome.summary.failed) == 1
    assert [one["index"] is None for one in chosen(tmp_path)] == [True, False]
    assert "nothing, because runs are missing (seed 0)" in outcome.tables[0].notes[0]
    [row] = [row for row in outcome.tables[0].rows if (row.method, row.calibrator) == (LABEL, "identity")]
    assert row.cells["nll"].n_seeds == 1


def test_data_without_tune_are_refused_in_a_sentence(tmp_path):
    data = {"name": "digits", "options": {"tune": 0.0}}
    with pytest.raises(DataError, match="chosen on the 'tune' split, and the data have none"):
        compare(tmp_path, data=data, seed=0)


@pytest.mark.parametrize("by", ["nll_scaled", "ece"])
def test_other_judges_choose_among_the_same_runs(finished, tmp_path, by):
    folder, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    compare(tmp_path, method=["ce", {**CHOICE, "by": by}])
    one, other = chosen(tmp_path)[0], chosen(folder)[0]
    assert one["runs"] == other["runs"]
    assert one["tune"] != other["tune"]


def predictions(confidence, n=400):
    labels = np.zeros(n, dtype=int)
    labels[: n // 4] = 1
    probs = np.tile([confidence, 1 - confidence], (n, 1))
    return Predictions(probs=probs, labels=labels, ids=np.arange(n), split="tune")


def test_one_standard_error_prefers_the_simpler():
    clearly_worse, nearly, best = (predictions(value) for value in (0.99, 0.74, 0.75))
    parts = [clearly_worse, nearly, best]
    assert select_candidate(parts, metric="nll", rule="best") == 2
    assert select_candidate(parts, metric="nll", rule="one_standard_error") == 1
    assert select_candidate(parts[:2], metric="ece", rule="one_standard_error") == 1


def test_a_choice_by_ece_has_the_bins_of_the_scores(finished, tmp_path, monkeypatch):
    crossed = Predictions(
        predicted=[1] * 40, confidence=[0.6] * 20 + [0.9] * 20, labels=[1] * 18 + [0] * 2 + [1] * 12 + [0] * 8
    )
    flat = Predictions(predicted=[1] * 40, confidence=[0.75] * 40, labels=[1] * 26 + [0] * 14)
    assert select_candidate([flat, crossed], metric="ece", rule="best", n_bins=1) == 1
    assert select_candidate([flat, crossed], metric="ece", rule="best") == 0
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    asked = []
    monkeypatch.setattr(tuning_study, "select_candidate", lambda *_, **settings: asked.append(settings) or 0)
    spec = ComparisonSpec.from_table(table(method=["ce", {**CHOICE, "by": "ece"}]))
    run_comparison(spec, tmp_path, **quick_options(n_bins=7), workers=1)
    assert [settings["n_bins"] for settings in asked] == [7, 7]


def test_scaling_is_fitted_on_other_rows_than_it_is_judged_by():
    rows = predictions(0.99)
    held, fitted = scale_half(rows)
    assert fitted.kind == "temperature"
    assert len(held) == 200
    assert held.fitted_on is not None
    assert not set(held.fitted_on.hashes.tolist()) & set(held.rows.hashes.tolist())


def test_a_grid_begins_with_the_simplest_of_every_knob():
    grid = {"name": "mbls", "choose": {"margin": [1.0, 2.0], "strength": [0.1, 0.2, 0.3]}}
    settings = [tuple(one.values()) for one in first_settings(parse_tuned_method(grid, where="x"))]
    assert settings == [(1.0, 0.1), (1.0, 0.2), (2.0, 0.1), (1.0, 0.3), (2.0, 0.2), (2.0, 0.3)]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"choose": {}}, "must be a table of hyperparameters"),
        ({"choose": {"gamma": 1.0}}, "must be a list of values that differ"),
        ({"choose": {"gamma": [1.0, 1.0]}}, "must be a list of values that differ"),
        ({"by": "accuracy"}, "`by` must be"),
        ({"rule": "worst"}, "`rule` must be"),
        ({"choose": {"gama": [1.0]}}, "did you mean 'gamma'"),
        ({"choose": {"data.noise": [1.0]}}, "must name options of the method"),
        ({"options": {"gamma": 2.0}}, "is set in `options` already"),
    ],
)
def test_mistakes_are_told_with_their_key(more, sentence):
    with pytest.raises(SpecError, match=sentence):
        ComparisonSpec.from_table(table(method=[{**CHOICE, **more}]))


def test_a_single_run_has_nothing_to_choose(tmp_path):
    file = tmp_path / "one.toml"
    file.write_text(
        'data = "digits"\nmodel = "mlp"\nmethod = { name = "focal", choose = { gamma = [1.0, 2.0] } }\n'
    )
    with pytest.raises(SpecError, match="this is a comparison"):
        read_spec(file)


@pytest.mark.parametrize("content", ["{}", "[]", '{"choices": [1]}', '{"choices": [{}]}'])
def test_damaged_choices_are_named(finished, tmp_path, content):
    folder, _ = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tiny.choices.json").write_text(content)
    with pytest.raises(DataError, match=r"tiny\.choices\.json"):
        make_tables([RunFolder(run.path) for run in find_runs(tmp_path)])


def test_a_choice_that_was_changed_is_not_believed_and_made_anew(finished, tmp_path):
    folder, before = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    choices = chosen(tmp_path)
    choices[0]["index"] = (choices[0]["index"] + 1) % len(GAMMAS)
    (tmp_path / "tiny.choices.json").write_text(json.dumps({"choices": choices}))
    with pytest.raises(DataError, match=r"tiny\.choices\.json: damaged"):
        make_tables(find_runs(tmp_path))
    assert compare(tmp_path).tables == before.tables
    assert chosen(tmp_path) == chosen(folder)


def test_a_knob_of_a_part_of_a_sum_and_a_title():
    one = {"name": "focal+0.5*mdca", "title": "mine", "choose": {"focal.gamma": [1.0, 2.0]}}
    found = ComparisonSpec.from_table(table(method=["ce", one], seed=0))
    assert found.methods == ("ce", "mine")
    assert [spec.method.options for spec in found.specs[1:]] == [
        {"focal": {"gamma": 1.0}},
        {"focal": {"gamma": 2.0}},
    ]


def test_a_setting_of_ones_own_loss_is_chosen_on_shifted_sets_and_maps_with_options(tmp_path):
    (tmp_path / "loss.py").write_text(
        "import torch\n\n\ndef smooth(logits, labels, *, by=0.0):\n"
        "    return torch.nn.functional.cross_entropy(logits, labels, label_smoothing=by)\n"
    )
    own = {"name": "loss.py:smooth", "title": "own", "choose": {"by": [0.0, 0.2]}}
    tried = {"name": "loss.py:smooth", "options": {"by": 0.2}, "title": "much"}
    asked = table(
        method=["ce", tried, own],
        seed=0,
        calibrators=[{"name": "histogram", "options": {"n_bins": 5}}],
        shift=[{"corruption": "gaussian_noise", "severity": 3}],
        metrics=["nll", "sece"],
    )
    spec = ComparisonSpec.from_table(asked, base_dir=str(tmp_path))
    outcome = run_comparison(spec, tmp_path / "runs", **QUICK, workers=1)
    assert outcome.summary.is_whole
    assert len(outcome.summary.done) == 3
    [found] = outcome.tables
    assert [row.method for row in found.rows if row.calibrator == "identity"] == ["ce", "much", "own"]
    assert all("sece" in row.cells for row in found.rows)
    assert found.notes[0].startswith("own: by=")
    run = outcome.summary.done[0]
    assert "test-gaussian_noise_3" in run.scores("histogram(n_bins=5)").cards


def test_keys_of_the_recipe_are_chosen_too(tmp_path):
    choice = {"name": "ce", "choose": {"recipe.weight_decay": [0.0, 0.1]}, "by": "nll_scaled", "rule": "best"}
    outcome = compare(tmp_path, method=["focal", choice], seed=[0])
    assert outcome.summary.failed == {}
    [one] = chosen(tmp_path)
    assert one["settings"] == [{"recipe.weight_decay": 0.0}, {"recipe.weight_decay": 0.1}]
    decays = {
        run.spec().training.weight_decay for run in outcome.summary.done if run.spec().method.name == "ce"
    }
    assert decays == {0.0, 0.1}
    assert {row.method for row in outcome.tables[0].rows} == {"focal", "ce(weight_decay by nll_scaled)"}


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ({"choose": {"recipe.weight_dcay": [0.0, 1.0]}}, "weight_decay"),
        ({"choose": {"recipe.lr": [0.1, 1.0]}, "recipe": {"lr": 0.2}}, "is set in `recipe` already"),
    ],
)
def test_a_wrong_key_of_the_recipe_is_reported(method, sentence):
    with pytest.raises(SpecError, match=sentence):
        ComparisonSpec.from_table(table(method=[{"name": "ce", **method}]))
