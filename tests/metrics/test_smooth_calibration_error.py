import math

import numpy as np
import pytest
from hypothesis import given, settings

from equipoise.metrics import confidence_gap, smooth_calibration_error
from helpers.metric_samples import draw, rows, top_label


def smoothed(confidence, correct, width, n_grid=4001):
    """The integral of the smoothed residual, with the Gaussian reflected at 0 and 1 image by image."""
    t = np.linspace(0, 1, n_grid)
    reach = 2 + math.ceil(6 * width)
    total = np.zeros(n_grid)
    for c, a in zip(confidence, correct, strict=True):
        for image in range(-reach, reach + 1):
            for centre in (2 * image + c, 2 * image - c):
                total += (c - a) * np.exp(-0.5 * ((t - centre) / width) ** 2)
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
