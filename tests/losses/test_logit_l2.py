import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import LogitL2Loss, logit_l2_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, rows


def test_value_by_hand() -> None:
    logits = torch.tensor([[3.0, -4.0]], dtype=torch.float64)
    assert_each(logit_l2_loss(logits, FIRST, strength=0.1), [math.log1p(math.exp(-7)) + 0.05 * 25])


@given(batches())
def test_strength_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(logit_l2_loss(*batch, strength=0.0), wanted)


@given(batches(), st.floats(0, 3))
def test_equals_the_equation(batch: tuple, strength: float) -> None:
    wanted = [-log_softmax(row)[y] + strength / 2 * sum(z * z for z in row) for row, y in rows(*batch)]
    assert_each(logit_l2_loss(*batch, strength=strength), wanted)


def test_it_pins_the_common_shift_to_0() -> None:
    logits = torch.tensor([[2.0, 2.0]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(logit_l2_loss(logits, FIRST, strength=1.0), logits)
    assert float(slope.sum()) == pytest.approx(4.0)


@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_finite_with_gradient_far_out(scale: float) -> None:
    logits = torch.tensor([[scale, -scale, 0.0]], requires_grad=True)
    value = logit_l2_loss(logits, FIRST)
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        LogitL2Loss(strength=-1)
