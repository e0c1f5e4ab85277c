import math

import pytest
import torch
from hypothesis import given

from equipoise.losses import MMCE, mmce_penalty
from equipoise.losses.mmce import laplace_form
from helpers.batch_terms import batches, check_edges, plain


def all_pairs(points, values, width):
    return (values[:, None] * values * (-(points[:, None] - points).abs() / width).exp()).sum()


def test_value_by_hand():
    # confidences 1/2 and e/(1+e), one right, one wrong: two squares and twice the product times the kernel
    sure = math.e / (1 + math.e)
    squares = 0.5**2 + sure**2
    product = 0.5 * -sure * math.exp(-(sure - 0.5) / 0.4)
    logits = torch.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    value = mmce_penalty(logits, torch.tensor([0, 0]), squared=True)
    assert value.item() == pytest.approx((squares + 2 * product) / 4)


def test_equal_confidences_give_the_gap_between_confidence_and_accuracy():
    value = mmce_penalty(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    assert value.item() == pytest.approx(0.75 - 0.5)


@given(batches())
def test_oracle(batch):
    confidence, correct = plain(*batch)
    total = sum(
        (a - c) * (b - d) * math.exp(-abs(c - d) / 0.4)
        for c, a in zip(confidence, correct, strict=True)
        for d, b in zip(confidence, correct, strict=True)
    )
    assert mmce_penalty(*batch, squared=True).item() == pytest.approx(total / len(confidence) ** 2, abs=1e-14)


@given(batches())
def test_the_square_is_the_square(batch):
    root, square = mmce_penalty(*batch), mmce_penalty(*batch, squared=True)
    assert root.item() ** 2 == pytest.approx(square.item(), abs=1e-14)


@pytest.mark.parametrize("width", [0.01, 0.1, 0.4, 3.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-4)])
def test_the_sort_gives_value_and_gradient_of_all_pairs(width, dtype, tolerance):
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(300, generator=generator, dtype=dtype)
    points[100:140] = points[:40]  # ties, where the kernel has its kink
    values = torch.randn(300, generator=generator, dtype=dtype)
    inputs = points.requires_grad_(), values.requires_grad_()
    fast, slow = laplace_form(*inputs, width=width), all_pairs(*inputs, width)
    torch.testing.assert_close(fast, slow, rtol=tolerance, atol=0)
    for one, other in zip(torch.autograd.grad(fast, inputs), torch.autograd.grad(slow, inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance * other.abs().max().item())


def test_second_derivatives():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(2, 6, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: laplace_form(x[0], x[1], width=0.4), inputs)


def test_memory_is_not_that_of_pairs():
    logits = torch.randn(200_000, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    mmce_penalty(logits, torch.zeros(200_000, dtype=torch.long)).backward()  # all pairs: 160 GB
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("squared", [False, True])
def test_edges(squared):
    check_edges(MMCE(squared=squared))


def test_refuses_a_kernel_too_narrow():
    with pytest.raises(ValueError, match=r"at least 0\.01, got 0"):
        MMCE(width=0)
