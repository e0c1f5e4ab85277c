import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import MarginLoss, margin_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, rows


def test_value_by_hand() -> None:
    logits = torch.tensor([[12.0, 0.0, -3.0]], dtype=torch.float64)  # gaps 0, 12, 15
    ce = math.log1p(math.exp(-12) + math.exp(-15))
    assert_each(margin_loss(logits, FIRST, margin=10.0, strength=0.5), [ce + 0.5 * (2 + 5)])
    mean = margin_loss(logits, FIRST, margin=10.0, strength=0.5, over_classes="mean")
    assert_each(mean, [ce + 0.5 * (2 + 5) / 3])


@given(batches())
def test_a_wide_margin_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(margin_loss(*batch, margin=30.0), wanted)


@given(batches(), st.floats(0.5, 12), st.sampled_from(["sum", "mean"]))
def test_equals_the_equation(batch: tuple, margin: float, over_classes: str) -> None:
    wanted = []
    for row, y in rows(*batch):
        cost = sum(max(0.0, max(row) - z - margin) for z in row)
        wanted.append(-log_softmax(row)[y] + 0.3 * cost / (len(row) if over_classes == "mean" else 1))
    values = margin_loss(*batch, margin=margin, strength=0.3, over_classes=over_classes)
    assert_each(values, wanted)


@given(batches())
def test_shift_of_logits_changes_nothing(batch: tuple) -> None:
    logits, labels = batch
    torch.testing.assert_close(margin_loss(logits + 7.0, labels), margin_loss(logits, labels))


def test_gradient_pulls_the_far_logit_up_and_the_largest_down_by_as_much() -> None:
    logits = torch.tensor([[20.0, 0.0, 15.0]], dtype=torch.float64, requires_grad=True)
    ce = nn.functional.cross_entropy(logits, FIRST)
    extra = margin_loss(logits, FIRST, strength=0.5).sum() - ce
    assert_each(torch.autograd.grad(extra, logits)[0][0], [0.5, -0.5, 0.0])


def test_two_tied_for_the_largest() -> None:
    logits = torch.tensor([[5.0, 5.0, -9.0]], requires_grad=True)
    grad = torch.autograd.grad(margin_loss(logits, FIRST).sum(), logits)[0]
    torch.testing.assert_close(grad.sum(), torch.tensor(0.0))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="10 for images and 6 for text"):
        MarginLoss(margin=0)
    with pytest.raises(ValueError, match="at least 0"):
        MarginLoss(strength=-1)
    with pytest.raises(ValueError, match="'sum' or 'mean'"):
        MarginLoss(over_classes="total")
