import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import choose_bandwidth, kernel_calibration_error
from helpers.metric_samples import draw, softmax


def dirichlet(point, centre, width):
    alpha = [c / width + 1 for c in centre]
    logs = math.lgamma(sum(alpha)) - sum(math.lgamma(a) for a in alpha)
    return math.exp(logs + sum((a - 1) * math.log(x) for a, x in zip(alpha, point, strict=True)))


def loop(points, outcomes, width, power, columns):
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


def test_value_by_hand():
    # Of two rows each sees only the other, whose outcome is certain: distances 2 * 0.3 and 2 * 0.4.
    found = kernel_calibration_error([[0.7, 0.3], [0.6, 0.4]], [0, 0], bandwidth=0.1)
    assert found == pytest.approx((2 * 0.3 + 2 * 0.4) / 2)


@settings(max_examples=25)
@given(inner_rows(), st.sampled_from([0.05, 0.5]), st.sampled_from([1, 2]))
def test_equals_the_loop(sample, width, power):
    probs, labels = sample
    k = probs.shape[1]
    want = loop(probs, np.eye(k)[labels], width, power, range(k))
    found = kernel_calibration_error(probs, labels, bandwidth=width, power=power)
    assert found == pytest.approx(want, rel=1e-6)
    confidence, correct = probs.max(1), probs.argmax(1) == labels
    want = loop(
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
