import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import FocalLoss, focal_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows


def test_value_by_hand() -> None:
    # p = 3/4, gamma 2: (1/4)^2 log(4/3)
    assert_each(focal_loss(logits_of(0.75, 0.25), FIRST, gamma=2.0), [math.log(4 / 3) / 16])


@given(batches())
def test_gamma_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(focal_loss(*batch, gamma=0.0), wanted)
    torch.testing.assert_close(focal_loss(*batch, gamma=torch.zeros(len(wanted))), wanted)


@given(batches(), st.floats(0, 10))
def test_equals_the_equation(batch: tuple, gamma: float) -> None:
    wanted = []
    for row, y in rows(*batch):
        log_p = log_softmax(row)[y]
        wanted.append(-((1 - math.exp(log_p)) ** gamma) * log_p if log_p else 0.0)
    assert_each(focal_loss(*batch, gamma=gamma), wanted)


@given(batches(), st.floats(0, 10), st.floats(0.01, 3))
def test_falls_with_gamma_and_does_not_see_a_shift(batch: tuple, gamma: float, more: float) -> None:
    logits, labels = batch
    value = focal_loss(logits, labels, gamma=gamma)
    assert (focal_loss(logits, labels, gamma=gamma + more) <= value).all()
    torch.testing.assert_close(focal_loss(logits - 5.0, labels, gamma=gamma), value)


@pytest.mark.parametrize("gamma", [0.0, 1e-3, 0.1, 0.5, 0.999, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gap", [0.0, 1.0, 20.0, 40.0, 1e4])
def test_derivatives_are_finite_in_logits_and_gamma_to_second_order(
    gamma: float, dtype: torch.dtype, gap: float
) -> None:
    logits = torch.tensor([[gap, 0.0, 0.0], [-gap, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    exponent = torch.full((2,), gamma, dtype=dtype, requires_grad=True)
    value = focal_loss(logits, torch.tensor([0, 0]), gamma=exponent)
    assert value.isfinite().all()
    grads = torch.autograd.grad(value.sum(), (logits, exponent), create_graph=True)
    assert all(grad.isfinite().all() for grad in grads)
    for grad in grads:
        for second in torch.autograd.grad(
            grad.sum(), (logits, exponent), retain_graph=True, allow_unused=True
        ):
            assert second is None or second.isfinite().all()


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0, 4.0])
def test_derivatives_are_right_in_logits_and_gamma_to_second_order(gamma: float) -> None:
    logits = torch.tensor([[0.5, -1.0, 0.2], [6.0, 0.0, -2.0]], dtype=torch.float64, requires_grad=True)
    exponent = torch.tensor([gamma, gamma + 0.5], dtype=torch.float64, requires_grad=True)

    def loss(z: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return focal_loss(z, torch.tensor([0, 0]), gamma=g)

    if gamma:  # finite differences would step below 0
        assert torch.autograd.gradcheck(loss, (logits, exponent))
        assert torch.autograd.gradgradcheck(loss, (logits, exponent))
    assert torch.autograd.gradgradcheck(lambda z: loss(z, exponent.detach()), logits)


def test_detached_weight_keeps_the_value_and_scales_the_gradient_of_cross_entropy() -> None:
    logits = logits_of(0.75, 0.25).requires_grad_()
    value = focal_loss(logits, FIRST, gamma=2.0, detach_weight=True)
    assert_each(value, [math.log(4 / 3) / 16])
    assert_each(torch.autograd.grad(value.sum(), logits)[0][0], [-0.25 / 16, 0.25 / 16])


def test_schedule_changes_gamma_with_the_epoch() -> None:
    loss = FocalLoss(gamma=5, schedule={2: 3, 4: 1})
    logits = logits_of(0.75, 0.25)
    seen = []
    for _ in range(6):
        seen.append(loss(logits, FIRST).item())
        loss.update(logits, FIRST)
    wanted = [focal_loss(logits, FIRST, gamma=float(gamma)).item() for gamma in (5, 5, 3, 3, 1, 1)]
    assert seen == pytest.approx(wanted, rel=1e-6)


def test_schedule_resumes_where_it_was() -> None:
    loss, resumed = (FocalLoss(gamma=5, schedule={1: 3, 3: 1}) for _ in range(2))
    for _ in range(2):
        loss.update(torch.zeros(1, 2), FIRST)
    resumed.load_state_dict(loss.state_dict())
    for _ in range(2):
        assert loss.current_gamma == resumed.current_gamma
        loss.update(torch.zeros(1, 2), FIRST)
        resumed.update(torch.zeros(1, 2), FIRST)
    assert resumed.current_gamma == 1


def test_gamma_per_sample_follows_dense_samples() -> None:
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(2, 4, dtype=torch.long)
    gamma = torch.arange(8.0).reshape(2, 4)
    dense = FocalLoss(gamma=gamma, reduction="none")(logits, labels)
    flat = focal_loss(logits.movedim(1, -1).reshape(-1, 3), labels.flatten(), gamma=gamma.flatten())
    torch.testing.assert_close(dense, flat.reshape(2, 4))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="plain cross-entropy"):
        FocalLoss(gamma=-1)
    with pytest.raises(ValueError, match="plain cross-entropy"):
        FocalLoss(gamma=1, schedule={3: -2})
    for schedule in ({0: 1.0}, {5: 1.0, 3: 2.0}):
        with pytest.raises(ValueError, match="FLSc-531"):
            FocalLoss(gamma=5, schedule=schedule)
    with pytest.raises(ValueError, match="FLSc-531"):
        FocalLoss(gamma=torch.ones(1), schedule={1: 1.0})
