import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import brier_score, brier_split, root_brier_score
from helpers.metric_samples import bins, draw, rows, top_label


def one_hot(labels, k):
    return np.eye(k)[labels]


def test_values_by_hand():
    # (0.75 - 0)^2 + (0.25 - 1)^2 = 1.125.
    assert brier_score([[0.75, 0.25]], [1]) == pytest.approx(1.125)
    assert brier_score([[0.75, 0.25]], [1], target="classwise") == pytest.approx(0.5625)
    assert brier_score([[0.75, 0.25]], [1], target="positive") == pytest.approx(0.5625)
    assert brier_score([[0.75, 0.25]], [1], target="top_label") == pytest.approx(0.5625)
    assert root_brier_score([[0.75, 0.25]], [1]) == pytest.approx(1.125**0.5)


@given(rows())
def test_equal_the_loop(sample):
    probs, labels = sample
    want = ((probs - one_hot(labels, probs.shape[1])) ** 2).sum(axis=1).mean()
    assert brier_score(probs, labels) == pytest.approx(want, abs=1e-12)
    confidence, correct = top_label(probs, labels)
    top = np.mean((np.array(confidence) - correct) ** 2)
    assert brier_score(probs, labels, target="top_label") == pytest.approx(top, abs=1e-12)


@given(rows(), st.integers(1, 10))
def test_split_equals_the_loop_and_adds_up(sample, n_bins):
    probs, labels = sample
    split = brier_split(probs, labels, n_bins=n_bins)
    want = sum(
        w * (c - o) ** 2
        for k in range(probs.shape[1])
        for w, c, o in bins(probs[:, k], labels == k, n_bins=n_bins)
    ) / len(labels)
    assert split.calibration == pytest.approx(want, abs=1e-12)
    assert sum(split) == pytest.approx(brier_score(probs, labels), abs=1e-12)


def test_is_never_below_zero_in_single_precision():
    logits = np.random.default_rng(0).normal(0, 8, (2000, 10)).astype(np.float32)
    logits[:, 0] += 60
    predictions = Predictions(logits=logits, labels=np.zeros(2000, int))
    assert 0 <= brier_score(predictions) < 1e-6
    assert 0 <= root_brier_score(predictions) < 1e-3
    probs = Predictions(probs=predictions.probs, labels=np.zeros(2000, int))
    assert 0 <= brier_score(probs) < 1e-6


def test_of_the_truth_itself_is_all_refinement():
    probs, labels = draw(20_000, 3, sharpness=1.0)
    split = brier_split(probs, labels)
    assert split.calibration < 0.01 * split.refinement


def test_refusals():
    with pytest.raises(ValueError, match="Use 'classwise'"):
        brier_score([[0.2, 0.3, 0.5]], [0], target="positive")
    with pytest.raises(ValueError, match="'canonical'"):
        brier_score([[0.2, 0.8]], [0], target="canonial")
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    assert brier_score(top1, target="top_label") == pytest.approx(0.01)
    for call in (brier_score, brier_split, root_brier_score):
        with pytest.raises(ValueError, match="Save logits or probabilities"):
            call(top1)
