import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import AdaptiveConditionalLoss, adaptive_conditional_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, rows


def test_value_by_hand() -> None:
    # margin 1: the height 3 - 1 = 2 squared is 4; the gaps 3 - 0 - 1 = 2 and 3 - 1 - 1 = 1 give 4 and 1
    logits = torch.tensor([[3.0, 0.0, 1.0]], dtype=torch.float64)
    ce = -log_softmax([3.0, 0.0, 1.0])[0]
    value = adaptive_conditional_loss(logits, FIRST, margin=1.0, strength=0.5, top=2.0, others=0.1)
    assert_each(value, [ce + 0.5 * (2 * 4 + 0.1 * (4 + 1) / 2)])


@given(batches())
def test_strength_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(adaptive_conditional_loss(*batch, strength=0.0), wanted)


@given(batches(), st.floats(0.1, 5))
def test_equals_the_equation(batch: tuple, margin: float) -> None:
    wanted = []
    for row, y in rows(*batch):
        top = max(row)
        height = max(0.0, top - margin) ** 2
        gaps = sum(max(0.0, top - z - margin) ** 2 for z in row if z < top)
        wanted.append(-log_softmax(row)[y] + 0.1 * (height + 0.1 * gaps / (len(row) - 1)))
    assert_each(adaptive_conditional_loss(*batch, margin=margin), wanted)


def test_the_top_logit_has_no_gradient_from_the_gaps() -> None:
    logits = torch.tensor([[0.5, -5.0, -6.0]], dtype=torch.float64, requires_grad=True)
    value = adaptive_conditional_loss(logits, FIRST, margin=1.0, strength=1.0)
    ce = nn.functional.cross_entropy(logits, FIRST, reduction="none")
    (found,), (plain,) = (torch.autograd.grad(one, logits) for one in (value, ce))
    extra = found - plain
    assert extra[0, 0] == 0
    # d/dz 0.1 / 2 (0.5 - z - 1)^2 = -0.1 (0.5 - z - 1)
    torch.testing.assert_close(extra[0, 1:], -0.1 * torch.tensor([4.5, 5.5], dtype=torch.float64))


def test_ties_have_no_gap() -> None:
    logits = torch.tensor([[20.0, 20.0]], dtype=torch.float64)
    assert_each(adaptive_conditional_loss(logits, FIRST, margin=10.0), [math.log(2) + 0.1 * 100])


@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_finite_with_gradient_far_out(scale: float) -> None:
    logits = torch.tensor([[scale, -scale, 0.0]], requires_grad=True)
    value = adaptive_conditional_loss(logits, FIRST)
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_mistakes() -> None:
    for options in ({"margin": 0.0}, {"strength": -1}, {"top": -1}, {"others": -1}):
        with pytest.raises(ValueError, match="must be"):
            AdaptiveConditionalLoss(**options)
