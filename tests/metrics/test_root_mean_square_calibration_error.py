import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.metrics import confidence_gap, root_mean_square_calibration_error
from helpers.metric_samples import bins, draw, rows, top_label


def test_value_by_hand():
    # Bins (0.8, 1] with 0.9, 1.0: one of two right, gap 0.45; (0.4, 0.6] with 0.6: right, gap 0.4.
    found = root_mean_square_calibration_error([[0.9, 0.1], [1.0, 0.0], [0.6, 0.4]], [0, 1, 0], n_bins=5)
    assert found == pytest.approx(((2 * 0.45**2 + 0.4**2) / 3) ** 0.5)


def test_one_bin_is_the_gap_of_means():
    sample = draw()
    assert root_mean_square_calibration_error(*sample, n_bins=1) == pytest.approx(
        abs(confidence_gap(*sample))
    )


@given(rows(), st.integers(1, 12), st.sampled_from(["right", "left"]))
def test_equals_the_loop(sample, n_bins, closed):
    cells = bins(*top_label(*sample), n_bins=n_bins, closed=closed)
    want = (sum(w * (c - o) ** 2 for w, c, o in cells) / sum(w for w, _, _ in cells)) ** 0.5
    assert root_mean_square_calibration_error(*sample, n_bins=n_bins, closed=closed) == pytest.approx(
        want, abs=1e-7
    )


@given(rows(max_classes=2), st.integers(1, 12))
def test_of_the_positive_class_equals_the_loop(sample, n_bins):
    probs, labels = sample
    cells = bins(probs[:, 1], labels, n_bins=n_bins)
    want = (sum(w * (c - o) ** 2 for w, c, o in cells) / sum(w for w, _, _ in cells)) ** 0.5
    assert root_mean_square_calibration_error(
        probs, labels, n_bins=n_bins, target="positive"
    ) == pytest.approx(want, abs=1e-7)


def test_refuses_no_bins_and_an_unknown_target():
    with pytest.raises(ValueError, match="field uses 15"):
        root_mean_square_calibration_error([[0.9, 0.1]], [0], n_bins=0)
    with pytest.raises(ValueError, match="'positive'"):
        root_mean_square_calibration_error([[0.9, 0.1]], [0], target="positives")
