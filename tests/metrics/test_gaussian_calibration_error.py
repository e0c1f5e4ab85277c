import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.metrics import confidence_gap, gaussian_calibration_error
from helpers.metric_samples import draw, rows, top_label


def loop(confidence, correct, bandwidth, power):
    total = 0.0
    for c in confidence:
        kernel = [math.exp(-0.5 * ((c - d) / bandwidth) ** 2) for d in confidence]
        smooth = sum(k * a for k, a in zip(kernel, correct, strict=True)) / sum(kernel)
        total += abs(smooth - c) ** power
    return total / len(confidence)


def test_value_by_hand():
    # Two rows of the same confidence share an accuracy of one half.
    assert gaussian_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]) == pytest.approx(0.4)


@given(rows(max_rows=12), st.sampled_from([0.01, 0.1, 1.0]), st.sampled_from([1, 2]))
def test_equals_the_loop(sample, bandwidth, power):
    want = loop(*top_label(*sample), bandwidth, power)
    found = gaussian_calibration_error(*sample, bandwidth=bandwidth, power=power)
    assert found == pytest.approx(want, abs=1e-12)


def test_a_wide_kernel_sees_the_mean_accuracy():
    probs, labels = draw(200)
    accuracy = (probs.argmax(1) == labels).mean()
    want = np.abs(accuracy - probs.max(1)).mean()
    assert gaussian_calibration_error(probs, labels, bandwidth=1e6) == pytest.approx(want)
    flat = np.tile([0.8, 0.2], (5, 1))
    assert gaussian_calibration_error(flat, [0] * 5) == pytest.approx(-confidence_gap(flat, [0] * 5))


def test_isolated_rows_are_finite():
    probs = [[0.5, 0.5], [1.0, 0.0]]
    assert gaussian_calibration_error(probs, [0, 0], bandwidth=1e-5) == pytest.approx(0.25)
    # The nearest other row decides.
    found = gaussian_calibration_error(probs, [0, 1], bandwidth=1e-5, include_self=False)
    assert found == pytest.approx((0.5 + 0.0) / 2)


def test_a_row_of_weight_zero_far_from_all_is_not_there():
    probs = [[0.5, 0.5], [0.9, 0.1]]
    assert gaussian_calibration_error(probs, [0, 0], sample_weight=[0, 1]) == pytest.approx(0.1)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, math.inf])
def test_refuses_a_width_that_is_none(bandwidth):
    with pytest.raises(ValueError, match="papers use"):
        gaussian_calibration_error([[0.9, 0.1]], [0], bandwidth=bandwidth)


def test_refuses_one_row_without_itself():
    with pytest.raises(ValueError, match="at least two rows"):
        gaussian_calibration_error([[0.9, 0.1]], [0], include_self=False)
