import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import LogitNormLoss, logit_norm_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, rows


def test_value_by_hand() -> None:
    # norm 5, so the logits become 0.6 and -0.8
    logits = torch.tensor([[3.0, -4.0]], dtype=torch.float64)
    assert_each(logit_norm_loss(logits, FIRST, temperature=1.0), [math.log1p(math.exp(-1.4))], tolerance=1e-6)
    assert_each(logit_norm_loss(logits, FIRST, temperature=0.5), [math.log1p(math.exp(-2.8))], tolerance=1e-6)


@given(batches(), st.floats(0.02, 2))
def test_equals_the_equation(batch: tuple, temperature: float) -> None:
    wanted = []
    for row, y in rows(*batch):
        norm = (math.sqrt(sum(z * z for z in row)) + 1e-7) * temperature
        wanted.append(-log_softmax([z / norm for z in row])[y])
    assert_each(logit_norm_loss(*batch, temperature=temperature), wanted)


@given(batches(), st.floats(0.5, 100))
def test_the_norm_does_not_matter(batch: tuple, factor: float) -> None:
    logits, labels = batch
    logits = logits + torch.arange(logits.shape[1])  # away from 0, where the constant in the norm acts
    torch.testing.assert_close(
        logit_norm_loss(factor * logits, labels), logit_norm_loss(logits, labels), rtol=1e-4, atol=1e-4
    )


def test_the_loss_is_bounded_by_the_temperature() -> None:
    # The best direction of k logits has the true class at sqrt((k - 1) / k).
    k, tau = 4, 0.5
    best = torch.tensor([[1.0] + [-1 / (k - 1)] * (k - 1)], dtype=torch.float64)
    gap = (math.sqrt((k - 1) / k) + 1 / math.sqrt(k * (k - 1))) / tau
    assert_each(logit_norm_loss(1e6 * best, FIRST, temperature=tau), [math.log1p((k - 1) * math.exp(-gap))])


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e4])
def test_finite_with_gradient_at_zero_and_far_out(scale: float) -> None:
    logits = torch.tensor([[scale, -scale, 0.0]], requires_grad=True)
    value = logit_norm_loss(logits, FIRST)
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_mistakes() -> None:
    with pytest.raises(ValueError, match=r"The paper uses 0\.04"):
        LogitNormLoss(temperature=0)


def test_it_is_not_the_penalty_on_the_norm() -> None:
    logits = torch.tensor([[3.0, -4.0]])
    assert nn.functional.cross_entropy(logits, FIRST) < logit_norm_loss(logits, FIRST, temperature=1.0)
