import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import (
    choose_bandwidth,
    confidence_gap,
    gaussian_calibration_error,
    kernel_calibration_error,
)
from helpers.metric_samples import draw, rows, softmax, top_label


def dirichlet(point, center, width):
    alpha = [c / width + 1 for c in center]
    logs = math.lgamma(sum(alpha)) - sum(math.lgamma(a) for a in alpha)
    return math.exp(logs + sum((a - 1) * math.log(x) for a, x in zip(alpha, point, strict=True)))


def kernel_loop(points, outcomes, width, power, columns):
    total = 0.0
    for i, point in enumerate(points):
        kernel = [0.0 if i == j else dirichlet(point, other, width) for j, other in enumerate(points)]
        for c in columns:
            smooth = sum(k * o[c] for k, o in zip(kernel, outcomes, strict=True)) / sum(kernel)
            total += abs(smooth - point[c]) ** power
    return total / len(points)


@st.composite
def inner_rows(draw_from):
    n, k = draw_from(st.integers(2, 7)), draw_from(st.integers(2, 4))
    numbers = st.floats(-2, 2)
    logits = draw_from(st.lists(st.lists(numbers, min_size=k, max_size=k), min_size=n, max_size=n))
    labels = draw_from(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    return softmax(np.array(logits)), np.array(labels)


def test_kernel_value_by_hand():
    # Of two rows each sees only the other, whose outcome is certain: distances 2 * 0.3 and 2 * 0.4.
    found = kernel_calibration_error([[0.7, 0.3], [0.6, 0.4]], [0, 0], bandwidth=0.1)
    assert found == pytest.approx((2 * 0.3 + 2 * 0.4) / 2)


@settings(max_examples=25)
@given(inner_rows(), st.sampled_from([0.05, 0.5]), st.sampled_from([1, 2]))
def test_kernel_equals_the_loop(sample, width, power):
    probs, labels = sample
    k = probs.shape[1]
    want = kernel_loop(probs, np.eye(k)[labels], width, power, range(k))
    found = kernel_calibration_error(probs, labels, bandwidth=width, power=power)
    assert found == pytest.approx(want, rel=1e-6)
    confidence, correct = probs.max(1), probs.argmax(1) == labels
    want = kernel_loop(
        np.stack([confidence, 1 - confidence], 1), np.stack([correct, ~correct], 1), width, power, [0]
    )
    found = kernel_calibration_error(probs, labels, bandwidth=width, power=power, target="top_label")
    assert found == pytest.approx(want, rel=1e-6)


def test_classwise_is_the_sum_of_positives_for_two_classes():
    probs, labels = draw(60, 2)
    positive = kernel_calibration_error(probs, labels, bandwidth=0.1, target="positive")
    classwise = kernel_calibration_error(probs, labels, bandwidth=0.1, target="classwise")
    assert classwise == pytest.approx(2 * positive)


def test_probabilities_of_zero_and_one_are_finite():
    found = kernel_calibration_error(np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0], bandwidth=0.01)
    assert math.isfinite(found)


def test_the_chosen_width_is_the_most_likely():
    probs, _ = draw(40, 3)
    candidates = [0.003, 0.05, 0.8]

    def likelihood(width):
        return sum(
            math.log(sum(dirichlet(p, q, width) for j, q in enumerate(probs) if j != i) / (len(probs) - 1))
            for i, p in enumerate(probs)
        )

    want = max(candidates, key=likelihood)
    assert choose_bandwidth(probs, candidates=candidates) == want
    assert kernel_calibration_error(probs, [0] * 40) > 0


@pytest.mark.parametrize(
    ("predictions", "arguments", "message"),
    [
        ({"probs": [[0.9, 0.1]], "labels": [0]}, {}, "at least two rows"),
        ({"probs": [0.9, 0.1], "labels": [1, 0]}, {"bandwidth": 0.0}, "above 0"),
        ({"probs": [0.9, 0.1], "labels": [1, 0]}, {"target": "canonic"}, "Did you mean 'canonical'"),
        ({"probs": [0.9, 0.1], "labels": [1, 0], "weights": [1, 2]}, {}, "Use expected_calibration_error"),
        ({"probs": np.eye(3), "labels": [0, 1, 2]}, {"target": "positive"}, "Use 'classwise'"),
        (
            {"predicted": [0, 0], "confidence": [0.9, 0.8], "labels": [0, 1]},
            {},
            "Save logits or probabilities",
        ),
    ],
)
def test_refusals(predictions, arguments, message):
    with pytest.raises(ValueError, match=message):
        kernel_calibration_error(Predictions(**predictions), **arguments)


def gaussian_loop(confidence, correct, bandwidth, power):
    total = 0.0
    for c in confidence:
        kernel = [math.exp(-0.5 * ((c - d) / bandwidth) ** 2) for d in confidence]
        smooth = sum(k * a for k, a in zip(kernel, correct, strict=True)) / sum(kernel)
        total += abs(smooth - c) ** power
    return total / len(confidence)


def test_gaussian_value_by_hand():
    # Two rows of the same confidence share an accuracy of one half.
    assert gaussian_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]) == pytest.approx(0.4)


@given(rows(max_rows=12), st.sampled_from([0.01, 0.1, 1.0]), st.sampled_from([1, 2]))
def test_gaussian_equals_the_loop(sample, bandwidth, power):
    want = gaussian_loop(*top_label(*sample), bandwidth, power)
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
