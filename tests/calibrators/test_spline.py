"""Spline calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import make_lsq_spline

from equipoise.calibrators import SplineCalibration
from equipoise.calibrators.spline import fit_spline
from equipoise.core.errors import DataError
from helpers.calibration_data import probs, sample


def test_a_quadratic_error_has_a_linear_correction() -> None:
    # Right with probability 1/2 at every confidence c: the best correction is c -> 1/2.
    confidence = np.linspace(0.2, 1.0, 2001)
    knots, values = fit_spline(confidence, np.tile([1.0, 0.0], 1001)[:2001], n_knots=6)
    np.testing.assert_allclose(values[200:-200], 0.5, atol=0.02)  # a natural spline is straight at its ends
    np.testing.assert_array_equal(knots, confidence)


def test_the_spline_is_natural_and_least_squares() -> None:
    # The same fit with B-splines, whose second derivative is forced to 0 at both ends by a heavy weight.
    rng = np.random.default_rng(0)
    confidence = np.sort(rng.random(300))
    correct = (rng.random(300) < confidence**2).astype(float)
    error = np.cumsum(correct - confidence) / 300
    t = np.linspace(0, 1, 300)
    inner = np.linspace(0, 1, 6)[1:-1]
    full = make_lsq_spline(t, error, np.r_[[0.0] * 4, inner, [1.0] * 4], k=3)
    basis = [np.eye(len(full.c))[i] for i in range(len(full.c))]
    design = np.stack([type(full)(full.t, one, 3)(t) for one in basis], 1)
    ends = np.stack([type(full)(full.t, one, 3).derivative(2)([0.0, 1.0]) for one in basis], 1)
    coefficients = np.linalg.lstsq(np.vstack([design, 1e4 * ends]), np.r_[error, 0, 0], rcond=None)[0]
    slope = type(full)(full.t, coefficients, 3).derivative(1)(t)
    _, values = fit_spline(confidence, correct, n_knots=6)
    np.testing.assert_allclose(values, np.clip(confidence + slope, 0, 1), atol=1e-4)


def test_between_two_confidences_the_nearer_counts_more() -> None:
    # The published code has this the wrong way round.
    logits, labels = sample(40, 2)
    calibrator = SplineCalibration().fit(3 * logits, labels)
    knots, values = (calibrator.result.parameters[name][0] for name in ("knots", "values"))
    gap = int(np.argmax(np.diff(knots)))
    asked = knots[gap] + 0.1 * (knots[gap + 1] - knots[gap])
    answer = calibrator(np.log([[asked, 1 - asked]]))[0, 0]
    assert answer == pytest.approx(0.9 * values[gap] + 0.1 * values[gap + 1], rel=1e-9)


def test_outside_the_range_the_ends_hold() -> None:
    logits, labels = sample(200, 3)
    calibrator = SplineCalibration().fit(logits, labels)
    last = calibrator.result.parameters["values"][0, -1]
    assert calibrator(np.array([[100.0, 0.0, 0.0]]))[0, 0] == pytest.approx(last)


def test_equal_confidences_share_one_answer_whatever_their_order() -> None:
    confidence = np.array([0.6, 0.6, 0.6, 0.9, 0.9])
    one = fit_spline(confidence, np.array([1.0, 0.0, 0.0, 1.0, 0.0]), n_knots=3)
    two = fit_spline(confidence, np.array([0.0, 0.0, 1.0, 0.0, 1.0]), n_knots=3)
    np.testing.assert_allclose(one[1], two[1])


def test_parts_of_rows_are_refused() -> None:
    logits, labels = sample(20, 3)
    with pytest.raises(DataError, match="whole numbers"):
        SplineCalibration().fit(logits, labels, np.full(20, 0.5))


def test_the_confidence_is_what_the_curve_says() -> None:
    logits, labels = sample(300, 3)
    calibrator = SplineCalibration().fit(3 * logits, labels)
    before = probs(3 * logits)
    after = np.take_along_axis(calibrator(3 * logits), before.argmax(1)[:, None], 1)[:, 0]
    parameters = calibrator.result.parameters
    np.testing.assert_allclose(
        after, np.interp(before.max(1), parameters["knots"][0], parameters["values"][0]), rtol=1e-9
    )
