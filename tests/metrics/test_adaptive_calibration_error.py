import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.metrics import adaptive_calibration_error, adaptive_edges, confidence_gap
from helpers.metric_samples import draw, rows, top_label


def edges_of(confidence, n_bins):
    n = len(confidence)
    return np.interp(np.linspace(0, n, n_bins + 1), np.arange(n), np.sort(confidence))


def interpolated(confidence, correct, edges, *, keep_minimum):
    """The published loop: rows above one edge and not above the next."""
    edges = [-1.0 if keep_minimum else edges[0], *edges[1:]]
    total = 0.0
    for low, high in itertools.pairwise(edges):
        inside = [i for i, c in enumerate(confidence) if low < c <= high]
        total += abs(sum(confidence[i] - correct[i] for i in inside))
    return total / len(confidence)


def test_value_by_hand():
    # Two bins of two: {0.5, 0.6} one right, gap 0.05; {0.8, 0.9} one right, gap 0.35.
    probs = [[0.5, 0.5], [0.6, 0.4], [0.8, 0.2], [0.9, 0.1]]
    found = adaptive_calibration_error(probs, [0, 1, 0, 1], n_bins=2, construction="chunks")
    assert found == pytest.approx((2 * 0.05 + 2 * 0.35) / 4)


@given(rows(), st.integers(1, 12), st.booleans())
def test_interpolated_equals_the_published_loop(sample, n_bins, keep_minimum):
    confidence, correct = top_label(*sample)
    edges = adaptive_edges(*sample, n_bins=n_bins)
    np.testing.assert_allclose(edges, edges_of(confidence, n_bins), rtol=1e-14)
    found = adaptive_calibration_error(*sample, n_bins=n_bins, keep_minimum=keep_minimum)
    want = interpolated(confidence, correct, edges, keep_minimum=keep_minimum)
    assert found == pytest.approx(want, abs=1e-12)


def test_chunks_equal_the_loop_without_ties():
    probs, labels = draw(103, 5)
    confidence, correct = (np.array(part) for part in top_label(probs, labels))
    order = np.argsort(confidence)
    gaps = (confidence - correct)[order]
    want = sum(abs(gaps[start : start + 7].sum()) for start in range(0, 103, 7)) / 103
    found = adaptive_calibration_error(probs, labels, n_bins=15, construction="chunks")
    assert found == pytest.approx(want)


@pytest.mark.parametrize("construction", ["interpolated", "chunks"])
def test_one_bin_is_the_gap_of_means(construction):
    sample = draw()
    found = adaptive_calibration_error(*sample, n_bins=1, construction=construction)
    assert found == pytest.approx(abs(confidence_gap(*sample)))


@pytest.mark.parametrize("construction", ["interpolated", "chunks"])
@pytest.mark.parametrize("n", [1, 2, 14])
def test_fewer_rows_than_bins_is_a_number(construction, n):
    probs, labels = draw(n)
    assert 0 <= adaptive_calibration_error(probs, labels, n_bins=15, construction=construction) <= 1


def test_the_lowest_row_counts_unless_it_shall_not():
    probs, labels = [[0.5, 0.5], [0.9, 0.1]], [0, 0]
    assert adaptive_calibration_error(probs, labels, n_bins=1) == pytest.approx(0.3)
    assert adaptive_calibration_error(probs, labels, n_bins=1, keep_minimum=False) == pytest.approx(0.05)


@pytest.mark.parametrize("construction", ["interpolated", "chunks"])
def test_weights_that_sum_to_one_are_no_single_row(construction):
    probs, labels = draw(300)
    plain = adaptive_calibration_error(probs, labels, construction=construction)
    share = np.full(300, 1 / 300)
    found = adaptive_calibration_error(probs, labels, construction=construction, sample_weight=share)
    assert found == pytest.approx(plain)


def test_a_row_of_weight_zero_is_not_there():
    probs, labels = draw(40)
    weight = np.ones(40)
    weight[[3, 11, int(probs.max(1).argmin())]] = 0
    kept = weight > 0
    for arguments in ({"keep_minimum": False}, {}, {"construction": "chunks"}):
        found = adaptive_calibration_error(probs, labels, sample_weight=weight, **arguments)
        assert found == pytest.approx(adaptive_calibration_error(probs[kept], labels[kept], **arguments))


def test_refusals():
    with pytest.raises(ValueError, match="Did you mean 'chunks'"):
        adaptive_calibration_error([[0.9, 0.1]], [0], construction="chunk")
    with pytest.raises(ValueError, match="field uses 15"):
        adaptive_edges([[0.9, 0.1]], [0], n_bins=0)
