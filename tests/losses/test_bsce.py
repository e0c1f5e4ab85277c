import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import BrierWeightedLoss, brier_weighted_loss, focal_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows, softmax


def test_value_by_hand() -> None:
    # distances 0.3, 0.2, 0.1
    logits = logits_of(0.7, 0.2, 0.1)
    ce = -math.log(0.7)
    assert_each(brier_weighted_loss(logits, FIRST, gamma=1, norm=1), [0.6 * ce])
    assert_each(brier_weighted_loss(logits, FIRST, gamma=2, norm=2), [0.14 * ce])
    assert_each(brier_weighted_loss(logits, FIRST, gamma=3, norm=2), [0.14**1.5 * ce])


@given(batches())
def test_gamma_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(brier_weighted_loss(*batch, gamma=0.0), wanted)


@given(batches(), st.floats(0, 4))
def test_norm_1_is_focal_loss_times_a_constant(batch: tuple, gamma: float) -> None:
    wanted = 2**gamma * focal_loss(*batch, gamma=gamma)
    torch.testing.assert_close(brier_weighted_loss(*batch, gamma=gamma), wanted)


@given(batches(), st.floats(0, 4), st.floats(1, 4))
def test_equals_the_equation(batch: tuple, gamma: float, norm: float) -> None:
    wanted = []
    for row, y in rows(*batch):
        distance = sum(abs(p - (j == y)) ** norm for j, p in enumerate(softmax(row))) ** (1 / norm)
        wanted.append(-(distance**gamma) * log_softmax(row)[y])
    assert_each(brier_weighted_loss(*batch, gamma=gamma, norm=norm), wanted)


@given(batches())
def test_a_constant_weight_scales_the_gradient_of_cross_entropy(batch: tuple) -> None:
    logits, labels = batch
    logits = logits.detach().requires_grad_()
    value = brier_weighted_loss(logits, labels, gamma=2, norm=2, detach_weight=True)
    ce = nn.functional.cross_entropy(logits, labels, reduction="none")
    (ours,), (theirs,) = (torch.autograd.grad(one.sum(), logits) for one in (value, ce))
    weight = brier_weighted_loss(logits, labels, gamma=2, norm=2) / ce.clamp(min=1e-300)
    torch.testing.assert_close(ours, weight.detach()[:, None] * theirs, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_finite_with_gradient_far_out(gamma: float, norm: float, scale: float) -> None:
    for top in (scale, -scale):
        logits = torch.tensor([[top, 0.0, 0.0]], requires_grad=True)
        value = brier_weighted_loss(logits, FIRST, gamma=gamma, norm=norm)
        assert value.isfinite()
        assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        BrierWeightedLoss(gamma=-1)
    for norm in (0.5, math.inf, math.nan):
        with pytest.raises(ValueError, match="The authors use 1"):
            BrierWeightedLoss(norm=norm)
