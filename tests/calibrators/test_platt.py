"""Platt scaling."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.calibrators import PlattScaling
from helpers.calibration_data import probs, sample


def test_two_rates_by_hand() -> None:
    # At log-odds +2 the rate is 3/4, at -2 it is 1/4: slope log(3)/2, offset 0.
    calibrator = PlattScaling(smooth_targets=False).fit([2.0] * 4 + [-2.0] * 4, [1, 1, 1, 0, 0, 0, 0, 1])
    assert calibrator.result.parameters["slope"][1] == pytest.approx(np.log(3) / 2, rel=1e-6)
    assert calibrator.result.parameters["offset"][1] == pytest.approx(0.0, abs=1e-6)
    assert calibrator([2.0])[0] == pytest.approx(np.log(3), rel=1e-6)


def test_both_classes_of_a_binary_problem_agree() -> None:
    logits, labels = sample(200, 2)
    parameters = PlattScaling().fit(logits, labels).result.parameters
    assert parameters["slope"][0] == pytest.approx(parameters["slope"][1], rel=1e-6)
    assert parameters["offset"][0] == pytest.approx(-parameters["offset"][1], abs=1e-6)


def test_smooth_targets_keep_separable_rows_finite() -> None:
    calibrator = PlattScaling().fit([4.0] * 8 + [-4.0] * 8, [1] * 8 + [0] * 8)
    # Platt's target for eight of eight is 9/10.
    assert (
        1 / (1 + np.exp(-calibrator([4.0])[0])) == pytest.approx(0.9, abs=1e-6) or calibrator.result.identity
    )


def test_the_logistic_gradient_is_nothing() -> None:
    logits, labels = sample(300, 3)
    calibrator = PlattScaling(smooth_targets=False).fit(2 * logits, labels)
    p = probs(2 * logits)
    odds = np.log(p) - np.log1p(-p)
    parameters = calibrator.result.parameters
    rate = 1 / (1 + np.exp(-(parameters["slope"] * odds + parameters["offset"])))
    residual = rate - np.eye(3)[labels]
    assert np.abs(residual.mean(0)).max() < 1e-8
    assert np.abs((residual * odds).mean(0)).max() < 1e-7


def test_rows_are_normalized_rates() -> None:
    logits, labels = sample(300, 3)
    calibrator = PlattScaling().fit(logits, labels)
    rates = np.exp(calibrator(logits))
    np.testing.assert_allclose(probs(calibrator(logits)), rates / rates.sum(1, keepdims=True), rtol=1e-9)
