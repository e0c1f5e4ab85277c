"""The reliability curve without bins."""

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.metrics import CalibrationState, smooth_calibration_error, smooth_curve


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
