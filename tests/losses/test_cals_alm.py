import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.losses import ClassAdaptiveLoss, class_adaptive_loss
from equipoise.losses.cals_alm import PENALTIES, SLOPES
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, rows


def penalty_of(name: str, h: float, lam: float, rho: float) -> float:
    """The paper's piecewise definitions."""
    if name == "phr":
        return lam * h + rho * h * h / 2 if lam + rho * h >= 0 else -lam * lam / (2 * rho)
    if h < 0:
        return lam * h / (1 - rho * h)
    return lam * h + lam * rho * h * h + (rho * rho * h**3 / 6 if name == "p2" else 0)


def test_value_by_hand() -> None:
    logits = torch.tensor([[12.0, 0.0]], dtype=torch.float64)  # h = (-1, 0.2)
    state = {"multipliers": torch.tensor([0.3, 0.3]), "rho": torch.tensor([2.0, 2.0])}
    # PHR: -0.3^2 / 4, and 0.3 * 0.2 + 0.2^2
    wanted = math.log1p(math.exp(-12)) + (-0.0225 + 0.1) / 2
    value = class_adaptive_loss(logits, FIRST, **{k: v.double() for k, v in state.items()})
    torch.testing.assert_close(value.item(), wanted, rtol=1e-7, atol=0)


@given(st.floats(-3, 3), st.floats(1e-6, 5), st.floats(1, 10), st.sampled_from(sorted(PENALTIES)))
def test_penalties_and_their_slopes_equal_their_definition(
    h: float, lam: float, rho: float, name: str
) -> None:
    at, *state = (torch.tensor([value], dtype=torch.float64) for value in (h, lam, rho))
    at.requires_grad_()
    value = PENALTIES[name](at, *state)
    assert_each(value, [penalty_of(name, h, lam, rho)])
    torch.testing.assert_close(SLOPES[name](at, *state), torch.autograd.grad(value, at)[0])


@given(batches(), st.sampled_from(sorted(PENALTIES)), st.sampled_from(["sum", "mean"]))
def test_equals_the_equation(batch: tuple, name: str, over_classes: str) -> None:
    k = batch[0].shape[1]
    lam = [0.1 * (j + 1) for j in range(k)]
    rho = [1.0 + j for j in range(k)]
    wanted = []
    for row, y in rows(*batch):
        costs = [penalty_of(name, (max(row) - z) / 6 - 1, lam[j], rho[j]) for j, z in enumerate(row)]
        wanted.append(-log_softmax(row)[y] + sum(costs) / (k if over_classes == "mean" else 1))
    values = class_adaptive_loss(
        *batch,
        multipliers=torch.tensor(lam, dtype=torch.float64),
        rho=torch.tensor(rho, dtype=torch.float64),
        margin=6.0,
        penalty=name,
        over_classes=over_classes,
    )
    assert_each(values, wanted)


def test_small_multipliers_and_gaps_within_the_margin_are_cross_entropy() -> None:
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    loss = ClassAdaptiveLoss(n_classes=3)
    torch.testing.assert_close(loss(logits, FIRST), nn.functional.cross_entropy(logits, FIRST))


def test_a_constraint_that_stays_broken_raises_multiplier_and_rho_in_its_class_only() -> None:
    loss = ClassAdaptiveLoss(n_classes=3, rho_period=1)
    broken = torch.tensor([[16.0, 14.0, 0.0]])
    multipliers = []
    for _ in range(4):
        loss.update(broken, FIRST)
        multipliers.append(loss.multipliers.tolist())
    assert [m[2] for m in multipliers] == sorted({m[2] for m in multipliers})
    assert all(m[:2] == pytest.approx([1e-6, 1e-6]) for m in multipliers)
    assert loss.rho.tolist() == pytest.approx([1.0, 1.0, 1.2**3])


def test_rho_waits_for_its_period_and_stops_at_its_limit() -> None:
    loss = ClassAdaptiveLoss(n_classes=2, rho_period=3, growth=4.0)
    seen = []
    for _ in range(9):
        loss.update(torch.tensor([[16.0, 0.0]]), FIRST)
        seen.append(loss.rho[1].item())
    assert seen == [1, 1, 4, 4, 4, 10, 10, 10, 10]


def test_clipping_each_slope_adds_the_least_multiplier_for_kept_constraints() -> None:
    logits = torch.tensor([[12.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    paper, code = (ClassAdaptiveLoss(n_classes=2, clip_each=each).double() for each in (False, True))
    for loss in (paper, code):
        loss.update(logits, torch.tensor([0, 0]))
    assert paper.multipliers[1].item() == pytest.approx((0.2 + 1e-6) / 2, rel=1e-9)
    assert code.multipliers[1].item() == pytest.approx((0.2 + 1e-6 + 1e-6) / 2, rel=1e-9)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"logits\.shape\[1\]"):
        ClassAdaptiveLoss(n_classes=1)
    with pytest.raises(ValueError, match="Did you mean 'phr'"):
        ClassAdaptiveLoss(n_classes=2, penalty="ph")
    with pytest.raises(ValueError, match="10 for images"):
        ClassAdaptiveLoss(n_classes=2, margin=-1)
