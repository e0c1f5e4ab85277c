"""Losses of 2021 to 2025 against worked values and gradients, most of them equal to the authors' own code."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from equipoise import losses
from equipoise.calibrators import FocalRecovery, FocalTemperatureScaling
from equipoise.core.array_functions import log_softmax

GOLDEN = json.loads((Path(__file__).parent / "new_methods.json").read_text())
MODULES = {
    "maxsup_0.1": losses.MaxSuppressionLoss(),
    "acls_m1": losses.AdaptiveConditionalLoss(margin=1.0),
    "acls_m10": losses.AdaptiveConditionalLoss(),
    "bsce_g2_n2": losses.BrierWeightedLoss(gamma=2, norm=2),
    "bsce_gra_g2_n2": losses.BrierWeightedLoss(gamma=2, norm=2, detach_weight=True),
    "bsce_gra_g3_n1": losses.BrierWeightedLoss(gamma=3, detach_weight=True),
    "focal_gra_g3": losses.FocalLoss(gamma=3, detach_weight=True),
    "logit_norm_T0.04": losses.LogitNormLoss(),
    "poly1_e1": losses.Poly1Loss(),
    "logit_penalty_0.002": losses.LogitL2Loss(),
}


#: Probabilities after a focal loss is undone, without and with a temperature.
MAPS = {
    "focal_map_g3": (3.0, 1.0),
    "focal_ts_g2_T1.5": (2.0, 1.5),
}


def test_every_case_is_tested():
    assert {*MODULES, *MAPS} == set(GOLDEN["cases"])


@pytest.mark.parametrize("name", MAPS)
def test_focal_maps(name):
    gamma, temperature = MAPS[name]
    logits = torch.tensor(GOLDEN["logits"], dtype=torch.float64).numpy() / temperature
    found = FocalRecovery(gamma=gamma)(logits)
    assert found == pytest.approx(np.array(GOLDEN["cases"][name]), abs=1e-9)
    if temperature != 1:
        fitted = FocalTemperatureScaling().fit(logits, GOLDEN["labels"])
        parameters = {"temperature": np.array(temperature), "gamma": np.array(gamma)}
        log_probs = log_softmax(fitted._map(np.array(GOLDEN["logits"]), parameters))
        assert np.exp(log_probs) == pytest.approx(np.array(GOLDEN["cases"][name]), abs=1e-9)


@pytest.mark.parametrize("name", MODULES)
def test_value_and_gradient(name):
    logits = torch.tensor(GOLDEN["logits"], dtype=torch.float64, requires_grad=True)
    value = MODULES[name](logits, torch.tensor(GOLDEN["labels"]))
    wanted = GOLDEN["cases"][name]
    assert value.item() == pytest.approx(wanted["value"], abs=1e-9)
    gradient = torch.tensor(wanted["grad"], dtype=torch.float64)
    torch.testing.assert_close(torch.autograd.grad(value, logits)[0], gradient, rtol=1e-7, atol=1e-9)
