"""Runs in float64 and bfloat16: they train, predict, and repeat in the precision they were saved in."""

import shutil

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.experiments import Spec, run
from equipoise.experiments.build.run_parts import build
from equipoise.experiments.runs.stages import load_network
from equipoise.objectives import Supervised
from equipoise.training import Hardware, Recipe, fit, load_weights, predict
from helpers import toys
from helpers.tiny_runs import QUICK, TABLE, results_of

TRUE = {"64-true": torch.float64, "bf16-true": torch.bfloat16}


def spec_of(precision, keep):
    recipe = {**TABLE["recipe"], "precision": precision, "keep": keep}
    return Spec.from_table({**TABLE, "method": "adafocal", "recipe": recipe})


@pytest.mark.parametrize("keep", ["last", "best"])
@pytest.mark.parametrize("precision", TRUE)
def test_a_run_finishes_and_predicts_the_same_when_repeated(precision, keep, tmp_path):
    found = run(spec_of(precision, keep), tmp_path, **QUICK)
    network = load_network(found, build(found.spec()), found.spec())
    assert {one.dtype for one in network.parameters()} == {TRUE[precision]}
    before = results_of(found)
    found.clear_stages("predicted")
    shutil.rmtree(found.path / "predictions")
    again = run(spec_of(precision, keep), tmp_path, **QUICK)
    assert results_of(again) == before


def test_float64_learns_what_float32_learns_up_to_rounding(tmp_path):
    runs = [run(spec_of(one, "last"), tmp_path, **QUICK) for one in ("32-true", "64-true")]
    one, two = (done.predictions("test").logits for done in runs)
    assert two.dtype == np.float64
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("precision", TRUE)
def test_a_resumed_run_equals_the_straight_one(precision, tmp_path):
    def trained(epochs, folder):
        objective = Supervised(
            toys.make_network(0, plain=True),
            nn.CrossEntropyLoss(),
            recipe=Recipe(optimizer=toys.RECIPE.optimizer),
        )
        hardware = Hardware(accelerator="cpu", devices=1, precision=precision)
        fit(objective, toys.Blobs(), epochs=epochs, hardware=hardware, folder=tmp_path / folder, quiet=True)
        return objective.state_dict()

    straight = trained(3, "straight")
    trained(1, "resumed")
    toys.assert_equal(straight, trained(3, "resumed"))


def test_predict_takes_inputs_in_the_precision_of_the_network():
    network, rows = nn.Linear(2, 3).double(), toys.Blobs(6, shuffle=False)
    found = predict(network, rows(**toys.WHERE))
    np.testing.assert_array_equal(found.logits, network(rows.inputs.double()).detach().numpy())


def test_weights_are_loaded_in_the_precision_they_were_saved_in():
    saved = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double()
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    load_weights(module, saved.state_dict())
    toys.assert_equal(dict(saved.state_dict()), dict(module.state_dict()))
