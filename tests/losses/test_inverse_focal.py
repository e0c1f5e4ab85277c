import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import InverseFocalLoss, focal_loss, inverse_focal_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows


def test_value_by_hand() -> None:
    assert_each(inverse_focal_loss(logits_of(0.5, 0.5), FIRST, gamma=2.0), [2.25 * math.log(2)])


@given(batches())
def test_gamma_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(inverse_focal_loss(*batch, gamma=0.0), wanted)


@given(batches(), st.floats(0, 10))
def test_equals_the_equation(batch: tuple, gamma: float) -> None:
    wanted = []
    for row, y in rows(*batch):
        log_p = log_softmax(row)[y]
        wanted.append(-((1 + math.exp(log_p)) ** gamma) * log_p)
    assert_each(inverse_focal_loss(*batch, gamma=gamma), wanted)


@given(batches(), st.floats(0.01, 10))
def test_cross_entropy_lies_between_focal_and_inverse_focal(batch: tuple, gamma: float) -> None:
    middle = nn.functional.cross_entropy(*batch, reduction="none")
    assert (focal_loss(*batch, gamma=gamma) <= middle).all()
    assert (inverse_focal_loss(*batch, gamma=gamma) >= middle).all()


def test_certainty_costs_nothing() -> None:
    logits = torch.tensor([[1e4, 0.0]], requires_grad=True)
    value = inverse_focal_loss(logits, FIRST, gamma=10.0)
    assert value == 0
    assert not torch.autograd.grad(value, logits)[0].any()


def test_refusal() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        InverseFocalLoss(gamma=-0.5)
