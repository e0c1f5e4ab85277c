import math

import pytest
import torch
from hypothesis import given

from equipoise.losses import SampleDependentFocalLoss, focal_loss, sample_dependent_focal_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows


def test_value_by_hand() -> None:
    assert_each(sample_dependent_focal_loss(logits_of(0.1, 0.9), FIRST), [0.9**5 * math.log(10)])
    assert_each(sample_dependent_focal_loss(logits_of(0.3, 0.7), FIRST), [-(0.7**3) * math.log(0.3)])


@given(batches())
def test_one_gamma_throughout_is_focal_loss(batch: tuple) -> None:
    flat = sample_dependent_focal_loss(*batch, gammas=(2.0, 2.0, 2.0))
    torch.testing.assert_close(flat, focal_loss(*batch, gamma=2.0))


@given(batches())
def test_equals_the_equation(batch: tuple) -> None:
    wanted = []
    for row, y in rows(*batch):
        log_p = log_softmax(row)[y]
        p = math.exp(log_p)
        gamma = 5 if p < 0.2 else 4 if p < 0.5 else 2
        wanted.append(-((1 - p) ** gamma) * log_p)
    assert_each(sample_dependent_focal_loss(*batch, gammas=(5.0, 4.0, 2.0)), wanted)


def test_a_probability_on_a_cut_belongs_above_it() -> None:
    even = torch.zeros(1, 2)  # p = 1/2 exactly
    at_cut = sample_dependent_focal_loss(even, FIRST, gammas=(9.0, 9.0, 1.0))
    torch.testing.assert_close(at_cut, focal_loss(even, FIRST, gamma=1.0))
    quarter = torch.zeros(1, 4)
    at_cut = sample_dependent_focal_loss(quarter, FIRST, gammas=(9.0, 1.0, 5.0), cuts=(0.25, 0.5))
    torch.testing.assert_close(at_cut, focal_loss(quarter, FIRST, gamma=1.0))


def test_gamma_is_constant_in_backward() -> None:
    logits = logits_of(0.1, 0.9).requires_grad_()
    grad = torch.autograd.grad(sample_dependent_focal_loss(logits, FIRST).sum(), logits)[0]
    wanted = torch.autograd.grad(focal_loss(logits, FIRST, gamma=5.0).sum(), logits)[0]
    torch.testing.assert_close(grad, wanted)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"\(0\.2, 0\.5\)"):
        SampleDependentFocalLoss(cuts=(0.5, 0.2))
    with pytest.raises(ValueError, match="at least 0"):
        SampleDependentFocalLoss(gammas=(5.0, 3.0, -1.0))
