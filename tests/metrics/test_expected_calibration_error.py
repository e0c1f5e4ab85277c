import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.metrics import expected_calibration_error, reliability_curve
from helpers.metric_samples import binned_error, draw, rows, top_label, weights_for


def test_value_by_hand():
    # Bins (0.8, 1] with 0.9, 1.0: one of two right, gap 0.45; (0.4, 0.6] with 0.6: right, gap 0.4.
    probs = [[0.9, 0.1], [1.0, 0.0], [0.6, 0.4]]
    assert expected_calibration_error(probs, [0, 1, 0], n_bins=5) == pytest.approx((2 * 0.45 + 0.4) / 3)


def test_confidence_one_is_in_the_last_bin():
    # A bin of its own for 1.0 would give 0.525.
    assert expected_calibration_error([[0.95, 0.05], [1.0, 0.0]], [0, 1], n_bins=10) == pytest.approx(0.475)


def test_one_bin_is_the_gap_of_means():
    probs, labels = draw()
    gap = probs.max(1).mean() - (probs.argmax(1) == labels).mean()
    assert expected_calibration_error(probs, labels, n_bins=1) == pytest.approx(abs(gap))


@given(
    rows().flatmap(lambda r: st.tuples(st.just(r), weights_for(len(r[1])))),
    st.integers(1, 12),
    st.sampled_from(["right", "left"]),
)
def test_equals_the_loop(sample, n_bins, closed):
    (probs, labels), weight = sample
    confidence, correct = top_label(probs, labels)
    want = binned_error(confidence, correct, weight, n_bins=n_bins, closed=closed)
    found = expected_calibration_error(probs, labels, n_bins=n_bins, closed=closed, sample_weight=weight)
    assert found == pytest.approx(want, abs=1e-12)


@given(rows(max_classes=4), st.integers(1, 12))
def test_classwise_equals_the_loop(sample, n_bins):
    probs, labels = sample
    want = np.mean([binned_error(probs[:, k], labels == k, n_bins=n_bins) for k in range(probs.shape[1])])
    found = expected_calibration_error(probs, labels, n_bins=n_bins, target="classwise")
    assert found == pytest.approx(want, abs=1e-12)


@given(rows(max_classes=2), st.integers(1, 12))
def test_positive_equals_the_loop(sample, n_bins):
    probs, labels = sample
    found = expected_calibration_error(probs[:, 1], labels, n_bins=n_bins, target="positive")
    assert found == pytest.approx(binned_error(probs[:, 1], labels, n_bins=n_bins), abs=1e-12)


def test_a_maximally_wrong_row_of_confidence_zero_counts():
    from equipoise import Predictions

    wrong = Predictions(predicted=[0, 0], confidence=[0.0, 0.5], labels=[0, 1], n_classes=2)
    assert expected_calibration_error(wrong, n_bins=10) == pytest.approx(0.75)


def test_curve_shows_empty_bins_as_empty():
    curve = reliability_curve([[0.9, 0.1], [0.4, 0.6]], [0, 0], n_bins=4)
    assert curve.weight.tolist() == [0, 0, 1, 1]
    assert np.isnan(curve.frequency[:2]).all()
    assert [row["high"] for row in curve.rows()] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ({"n_bins": 0}, "field uses 15"),
        ({"n_bins": 2.5}, "field uses 15"),
        ({"closed": "rigth"}, "Did you mean 'right'"),
        ({"target": "toplabel"}, "Did you mean 'top_label'"),
        ({"target": "positive"}, "Use 'classwise'"),
    ],
)
def test_refusals(arguments, remedy):
    with pytest.raises(ValueError, match=remedy):
        expected_calibration_error([[0.2, 0.3, 0.5]], [0], **arguments)


def test_labels_are_wanted_once():
    from equipoise import Predictions

    with pytest.raises(TypeError, match="Pass \\(probs, labels\\)"):
        expected_calibration_error([[0.2, 0.8]])
    with pytest.raises(TypeError, match="pass nothing beside"):
        expected_calibration_error(Predictions(probs=[0.2], labels=[0]), [0])
