"""Tails of counts under calibration, and Holm's rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evaluate.chance import gap_p_values, holm


def exact_p_value(confidence, n_right):
    """Twice the tail of the exact distribution, one convolution per row."""
    chances = np.array([1.0])
    for chance in confidence:
        chances = np.convolve(chances, [1 - chance, chance])
    tail = chances[n_right:].sum() if n_right >= sum(confidence) else chances[: n_right + 1].sum()
    return min(1.0, 2 * tail)


def binned(confidence, n_right, n_bins=15):
    place = np.minimum((np.asarray(confidence) * n_bins).astype(int), n_bins - 1)
    count = np.bincount(place, minlength=n_bins).astype(float)
    mean = np.bincount(place, confidence, n_bins) / np.maximum(count, 1)
    right = np.zeros(n_bins)
    right[0] = n_right
    return count, mean, right


def test_by_hand():
    # Two rows at one half: both right in a quarter of the cases, so the two-sided p-value is one half.
    assert gap_p_values(np.array([2.0]), np.array([0.5]), np.array([2.0])) == pytest.approx(0.5)
    # All of five at 0.9 wrong: 2 * 0.1^5.
    assert gap_p_values(np.array([5.0]), np.array([0.9]), np.array([0.0])) == pytest.approx(2e-5, rel=1e-6)


@given(
    st.lists(st.floats(0.02, 0.98), min_size=1, max_size=60),
    st.floats(0, 1),
)
def test_matches_the_exact_distribution(confidence, share):
    n_right = round(share * len(confidence))
    exact = exact_p_value(confidence, n_right)
    found = float(gap_p_values(*binned(confidence, n_right)))
    # Bins are given their mean confidence, which is cautious, most of all far out where nobody would mind.
    assert found > 0.8 * exact - 1e-12
    assert found < 1.3 * exact + 0.02


def test_far_tails_are_not_normal():
    # Two of five rows at 0.99 wrong: a normal tail says one in ten thousand million, the truth is two in a thousand.
    found = float(gap_p_values(np.array([5.0]), np.array([0.99]), np.array([3.0])))
    assert found == pytest.approx(exact_p_value([0.99] * 5, 3), rel=0.1)


@pytest.mark.parametrize("confidence", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("right", [0.0, 1.0, 3.0])
def test_edges_are_probabilities(confidence, right):
    found = float(gap_p_values(np.array([3.0, 0.0]), np.array([confidence, np.nan]), np.array([right, 0.0])))
    assert 0 <= found <= 1
    if abs(confidence - right / 3) == 1:
        assert found < 1e-20
    if confidence == right / 3:
        assert found > 0.99


def test_calibrated_rows_are_rarely_suspected():
    generator = np.random.default_rng(0)
    confidence = generator.beta(8, 2, size=(4000, 40))
    right = (generator.random(confidence.shape) < confidence).sum(axis=1)
    parts = [binned(c, r) for c, r in zip(confidence, right, strict=True)]
    found = gap_p_values(*(np.stack(column) for column in zip(*parts, strict=True)))
    assert (found < 0.05).mean() < 0.06
    assert (found < 0.2).mean() > 0.1


def test_holm_by_hand():
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.9, 0.9])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_order_and_never_lowers(p_values):
    given_values = np.array(p_values)
    corrected = holm(given_values)
    assert (corrected >= given_values).all()
    assert (np.diff(corrected[np.argsort(given_values, kind="stable")]) >= 0).all()
    assert corrected.min() <= min(1.0, len(p_values) * given_values.min()) + 1e-12
