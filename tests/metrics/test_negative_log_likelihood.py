import math

import numpy as np
import pytest
import torch
from hypothesis import given

from equipoise import Predictions
from equipoise.metrics import negative_log_likelihood
from helpers.metric_samples import rows

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
