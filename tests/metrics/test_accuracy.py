import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Predictions
from equipoise.metrics import accuracy, top_k_accuracy
from helpers.metric_samples import draw, rows, top_label


def test_values_by_hand():
    probs = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]
    assert accuracy(probs, [0, 0, 1]) == pytest.approx(1 / 3)
    assert top_k_accuracy(probs, [0, 0, 1], k=2) == pytest.approx(2 / 3)
    assert accuracy(probs, [0, 0, 1], sample_weight=[2, 1, 1]) == 0.5


@given(rows(), st.integers(1, 6))
def test_equal_the_loop(sample, k):
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


def test_refusals():
    with pytest.raises(ValueError, match="at least 1"):
        top_k_accuracy([[0.5, 0.5]], [0], k=0)
    top1 = Predictions(predicted=[0], confidence=[0.9], labels=[0], n_classes=2)
    assert accuracy(top1) == 1.0
    with pytest.raises(ValueError, match="Save logits or probabilities"):
        top_k_accuracy(top1)
