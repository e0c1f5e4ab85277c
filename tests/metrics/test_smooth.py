import math

import numpy as np
import pytest
from hypothesis import given, settings

from equipoise import Predictions
from equipoise.metrics import CalibrationState, confidence_gap, smooth_calibration_error, smooth_curve
from helpers.metric_samples import draw, rows, top_label


def smoothed(confidence, correct, width, n_grid=4001):
    """The integral of the smoothed residual, with the Gaussian reflected at 0 and 1 image by image."""
    t = np.linspace(0, 1, n_grid)
    reach = 2 + math.ceil(6 * width)
    total = np.zeros(n_grid)
    for c, a in zip(confidence, correct, strict=True):
        for image in range(-reach, reach + 1):
            for center in (2 * image + c, 2 * image - c):
                total += (c - a) * np.exp(-0.5 * ((t - center) / width) ** 2)
    density = np.abs(total) / (len(correct) * width * math.sqrt(2 * math.pi))
    return float(np.trapezoid(density, t))


def test_value_by_hand():
    # All residuals at one confidence have one sign after summing: smoothing moves them, and loses none.
    assert smooth_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]) == pytest.approx(0.4, abs=1e-4)


@settings(max_examples=10)
@given(rows(max_rows=8))
def test_equals_the_loop_at_a_width(sample):
    confidence, correct = top_label(*sample)
    for width in (0.05, 0.3):
        want = smoothed(confidence, correct, width)
        assert smooth_calibration_error(*sample, bandwidth=width) == pytest.approx(want, abs=2e-5)


def test_the_width_equals_the_error():
    sample = draw(300, seed=2)
    found = smooth_calibration_error(*sample)
    assert smooth_calibration_error(*sample, bandwidth=found) == pytest.approx(found, abs=1e-7)


def test_a_wide_kernel_leaves_the_gap():
    sample = draw(200)
    found = smooth_calibration_error(*sample, bandwidth=50.0)
    assert found == pytest.approx(abs(confidence_gap(*sample)), abs=1e-6)


def test_moves_continuously_where_bins_jump():
    labels = [0, 1]
    below, above = ([[0.6 - e, 0.4 + e], [0.6 - e, 0.4 + e]] for e in (1e-9, -1e-9))
    difference = smooth_calibration_error(below, labels) - smooth_calibration_error(above, labels)
    assert abs(difference) < 1e-8


def test_of_a_perfect_predictor_is_zero():
    assert smooth_calibration_error(np.eye(3), [0, 1, 2]) == pytest.approx(0.0, abs=1e-12)


def test_refuses_a_width_of_zero():
    with pytest.raises(ValueError, match="above 0"):
        smooth_calibration_error([[0.9, 0.1]], [0], bandwidth=0)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 200])
def test_all_surely_wrong_is_an_error_of_one(n):
    probs = np.tile([1.0, 0.0], (n, 1))
    assert smooth_calibration_error(probs, np.ones(n, int)) == pytest.approx(1, abs=1e-9)


def binary(confidence, right):
    probs = np.stack([confidence, 1 - confidence], axis=1)
    return Predictions(probs=probs, labels=np.where(right, 0, 1))


@pytest.fixture(scope="module")
def overconfident():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.55, 1.0, 3000)
    return binary(confidence, rng.random(3000) < confidence - 0.1)


def test_equals_kernel_regression_by_the_formula(overconfident):
    width = 0.05
    curve = smooth_curve(overconfident, bandwidth=width, n_resamples=2)
    confidence, right = overconfident.confidence.astype(float), overconfident.correct
    for place in (150, 180, 220, 250):
        t = curve.confidence[place]
        # A Gaussian reflected at 0 and 1: images of each point at c + 2m and -c + 2m.
        kernel = sum(
            np.exp(-0.5 * ((t - sign * confidence - 2 * m) / width) ** 2)
            for m in (-1, 0, 1)
            for sign in (1, -1)
        )
        assert curve.frequency[place] == pytest.approx(kernel @ right / kernel.sum(), abs=2e-3)


def test_finds_the_offset_and_the_band_holds_the_truth(overconfident):
    curve = smooth_curve(overconfident)
    inner = slice(165, 240)
    truth = curve.confidence[inner] - 0.1
    held = (curve.low[inner] <= truth) & (truth <= curve.high[inner])
    assert np.abs(curve.frequency[inner] - truth).max() < 0.06
    assert held.mean() > 0.8


def test_ends_where_the_confidences_do(overconfident):
    curve = smooth_curve(overconfident)
    assert np.isnan(curve.frequency[curve.confidence < 0.54]).all()
    assert np.isfinite(curve.frequency[(curve.confidence > 0.56) & (curve.confidence < 0.99)]).all()


def test_density_integrates_to_one_and_band_surrounds_the_curve(overconfident):
    curve = smooth_curve(overconfident)
    known = np.isfinite(curve.frequency)
    assert curve.density.mean() == pytest.approx(1)
    assert (curve.low[known] <= curve.frequency[known]).all()
    assert (curve.frequency[known] <= curve.high[known]).all()


def test_a_stream_gives_the_same_curve(overconfident):
    state = CalibrationState(2)
    for block in overconfident.blocks(700):
        state.update(block)
    np.testing.assert_allclose(smooth_curve(state).frequency, smooth_curve(overconfident).frequency)


def test_width_is_the_smooth_error_where_that_is_narrow():
    rng = np.random.default_rng(1)
    confidence = rng.uniform(0.5, 1.0, 4000)
    rows = binary(confidence, rng.random(4000) < confidence)
    assert smooth_curve(rows).bandwidth == pytest.approx(max(0.01, smooth_calibration_error(rows)), abs=2e-3)


def test_one_row_is_enough():
    curve = smooth_curve(binary(np.array([0.8]), np.array([True])))
    assert np.nanmax(curve.frequency) == pytest.approx(1, rel=1e-12)
