import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.metrics import (
    debiased_calibration_error,
    expected_calibration_error,
    root_mean_square_calibration_error,
)
from helpers.metric_samples import bins, draw, rows, top_label


def test_value_by_hand():
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
