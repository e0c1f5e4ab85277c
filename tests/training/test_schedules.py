import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.training import Constant, Cosine, MultiStep, WarmUp


def torchs(make, epochs):
    """The rates of a scheduler of torch, stepped once after every epoch."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = make(optimizer)
    rates = []
    for _ in range(epochs):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return rates


def test_multi_step_is_torchs():
    expected = torchs(lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 6], 0.1), 8)
    assert [MultiStep((3, 6)).factor(epoch, epochs=8) for epoch in range(8)] == pytest.approx(expected)


def test_cosine_is_torchs():
    expected = torchs(
        lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8, eta_min=0.1), 8
    )
    schedule = Cosine(floor=0.1)
    assert [schedule.factor(epoch, epochs=8) for epoch in range(8)] == pytest.approx(expected)


def test_a_milestone_is_the_first_epoch_at_the_lower_rate():
    schedule = MultiStep((150, 250))
    assert schedule.factor(149.99, epochs=350) == 1
    assert schedule.factor(150, epochs=350) == pytest.approx(0.1)


def test_warm_up_hands_over_without_a_jump():
    schedule = WarmUp(4, then=Cosine(), start=0.1)
    assert schedule.factor(0, epochs=20) == pytest.approx(0.1)
    assert schedule.factor(2, epochs=20) == pytest.approx(0.55)
    assert schedule.factor(4 - 1e-9, epochs=20) == pytest.approx(schedule.factor(4, epochs=20))
    assert schedule.factor(20, epochs=20) == pytest.approx(0)


SCHEDULES = [
    Constant(),
    MultiStep((1, 5)),
    Cosine(),
    Cosine(floor=0.5),
    WarmUp(2),
    WarmUp(0.5, then=MultiStep((3,))),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(moment=st.floats(0, 100), epochs=st.integers(1, 50))
def test_factors_are_finite_and_at_most_one(schedule, moment, epochs):
    factor = schedule.factor(moment, epochs=epochs)
    assert math.isfinite(factor)
    assert 0 <= factor <= 1
