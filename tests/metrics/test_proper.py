import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import (
    accuracy,
    brier_score,
    brier_split,
    negative_log_likelihood,
    root_brier_score,
    top_k_accuracy,
)
from helpers.metric_samples import bins, draw, rows, top_label


def test_accuracy_values_by_hand():
    probs = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]
    assert accuracy(probs, [0, 0, 1]) == pytest.approx(1 / 3)
    assert top_k_accuracy(probs, [0, 0, 1], k=2) == pytest.approx(2 / 3)
    assert accuracy(probs, [0, 0, 1], sample_weight=[2, 1, 1]) == 0.5


@given(rows(), st.integers(1, 6))
def test_accuracy_equal_the_loop(sample, k):
    probs, labels = sample
    assert accuracy(probs, labels) == pytest.approx(np.mean(top_label(probs, labels)[1]))
    best = [sorted(range(len(row)), key=lambda j: (-row[j], j))[:k] for row in probs]
    want = np.mean([y in found for y, found in zip(labels, best, strict=True)])
    assert top_k_accuracy(probs, labels, k=k) == pytest.approx(want)


def test_limits():
    probs, labels = draw(k=4)
    assert top_k_accuracy(probs, labels, k=1) == accuracy(probs, labels)
    assert top_k_accuracy(probs, labels, k=4) == 1.0
    assert top_k_accuracy(probs, labels, k=9) == 1.0


def test_the_first_of_equals_is_named():
    assert accuracy([[0.5, 0.5]], [0]) == 1.0
    assert accuracy([[0.5, 0.5]], [1]) == 0.0


def test_accuracy_refusals():
    with pytest.raises(ValueError, match="at least 1"):
        top_k_accuracy([[0.5, 0.5]], [0], k=0)
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    assert accuracy(top1) == 1.0
    with pytest.raises(ValueError, match="Save logits or probabilities"):
        top_k_accuracy(top1)


TINY = float(np.finfo(np.float32).tiny)


def test_value_by_hand():
    assert negative_log_likelihood([[0.25, 0.75], [0.5, 0.5]], [0, 1]) == pytest.approx(
        (math.log(4) + math.log(2)) / 2
    )


def test_of_a_guess_among_k_is_log_k():
    assert negative_log_likelihood(np.full((3, 5), 0.2), [0, 2, 4]) == pytest.approx(math.log(5))


@given(rows())
def test_equals_the_loop(sample):
    want = np.mean([-math.log(max(row[y], TINY)) for row, y in zip(*sample, strict=True)])
    assert negative_log_likelihood(*sample) == pytest.approx(want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_is_exact_and_finite_for_huge_logits(dtype):
    logits = torch.tensor([[1e4, -1e4], [-1e4, 1e4]], dtype=dtype)
    assert negative_log_likelihood(Predictions(logits=logits, labels=[1, 1])) == pytest.approx(1e4)


def test_a_stored_zero_counts_as_the_smallest_float():
    assert negative_log_likelihood([[1.0, 0.0]], [1]) == pytest.approx(-math.log(TINY))


def test_refuses_top1():
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    with pytest.raises(ValueError, match="Save logits or probabilities"):
        negative_log_likelihood(top1)


def one_hot(labels, k):
    return np.eye(k)[labels]


def test_brier_values_by_hand():
    # (0.75 - 0)^2 + (0.25 - 1)^2 = 1.125.
    assert brier_score([[0.75, 0.25]], [1]) == pytest.approx(1.125)
    assert brier_score([[0.75, 0.25]], [1], target="classwise") == pytest.approx(0.5625)
    assert brier_score([[0.75, 0.25]], [1], target="positive") == pytest.approx(0.5625)
    assert brier_score([[0.75, 0.25]], [1], target="top_label") == pytest.approx(0.5625)
    assert root_brier_score([[0.75, 0.25]], [1]) == pytest.approx(1.125**0.5)


@given(rows())
def test_brier_equal_the_loop(sample):
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


def test_brier_refusals():
    with pytest.raises(ValueError, match="Use 'classwise'"):
        brier_score([[0.2, 0.3, 0.5]], [0], target="positive")
    with pytest.raises(ValueError, match="'canonical'"):
        brier_score([[0.2, 0.8]], [0], target="canonial")
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    assert brier_score(top1, target="top_label") == pytest.approx(0.01)
    for call in (brier_score, brier_split, root_brier_score):
        with pytest.raises(ValueError, match="Save logits or probabilities"):
            call(top1)
