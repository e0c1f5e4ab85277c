"""Ensembles, averaged weights and their relatives in one comparison: trained, calibrated, scored and read again."""

import pytest
import torch

from equipoise.core.errors import SpecError
from equipoise.experiments import ComparisonSpec, Spec, run_comparison
from equipoise.experiments.build.run_parts import build
from helpers.tiny_runs import QUICK, TABLE

METHODS = [
    {"name": "deep_ensemble", "options": {"n_members": 2, "calibrate": "spread"}},
    {"name": "focal", "recipe": {"members": 2, "calibrate_members": "before"}},
]
MORE = [
    {"name": "snapshot_ensemble", "options": {"n_snapshots": 2}},
    {"name": "distilled_ensemble", "options": {"n_members": 2}},
    "mc_dropout",
    "last_layer_laplace",
    {"name": "bsce_gra", "recipe": {"average": "ema", "sam": 0.05}},
    {"name": "maxsup", "recipe": {"average": "swa"}},
]


def compare(methods, folder):
    recipe = {**TABLE["recipe"], "epochs": 2}
    table = {**TABLE, "recipe": recipe, "method": methods, "calibrators": ["temperature", "sms"]}
    return run_comparison(ComparisonSpec.from_table(table), folder, **QUICK, workers=1)


def test_calibrated_members_go_through_a_comparison(tmp_path):
    done = compare(METHODS, tmp_path).summary.done
    assert len(done) == 2
    for run in done:
        raw, scaled, sms = (run.scores(key).test for key in ("identity", "temperature", "sms"))
        assert raw.n_samples == scaled.n_samples == sms.n_samples
        network = torch.load(run.path / "last.pt", weights_only=False)["objective"]
        scales, spread = network["calibration.scales"], network["calibration.spread"]
        assert not torch.equal(scales, torch.ones(2))
        assert (spread == 1) == (run.spec().method.name == "focal")
        # One temperature is left to do next to nothing.
        assert 0.5 < run.scores("temperature").temperature < 2


@pytest.mark.slow
def test_every_relative_of_an_ensemble_goes_through_a_comparison(tmp_path):
    done = compare(MORE, tmp_path).summary.done
    assert len(done) == len(MORE)
    for run in done:
        for key in ("identity", "temperature", "sms"):
            assert run.scores(key).test.n_samples > 0


def test_members_are_calibrated_only_where_there_are_some():
    for recipe in (
        {"calibrate_members": "spread"},
        {"calibrate_members": "before", "members": 2, "average": "ema"},
    ):
        with pytest.raises(SpecError, match="needs `members` above 1 and no `average`"):
            Spec.from_table({**TABLE, "recipe": {**TABLE["recipe"], **recipe}})
    with pytest.raises(SpecError, match="calibrate_members"):
        Spec.from_table({**TABLE, "recipe": {**TABLE["recipe"], "members": 2, "calibrate_members": "both"}})
    plain = build(Spec.from_table({**TABLE, "recipe": {**TABLE["recipe"], "members": 2}}))
    assert plain.objective.calibration is None
