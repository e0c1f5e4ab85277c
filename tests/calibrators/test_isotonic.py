"""Isotonic regression."""

from __future__ import annotations

import numpy as np

from equipoise.calibrators import IsotonicCalibration
from equipoise.calibrators.isotonic import fit_isotonic
from helpers.calibration_data import probs, sample
from helpers.golden import SECOND, arrays, expected


def test_violators_are_pooled_by_hand() -> None:
    knots, values = fit_isotonic(
        np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 1.0]), np.array([1.0, 3.0, 1.0])
    )
    np.testing.assert_allclose(np.interp([1, 2, 3], knots, values), [0.25, 0.25, 1.0])


def test_golden_values_classwise() -> None:
    calibrator = IsotonicCalibration().fit(*arrays("R"))
    want = expected("isotonic.R")
    np.testing.assert_allclose(calibrator(SECOND), want["classwise_norm_S_first3"][:2], atol=1e-8)
    parameters = calibrator.result.parameters
    for j in range(3):
        raw = np.interp(probs(SECOND)[:, j], parameters["knots"][j], parameters["values"][j])
        np.testing.assert_allclose(raw, np.array(want["classwise_raw_S_first3"])[:2, j], atol=1e-8)


def test_golden_values_pooled() -> None:
    parameters = IsotonicCalibration(share="pooled").fit(*arrays("R")).result.parameters
    raw = np.interp(probs(SECOND), parameters["knots"][0], parameters["values"][0])
    np.testing.assert_allclose(raw, expected("isotonic.R")["pooled_raw_S_first3"][:2], atol=1e-8)


def test_curves_rise() -> None:
    logits, labels = sample(400, 4)
    values = IsotonicCalibration().fit(logits, labels).result.parameters["values"]
    assert (np.diff(values, axis=1) >= 0).all()


def test_knots_inside_a_level_stretch_are_dropped() -> None:
    knots, _ = fit_isotonic(np.linspace(0, 1, 50), np.tile([1.0, 0.0], 25), np.ones(50))
    assert len(knots) == 2


def test_the_pooled_curve_keeps_the_order_of_classes() -> None:
    logits, labels = sample(400, 4)
    calibrator = IsotonicCalibration(share="pooled").fit(logits, labels)
    assert calibrator.preserves_order
    assert not IsotonicCalibration().preserves_order
    np.testing.assert_array_equal(np.argsort(calibrator(logits), 1), np.argsort(logits, 1))


def test_rows_that_become_nothing_keep_their_probabilities() -> None:
    # Both curves give 0 at these scores: class 2 took every row.
    logits = np.log([[0.45, 0.45, 0.1]] * 6 + [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    calibrator = IsotonicCalibration().fit(logits, [2] * 6 + [0, 1, 2])
    assert np.isfinite(calibrator(np.log([[0.4, 0.59, 0.01]]))).all()
