import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.metrics import confidence_gap, over_confidence_error
from helpers.metric_samples import bins, rows, top_label


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
