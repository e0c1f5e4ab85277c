"""Protocols of papers that differ from ours: one validation set for everything, left-closed bins."""

from dataclasses import replace

import pytest

from equipoise import Predictions
from equipoise.calibrators import TemperatureScaling
from equipoise.core.errors import SpecError, SplitError
from equipoise.data import load, whole_validation
from equipoise.evaluate.selection import select_candidate, selection_value
from equipoise.experiments import ComparisonSpec, Spec, make_tables, run_comparison
from equipoise.experiments.build.run_parts import build
from equipoise.experiments.results.groups import RunGroup
from equipoise.experiments.tuning.choices import SeedChoice
from equipoise.metrics import expected_calibration_error
from helpers import toys
from helpers.tiny_runs import QUICK, TABLE

WHOLE = {"name": "digits", "options": {"noise": 0.3, "validation": "whole"}}


def rows(source):
    return {int(row) for batch in source(**toys.WHERE) for row in batch.index}


def test_the_whole_validation_set_is_both_halves_and_train_and_test_stay():
    halves, whole = load("digits"), load("digits", options={"validation": "whole"})
    assert set(whole.splits) == {"train", "tune", "test"}
    both = set(halves.rows("tune").tolist()) | set(halves.rows("calib").tolist())
    assert set(whole.rows("tune").tolist()) == both
    assert whole.fingerprints["test"] == halves.fingerprints["test"]
    assert whole.fingerprints["train"] == halves.fingerprints["train"]


def test_without_validation_rows_it_is_an_error():
    with pytest.raises(SplitError, match="needs rows in 'tune' or 'calib'"):
        load("digits", options={"tune": 0, "calib": 0, "validation": "whole"})
    digits = load("digits")
    with pytest.raises(SplitError, match="needs rows"):
        whole_validation(replace(digits, splits={"test": digits.rows("test")}))


def test_a_misspelt_protocol_is_reported_with_its_place():
    table = {**TABLE, "data": {"name": "digits", "options": {"validation": "hole"}}}
    with pytest.raises(SpecError, match=r"data\.options: .*`validation` must be 'halves' or 'whole'"):
        Spec.from_table(table)
    with pytest.raises(SpecError, match=r"`closed` must be 'right' or 'left'"):
        ComparisonSpec.from_table({**TABLE, "closed": "both"})


def test_adaptive_training_and_calibrators_use_the_whole_validation_set(tmp_path):
    table = {**TABLE, "data": WHOLE, "method": ["ce", "cals_alm"], "recipe": {"name": "quick", "epochs": 1}}
    comparison = ComparisonSpec.from_table(table)
    assert [one.name for one in comparison.calibrators] == ["identity", "temperature"]
    whole = set(load("digits", options=WHOLE["options"]).rows("tune").tolist())
    assert rows(build(comparison.specs[1]).tune) == whole
    outcome = run_comparison(comparison, tmp_path, **QUICK, workers=1)
    assert outcome.summary.failed == {}
    run = outcome.summary.done[0]
    assert set(run.splits()) == {"tune", "test"}
    wanted = TemperatureScaling().fit(run.predictions("tune")).result.parameters["temperature"]
    assert run.calibrator("temperature").result.parameters["temperature"] == pytest.approx(wanted)
    assert any("whole validation set" in note for note in outcome.tables[0].notes)


def test_the_default_keeps_calibrators_away_from_tune(tmp_path):
    table = {**TABLE, "recipe": {"name": "quick", "epochs": 1}}
    outcome = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    assert set(outcome.summary.done[0].splits()) == {"tune", "calib", "test"}
    assert not any("validation" in note for note in outcome.tables[0].notes)


def test_runs_are_scored_with_left_closed_bins(tmp_path):
    table = {**TABLE, "recipe": {"name": "quick", "epochs": 1}}
    right = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    left = run_comparison(
        ComparisonSpec.from_table({**table, "closed": "left"}), tmp_path, **QUICK, workers=1
    )
    assert [run.name for run in left.summary.done] == [run.name for run in right.summary.done]
    run = left.summary.done[0]
    assert {card.closed for card in run.scores().cards.values()} == {"left"}
    assert run.scores("temperature").test.closed == "left"
    wanted = expected_calibration_error(run.predictions("test"), closed="left")
    assert run.scores().test["ece"].value == pytest.approx(wanted)
    assert "Bins are left-closed." in left.tables[0].notes
    assert "Bins are left-closed." not in right.tables[0].notes
    assert make_tables([run])[0].notes == left.tables[0].notes


def test_runs_of_both_kinds_of_bins_do_not_share_a_table(tmp_path):
    table = {**TABLE, "recipe": {"name": "quick", "epochs": 1}}
    one = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    other = ComparisonSpec.from_table({**table, "method": "focal", "closed": "left"})
    two = run_comparison(other, tmp_path, **QUICK, workers=1)
    with pytest.raises(SpecError, match="15 right-closed and 15 left-closed bins"):
        make_tables([*one.summary.done, *two.summary.done])


def test_settings_are_chosen_with_the_bins_of_the_scores():
    # Confidences on an edge of four bins: which bin they belong to decides the ECE, 0.525 or 0.275.
    edge = Predictions(probs=[[0.75, 0.25]] * 4 + [[0.8, 0.2]] * 4, labels=[0] * 4 + [1] * 4)
    other = edge.with_scores(probs=[[0.775, 0.225]] * 4 + [[0.6, 0.4]] * 4)
    assert selection_value(edge, metric="ece", n_bins=4, closed="right") == pytest.approx(0.525)
    assert selection_value(edge, metric="ece", n_bins=4, closed="left") == pytest.approx(0.275)
    assert selection_value(other, metric="ece", n_bins=4, closed="left") == pytest.approx(0.4125)
    assert select_candidate([edge, other], metric="ece", rule="best", n_bins=4, closed="right") == 1
    assert select_candidate([edge, other], metric="ece", rule="best", n_bins=4, closed="left") == 0


def test_a_group_knows_which_parameters_were_chosen():
    seeds = [SeedChoice(label="m", seed=0, by="ece", rule="best", settings=({"gamma": 1.0},), runs=("a",))]
    group = RunGroup("digits", "mlp", "", {}, {}, {}, {"m": seeds})
    assert group.tuned("m") == ["gamma"]
    assert group.tuned("other") == []


def test_members_of_an_ensemble_in_a_spec_see_subsets_of_the_training_rows():
    ensemble = {"name": "deep_ensemble", "options": {"n_members": 2, "subset": 0.75}}
    built = build(Spec.from_table({**TABLE, "method": ensemble}))
    train = built.data.rows("train")
    assert built.objective.subsets.sum(1).tolist() == [round(0.75 * len(train))] * 2
    assert built.objective.subsets.any(0).nonzero().flatten().tolist() == train.tolist()
