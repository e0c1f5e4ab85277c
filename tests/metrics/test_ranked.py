import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import (
    adaptive_calibration_error,
    adaptive_edges,
    confidence_gap,
    expected_calibration_error,
    kolmogorov_smirnov_error,
    sweep_calibration_error,
    thresholded_adaptive_calibration_error,
)
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


def test_adaptive_value_by_hand():
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


def test_adaptive_refusals():
    with pytest.raises(ValueError, match="Did you mean 'chunks'"):
        adaptive_calibration_error([[0.9, 0.1]], [0], construction="chunk")
    with pytest.raises(ValueError, match="field uses 15"):
        adaptive_edges([[0.9, 0.1]], [0], n_bins=0)


def test_ks_value_by_hand():
    # Ascending: 0.6 wrong (+0.6), 0.9 right (-0.1): sums 0.6, 0.5 over two rows.
    assert kolmogorov_smirnov_error([[0.9, 0.1], [0.6, 0.4]], [0, 1]) == pytest.approx(0.3)


@given(rows())
def test_ks_equals_the_loop(sample):
    confidence, correct = top_label(*sample)
    pairs = list(zip(confidence, correct, strict=True))
    want = max(abs(sum(c - a for c, a in pairs if c <= t)) for t in confidence) / len(pairs)
    assert kolmogorov_smirnov_error(*sample) == pytest.approx(want, abs=1e-12)


def test_of_a_model_that_is_over_confident_everywhere_is_its_gap():
    probs, _ = draw(300)
    wrong = probs.argmin(1)
    assert kolmogorov_smirnov_error(probs, wrong) == pytest.approx(confidence_gap(probs, wrong))


def test_rows_of_equal_confidence_cancel_in_any_order():
    probs = [[0.5, 0.5]] * 10
    assert kolmogorov_smirnov_error(probs, [0, 1] * 5) == pytest.approx(0.0)
    assert kolmogorov_smirnov_error(probs, [0] * 5 + [1] * 5) == pytest.approx(0.0)


def test_falls_with_the_root_of_the_rows_for_a_calibrated_model():
    errors = [kolmogorov_smirnov_error(*draw(n, sharpness=1.0, seed=3)) for n in (400, 40_000)]
    assert errors[1] < 0.5 * errors[0]
    assert np.isfinite(errors).all()


def test_refuses_missing_labels():
    with pytest.raises(TypeError, match="Pass \\(probs, labels\\)"):
        kolmogorov_smirnov_error([[0.9, 0.1]])


def sweep_loop(confidence, correct, norm):
    ordered = sorted(zip(confidence, correct, strict=True))
    n, best = len(ordered), 0.0
    for b in range(1, n + 1):
        bounds = [round(i * n / b) for i in range(b + 1)]
        pieces = [ordered[low:high] for low, high in itertools.pairwise(bounds)]
        accuracy = [np.mean([a for _, a in piece]) for piece in pieces]
        if any(after < before - 1e-12 for before, after in itertools.pairwise(accuracy)):
            break
        gaps = [abs(np.mean([c - a for c, a in piece])) for piece in pieces]
        shares = [len(piece) / n for piece in pieces]
        power = 1 if norm == "l1" else 2
        best = sum(s * g**power for s, g in zip(shares, gaps, strict=True)) ** (1 / power)
    return best


def test_sweep_value_by_hand():
    # Accuracy rises from 0.6 (wrong) to 0.9 (right), so two bins: (0.6 + 0.1) / 2.
    assert sweep_calibration_error([[0.9, 0.1], [0.6, 0.4]], [0, 1]) == pytest.approx(0.35)


@given(rows(), st.sampled_from(["l1", "l2"]))
def test_sweep_equals_the_loop(sample, norm):
    want = sweep_loop(*top_label(*sample), norm)
    assert sweep_calibration_error(*sample, norm=norm) == pytest.approx(want, abs=1e-9)


def test_one_bin_is_the_plain_gap():
    sample = draw(100)
    found = sweep_calibration_error(*sample, max_bins=1)
    assert found == pytest.approx(expected_calibration_error(*sample, n_bins=1))


def test_a_model_without_mistakes_is_not_swept_bin_by_bin():
    probs, _ = draw(200_000, 2)
    found = sweep_calibration_error(probs, probs.argmax(1))
    assert found == pytest.approx(1 - probs.max(1).mean())


def test_sweep_refusals():
    with pytest.raises(ValueError, match="Use expected_calibration_error"):
        sweep_calibration_error(Predictions(probs=[0.9], labels=[1], weights=[2.0]))
    with pytest.raises(ValueError, match="'l1' or 'l2'"):
        sweep_calibration_error([[0.9, 0.1]], [0], norm="max")


def tace_loop(probs, labels, n_bins, threshold, *, keep_minimum):
    n, k = probs.shape
    errors = []
    for j in range(k):
        column = np.where(probs[:, j] < threshold, 0.0, probs[:, j])
        ordered = np.sort(column)
        edges = [ordered[b * (n // n_bins)] for b in range(n_bins)] + [1.0]
        if keep_minimum:
            edges[0] = -1.0
        total = 0.0
        for low, high in itertools.pairwise(edges):
            inside = (column > low) & (column <= high)
            total += abs((column[inside] - (labels[inside] == j)).sum())
        errors.append(total / n)
    return np.mean(errors)


def test_tace_value_by_hand():
    # Without bins to tell rows apart: class 0 said 0.6 on average, came always; class 1 said 0.4, came never.
    probs = [[0.5, 0.5], [0.7, 0.3]]
    assert thresholded_adaptive_calibration_error(probs, [0, 0], n_bins=1) == pytest.approx(0.4)


@given(rows(), st.integers(1, 8), st.sampled_from([0.0, 0.01, 0.3]), st.booleans())
def test_tace_equals_the_loop(sample, n_bins, threshold, keep_minimum):
    probs, labels = sample
    found = thresholded_adaptive_calibration_error(
        probs, labels, n_bins=n_bins, threshold=threshold, keep_minimum=keep_minimum
    )
    want = tace_loop(probs, labels, n_bins, threshold, keep_minimum=keep_minimum)
    assert found == pytest.approx(want, abs=1e-12)


def test_a_threshold_above_all_leaves_the_class_frequencies():
    probs, labels = draw(50, 3)
    found = thresholded_adaptive_calibration_error(probs, labels, threshold=2.0)
    assert found == pytest.approx(1 / 3)


def test_refuses_weights_and_top1():
    weighted = Predictions(probs=[[0.9, 0.1]], labels=[0], weights=[2.0])
    with pytest.raises(ValueError, match="Use classwise_calibration_error"):
        thresholded_adaptive_calibration_error(weighted)
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    with pytest.raises(ValueError, match="Save logits or probabilities"):
        thresholded_adaptive_calibration_error(top1)
