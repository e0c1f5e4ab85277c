import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import classwise_calibration_error, classwise_calibration_errors
from helpers.metric_samples import binned_error, draw, rows, weights_for


def test_value_by_hand():
    # Class 0 is said 0.75 and always comes; class 1 is said 0.25 and never does.
    assert classwise_calibration_errors([[0.75, 0.25], [0.75, 0.25]], [0, 0]).tolist() == [0.25, 0.25]


@given(
    rows().flatmap(lambda r: st.tuples(st.just(r), weights_for(len(r[1])))),
    st.integers(1, 12),
    st.sampled_from(["right", "left"]),
)
def test_equals_the_loop(sample, n_bins, closed):
    (probs, labels), weight = sample
    want = [
        binned_error(probs[:, k], labels == k, weight, n_bins=n_bins, closed=closed)
        for k in range(probs.shape[1])
    ]
    found = classwise_calibration_errors(probs, labels, n_bins=n_bins, closed=closed, sample_weight=weight)
    np.testing.assert_allclose(found, want, atol=1e-12)
    mean = classwise_calibration_error(probs, labels, n_bins=n_bins, closed=closed, sample_weight=weight)
    assert mean == pytest.approx(np.mean(want), abs=1e-12)


def test_many_classes_equal_the_loop():
    probs, labels = draw(60, 130, spread=3.0)
    want = [binned_error(probs[:, k], labels == k, n_bins=15) for k in range(130)]
    np.testing.assert_allclose(classwise_calibration_errors(probs, labels), want, atol=1e-12)


def test_a_class_without_rows_is_a_class():
    # The largest label is 1, yet there are three columns.
    found = classwise_calibration_errors([[0.5, 0.25, 0.25]] * 4, [0, 0, 1, 1])
    np.testing.assert_allclose(found, [0.0, 0.25, 0.25])


def test_refuses_top1():
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    with pytest.raises(ValueError, match="Save logits or probabilities"):
        classwise_calibration_error(top1)
