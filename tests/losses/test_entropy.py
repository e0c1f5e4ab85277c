import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import EntropyRegularizedLoss, entropy_regularized_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows


def test_value_by_hand() -> None:
    # Four equal classes: cross-entropy log 4, entropy log 4.
    assert_each(
        entropy_regularized_loss(torch.zeros(1, 4).double(), FIRST, strength=0.25), [0.75 * math.log(4)]
    )
    mean = entropy_regularized_loss(torch.zeros(1, 4).double(), FIRST, strength=0.25, over_classes="mean")
    assert_each(mean, [(1 - 0.25 / 4) * math.log(4)])


@given(batches())
def test_strength_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(entropy_regularized_loss(*batch, strength=0.0), wanted)


@given(batches(), st.floats(0, 2), st.sampled_from(["sum", "mean"]))
def test_equals_the_equation(batch: tuple, strength: float, over_classes: str) -> None:
    wanted = []
    for row, y in rows(*batch):
        log_p = log_softmax(row)
        entropy = -sum(math.exp(lp) * lp for lp in log_p)
        wanted.append(-log_p[y] - strength * entropy / (len(row) if over_classes == "mean" else 1))
    assert_each(entropy_regularized_loss(*batch, strength=strength, over_classes=over_classes), wanted)


def test_it_softens_a_prediction_that_cross_entropy_would_sharpen() -> None:
    logits = logits_of(0.999, 0.001).requires_grad_()
    plain = torch.autograd.grad(nn.functional.cross_entropy(logits, FIRST), logits)[0]
    value = entropy_regularized_loss(logits, FIRST, strength=1.0).sum()
    assert plain[0, 0] < 0 < torch.autograd.grad(value, logits)[0][0, 0]


def test_probability_0_has_no_entropy() -> None:
    logits = torch.tensor([[1e4, -1e4]], requires_grad=True)
    value = entropy_regularized_loss(logits, FIRST)
    assert value == 0
    assert not torch.autograd.grad(value, logits)[0].any()


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        EntropyRegularizedLoss(strength=-0.1)
    with pytest.raises(ValueError, match="'sum' or 'mean'"):
        EntropyRegularizedLoss(over_classes="max")


def test_functional_transforms_and_second_derivatives() -> None:
    logits = torch.tensor([[0.5, -1.0, 0.2], [6.0, 0.0, -2.0]], dtype=torch.float64)
    labels = torch.tensor([0, 2])

    def value(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return entropy_regularized_loss(z[None], y[None], strength=0.5).sum()

    def plain(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return -z.log_softmax(-1).gather(-1, y[None])[0] + 0.5 * (z.softmax(-1) * z.log_softmax(-1)).sum()

    for transform in (torch.func.grad, lambda f: torch.func.jacrev(torch.func.grad(f))):
        got = torch.func.vmap(transform(value))(logits, labels)
        torch.testing.assert_close(got, torch.func.vmap(transform(plain))(logits, labels))
