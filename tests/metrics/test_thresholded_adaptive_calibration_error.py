import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import thresholded_adaptive_calibration_error
from helpers.metric_samples import draw, rows


def loop(probs, labels, n_bins, threshold, *, keep_minimum):
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


def test_value_by_hand():
    # Without bins to tell rows apart: class 0 said 0.6 on average, came always; class 1 said 0.4, came never.
    probs = [[0.5, 0.5], [0.7, 0.3]]
    assert thresholded_adaptive_calibration_error(probs, [0, 0], n_bins=1) == pytest.approx(0.4)


@given(rows(), st.integers(1, 8), st.sampled_from([0.0, 0.01, 0.3]), st.booleans())
def test_equals_the_loop(sample, n_bins, threshold, keep_minimum):
    probs, labels = sample
    found = thresholded_adaptive_calibration_error(
        probs, labels, n_bins=n_bins, threshold=threshold, keep_minimum=keep_minimum
    )
    want = loop(probs, labels, n_bins, threshold, keep_minimum=keep_minimum)
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
