import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import Poly1Loss, poly1_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows, softmax


def test_value_by_hand() -> None:
    assert_each(poly1_loss(logits_of(0.7, 0.3), FIRST, epsilon=2.0), [-math.log(0.7) + 2 * 0.3])
    targets = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    wanted = -0.5 * math.log(0.7) - 0.5 * math.log(0.3) + 2 * (1 - 0.5)
    assert_each(poly1_loss(logits_of(0.7, 0.3), targets, epsilon=2.0), [wanted])


@given(batches())
def test_epsilon_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(poly1_loss(*batch, epsilon=0.0), wanted)


@given(batches(), st.floats(-1, 4))
def test_equals_the_equation(batch: tuple, epsilon: float) -> None:
    wanted = [-log_softmax(row)[y] + epsilon * (1 - softmax(row)[y]) for row, y in rows(*batch)]
    assert_each(poly1_loss(*batch, epsilon=epsilon), wanted)


def test_minus_1_starts_with_the_square() -> None:
    # -log p - (1 - p) = (1 - p)^2 / 2 + ...
    assert_each(poly1_loss(logits_of(0.999, 0.001), FIRST, epsilon=-1.0), [0.5e-6], tolerance=1e-3)


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_finite_with_gradient_far_out(scale: float) -> None:
    logits = torch.tensor([[scale, -scale, 0.0]], requires_grad=True)
    value = poly1_loss(logits, FIRST)
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="at least -1"):
        Poly1Loss(epsilon=-1.5)
