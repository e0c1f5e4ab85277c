import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import LogitPenaltyLoss, logit_penalty_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows, softmax


def test_value_by_hand() -> None:
    logits = torch.tensor([[3.0, -4.0]], dtype=torch.float64)
    ce = math.log1p(math.exp(-7))
    for order, norm in ((1, 7.0), (2, 5.0), (math.inf, 4.0), (3, 91 ** (1 / 3))):
        assert_each(logit_penalty_loss(logits, FIRST, strength=0.5, order=order), [ce + 0.5 * norm])
    on_probs = logit_penalty_loss(logits_of(0.7, 0.3), FIRST, strength=1.0, on="probs")
    assert_each(on_probs, [-math.log(0.7) + 0.4])


@given(batches())
def test_strength_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(logit_penalty_loss(*batch, strength=0.0), wanted)


@given(batches(), st.floats(1, 9), st.sampled_from(["logits", "probs"]))
def test_equals_the_equation(batch: tuple, order: float, on: str) -> None:
    wanted = []
    for row, y in rows(*batch):
        measured = row if on == "logits" else [p - 1 / len(row) for p in softmax(row)]
        largest = max(abs(v) for v in measured) or 1.0
        norm = largest * sum((abs(v) / largest) ** order for v in measured) ** (1 / order)
        wanted.append(-log_softmax(row)[y] + 0.1 * norm)
    assert_each(logit_penalty_loss(*batch, strength=0.1, order=order, on=on), wanted)


def test_unlike_probabilities_it_sees_a_shift_of_the_logits() -> None:
    logits = torch.tensor([[1.0, 2.0]])
    assert logit_penalty_loss(logits + 1, FIRST) > logit_penalty_loss(logits, FIRST)
    same = logit_penalty_loss(logits, FIRST, on="probs")
    torch.testing.assert_close(logit_penalty_loss(logits + 1, FIRST, on="probs"), same)


@pytest.mark.parametrize("order", [1, 1.5, 2, 3, 20, math.inf])
@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_finite_with_gradient_at_zero_and_far_out(order: float, scale: float) -> None:
    logits = torch.tensor([[scale, -scale, 0.0]], requires_grad=True)
    value = logit_penalty_loss(logits, FIRST, order=order)
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


@pytest.mark.parametrize("order", [1.5, 2, 3])
def test_gradient_where_the_norm_is_scaled(order: float) -> None:
    logits = torch.tensor([[3.0, -4.0, 0.5]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: logit_penalty_loss(z, FIRST, order=order), logits)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        LogitPenaltyLoss(order=0.5)
    with pytest.raises(ValueError, match="Did you mean 'logits'"):
        LogitPenaltyLoss(on="logit")
    with pytest.raises(ValueError, match="at least 0"):
        LogitPenaltyLoss(strength=-1)
