import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import (
    average_calibration_error,
    classwise_calibration_error,
    classwise_calibration_errors,
    confidence_gap,
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    over_confidence_error,
    reliability_curve,
    root_mean_square_calibration_error,
)
from helpers.metric_samples import binned_error, bins, draw, rows, top_label, weights_for


def test_ece_value_by_hand():
    # Bins (0.8, 1] with 0.9, 1.0: one of two right, gap 0.45; (0.4, 0.6] with 0.6: right, gap 0.4.
    probs = [[0.9, 0.1], [1.0, 0.0], [0.6, 0.4]]
    assert expected_calibration_error(probs, [0, 1, 0], n_bins=5) == pytest.approx((2 * 0.45 + 0.4) / 3)


def test_confidence_one_is_in_the_last_bin():
    # A bin of its own for 1.0 would give 0.525.
    assert expected_calibration_error([[0.95, 0.05], [1.0, 0.0]], [0, 1], n_bins=10) == pytest.approx(0.475)


def test_ece_one_bin_is_the_gap_of_means():
    probs, labels = draw()
    gap = probs.max(1).mean() - (probs.argmax(1) == labels).mean()
    assert expected_calibration_error(probs, labels, n_bins=1) == pytest.approx(abs(gap))


@given(
    rows().flatmap(lambda r: st.tuples(st.just(r), weights_for(len(r[1])))),
    st.integers(1, 12),
    st.sampled_from(["right", "left"]),
)
def test_ece_equals_the_loop(sample, n_bins, closed):
    (probs, labels), weight = sample
    confidence, correct = top_label(probs, labels)
    want = binned_error(confidence, correct, weight, n_bins=n_bins, closed=closed)
    found = expected_calibration_error(probs, labels, n_bins=n_bins, closed=closed, sample_weight=weight)
    assert found == pytest.approx(want, abs=1e-12)


@given(rows(max_classes=4), st.integers(1, 12))
def test_ece_over_classes_equals_the_loop(sample, n_bins):
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


def test_mce_value_by_hand():
    # Bins (0.8, 1] with 0.9, 1.0: one of two right, gap 0.45; (0.4, 0.6] with 0.6: right, gap 0.4.
    found = maximum_calibration_error([[0.9, 0.1], [1.0, 0.0], [0.6, 0.4]], [0, 1, 0], n_bins=5)
    assert found == pytest.approx(0.45)


def test_mce_one_bin_is_the_gap_of_means():
    sample = draw()
    assert maximum_calibration_error(*sample, n_bins=1) == pytest.approx(abs(confidence_gap(*sample)))


@given(rows(), st.integers(1, 12), st.sampled_from(["right", "left"]))
def test_mce_equals_the_loop(sample, n_bins, closed):
    cells = bins(*top_label(*sample), n_bins=n_bins, closed=closed)
    want = max(abs(c - o) for _, c, o in cells)
    assert maximum_calibration_error(*sample, n_bins=n_bins, closed=closed) == pytest.approx(want, abs=1e-7)


@given(rows(max_classes=2), st.integers(1, 12))
def test_mce_of_the_positive_class_equals_the_loop(sample, n_bins):
    probs, labels = sample
    cells = bins(probs[:, 1], labels, n_bins=n_bins)
    want = max(abs(c - o) for _, c, o in cells)
    assert maximum_calibration_error(probs, labels, n_bins=n_bins, target="positive") == pytest.approx(
        want, abs=1e-7
    )


def test_mce_refuses_no_bins_and_an_unknown_target():
    with pytest.raises(ValueError, match="field uses 15"):
        maximum_calibration_error([[0.9, 0.1]], [0], n_bins=0)
    with pytest.raises(ValueError, match="'positive'"):
        maximum_calibration_error([[0.9, 0.1]], [0], target="positives")


def test_average_error_value_by_hand():
    # Bins (0.8, 1] with 0.9, 1.0: one of two right, gap 0.45; (0.4, 0.6] with 0.6: right, gap 0.4.
    found = average_calibration_error([[0.9, 0.1], [1.0, 0.0], [0.6, 0.4]], [0, 1, 0], n_bins=5)
    assert found == pytest.approx(0.425)


def test_average_error_one_bin_is_the_gap_of_means():
    sample = draw()
    assert average_calibration_error(*sample, n_bins=1) == pytest.approx(abs(confidence_gap(*sample)))


@given(rows(), st.integers(1, 12), st.sampled_from(["right", "left"]))
def test_average_error_equals_the_loop(sample, n_bins, closed):
    cells = bins(*top_label(*sample), n_bins=n_bins, closed=closed)
    want = sum(abs(c - o) for _, c, o in cells) / len(cells)
    assert average_calibration_error(*sample, n_bins=n_bins, closed=closed) == pytest.approx(want, abs=1e-7)


@given(rows(max_classes=2), st.integers(1, 12))
def test_average_error_of_the_positive_class_equals_the_loop(sample, n_bins):
    probs, labels = sample
    cells = bins(probs[:, 1], labels, n_bins=n_bins)
    want = sum(abs(c - o) for _, c, o in cells) / len(cells)
    assert average_calibration_error(probs, labels, n_bins=n_bins, target="positive") == pytest.approx(
        want, abs=1e-7
    )


def test_average_error_refuses_no_bins_and_an_unknown_target():
    with pytest.raises(ValueError, match="field uses 15"):
        average_calibration_error([[0.9, 0.1]], [0], n_bins=0)
    with pytest.raises(ValueError, match="'positive'"):
        average_calibration_error([[0.9, 0.1]], [0], target="positives")


def test_root_mean_square_value_by_hand():
    # Bins (0.8, 1] with 0.9, 1.0: one of two right, gap 0.45; (0.4, 0.6] with 0.6: right, gap 0.4.
    found = root_mean_square_calibration_error([[0.9, 0.1], [1.0, 0.0], [0.6, 0.4]], [0, 1, 0], n_bins=5)
    assert found == pytest.approx(((2 * 0.45**2 + 0.4**2) / 3) ** 0.5)


def test_root_mean_square_one_bin_is_the_gap_of_means():
    sample = draw()
    assert root_mean_square_calibration_error(*sample, n_bins=1) == pytest.approx(
        abs(confidence_gap(*sample))
    )


@given(rows(), st.integers(1, 12), st.sampled_from(["right", "left"]))
def test_root_mean_square_equals_the_loop(sample, n_bins, closed):
    cells = bins(*top_label(*sample), n_bins=n_bins, closed=closed)
    want = (sum(w * (c - o) ** 2 for w, c, o in cells) / sum(w for w, _, _ in cells)) ** 0.5
    assert root_mean_square_calibration_error(*sample, n_bins=n_bins, closed=closed) == pytest.approx(
        want, abs=1e-7
    )


@given(rows(max_classes=2), st.integers(1, 12))
def test_root_mean_square_of_the_positive_class_equals_the_loop(sample, n_bins):
    probs, labels = sample
    cells = bins(probs[:, 1], labels, n_bins=n_bins)
    want = (sum(w * (c - o) ** 2 for w, c, o in cells) / sum(w for w, _, _ in cells)) ** 0.5
    assert root_mean_square_calibration_error(
        probs, labels, n_bins=n_bins, target="positive"
    ) == pytest.approx(want, abs=1e-7)


def test_root_mean_square_refuses_no_bins_and_an_unknown_target():
    with pytest.raises(ValueError, match="field uses 15"):
        root_mean_square_calibration_error([[0.9, 0.1]], [0], n_bins=0)
    with pytest.raises(ValueError, match="'positive'"):
        root_mean_square_calibration_error([[0.9, 0.1]], [0], target="positives")


def test_classwise_value_by_hand():
    # Class 0 is said 0.75 and always comes; class 1 is said 0.25 and never does.
    assert classwise_calibration_errors([[0.75, 0.25], [0.75, 0.25]], [0, 0]).tolist() == [0.25, 0.25]


@given(
    rows().flatmap(lambda r: st.tuples(st.just(r), weights_for(len(r[1])))),
    st.integers(1, 12),
    st.sampled_from(["right", "left"]),
)
def test_classwise_equals_the_loop(sample, n_bins, closed):
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


def test_debiased_value_by_hand():
    # One bin of four at 0.9, three right: gap 0.15, variance 0.75 * 0.25 / 3 = 0.0625 > 0.15^2: nothing is left.
    assert debiased_calibration_error([[0.9, 0.1]] * 4, [0, 0, 0, 1]) == 0.0
    # Two right: gap 0.4, variance 0.25 / 3.
    found = debiased_calibration_error([[0.9, 0.1]] * 4, [0, 0, 1, 1])
    assert found == pytest.approx((0.16 - 0.25 / 3) ** 0.5)


@given(rows(), st.integers(1, 10))
def test_l2_equals_the_loop(sample, n_bins):
    cells = bins(*top_label(*sample), n_bins=n_bins)
    n = len(sample[1])
    total = sum(w / n * ((c - o) ** 2 - o * (1 - o) / (w - 1)) for w, c, o in cells if w >= 2)
    found = debiased_calibration_error(*sample, n_bins=n_bins)
    assert found**2 == pytest.approx(max(total, 0.0), abs=1e-12)


@pytest.mark.slow
def test_l1_takes_off_the_mean_excess_of_noise():
    rng = np.random.default_rng(0)
    n, p, gap = 200, 0.7, 0.02
    probs = np.tile([p + gap, 1 - p - gap], (n, 1))
    plain, debiased = [], []
    for _ in range(300):
        labels = (rng.random(n) > p).astype(int)
        plain.append(expected_calibration_error(probs, labels))
        debiased.append(debiased_calibration_error(probs, labels, norm="l1"))
    assert abs(np.mean(debiased) - gap) < 0.5 * abs(np.mean(plain) - gap)


def test_with_many_rows_nothing_is_left_to_take_off():
    sample = draw(50_000, 3)
    l2 = root_mean_square_calibration_error(*sample)
    assert debiased_calibration_error(*sample) == pytest.approx(l2, rel=0.01)
    l1 = expected_calibration_error(*sample)
    assert debiased_calibration_error(*sample, norm="l1") == pytest.approx(l1, rel=0.01)


def test_one_row_tells_nothing():
    assert debiased_calibration_error([[0.9, 0.1]], [1]) == 0.0


def test_refuses_another_norm():
    with pytest.raises(ValueError, match="'l1' or 'l2'"):
        debiased_calibration_error([[0.9, 0.1]], [0], norm="l3")


def test_values_by_hand():
    # Confidence 0.9, right half the time: gap 0.4; the error weighs it by 0.9.
    probs = [[0.9, 0.1], [0.9, 0.1]]
    assert confidence_gap(probs, [0, 1]) == pytest.approx(0.4)
    assert over_confidence_error(probs, [0, 1]) == pytest.approx(0.36)


@given(rows(), st.integers(1, 10))
def test_equal_the_loop(sample, n_bins):
    confidence, correct = top_label(*sample)
    assert confidence_gap(*sample) == pytest.approx(np.mean(confidence) - np.mean(correct), abs=1e-12)
    cells = bins(confidence, correct, n_bins=n_bins)
    want = sum(w * c * max(c - o, 0) for w, c, o in cells) / len(correct)
    assert over_confidence_error(*sample, n_bins=n_bins) == pytest.approx(want, abs=1e-12)


def test_an_under_confident_model_has_no_over_confidence():
    probs = [[0.6, 0.4]] * 5
    assert over_confidence_error(probs, [0] * 5) == 0.0
    assert confidence_gap(probs, [0] * 5) == pytest.approx(-0.4)


def test_refuses_no_bins():
    with pytest.raises(ValueError, match="field uses 15"):
        over_confidence_error([[0.6, 0.4]], [0], n_bins=-1)
