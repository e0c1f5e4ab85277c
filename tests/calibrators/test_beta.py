"""Beta calibration."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.calibrators import BetaCalibration, PlattScaling
from helpers.calibration_data import sample
from helpers.golden import SECOND, arrays, expected


def test_golden_values() -> None:
    want = expected("beta.R.0")
    calibrator = BetaCalibration().fit(*arrays("R"))
    found = {name: value[0] for name, value in calibrator.result.parameters.items()}
    for name in "abc":
        assert found[name] == pytest.approx(want[name], rel=1e-3, abs=1e-9)
    rates = np.exp(calibrator(SECOND))[:, 0]
    np.testing.assert_allclose(rates, want["S_first3"][:2], rtol=2e-3)


def test_the_rate_of_the_fit_rows_has_the_golden_likelihood() -> None:
    logits, labels = arrays("R")
    rate = np.exp(BetaCalibration().fit(logits, labels)(logits))[:, 0]
    hit = labels == 0
    nll = -(np.log(rate[hit]).sum() + np.log1p(-rate[~hit]).sum()) / len(labels)
    assert nll == pytest.approx(expected("beta.R.0")["nll"], rel=1e-6)


def test_coefficients_are_never_negative() -> None:
    for seed in range(10):
        logits, labels = sample(40, 3, seed=seed)
        parameters = BetaCalibration().fit(-logits, labels).result.parameters
        assert (parameters["a"] >= 0).all()
        assert (parameters["b"] >= 0).all()


def test_equal_coefficients_are_platt_scaling() -> None:
    # a = b makes logit(mu) = a logit(p) + c.
    logits, labels = sample(4000, 2)
    beta = BetaCalibration().fit(2 * logits, labels)
    platt = PlattScaling(smooth_targets=False).fit(2 * logits, labels)
    assert beta.result.nll_after <= platt.result.nll_after + 1e-9


def test_certain_rows_are_not_clipped() -> None:
    column = np.array([800.0, 900.0, -800.0, -900.0, 1.0, -1.0])
    calibrator = BetaCalibration().fit(column, [1, 1, 0, 0, 1, 0])
    assert np.isfinite(calibrator(column)).all()
    assert calibrator([900.0])[0] >= calibrator([800.0])[0]
