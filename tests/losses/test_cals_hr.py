import math

import pytest
import torch
from hypothesis import given

from equipoise.losses import ClassAdaptiveHeuristicLoss, class_adaptive_heuristic_loss, margin_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, rows


def test_value_by_hand() -> None:
    logits = torch.tensor([[12.0, 0.0, -3.0]], dtype=torch.float64)
    multipliers = torch.tensor([0.5, 0.1, 0.2], dtype=torch.float64)
    wanted = math.log1p(math.exp(-12) + math.exp(-15)) + (0.1 * 2 + 0.2 * 5) / 3
    assert_each(class_adaptive_heuristic_loss(logits, FIRST, multipliers=multipliers), [wanted])


@given(batches())
def test_equal_multipliers_are_margin_based_label_smoothing(batch: tuple) -> None:
    k = batch[0].shape[1]
    for over_classes in ("sum", "mean"):
        values = class_adaptive_heuristic_loss(
            *batch, multipliers=torch.full((k,), 0.3).double(), margin=4.0, over_classes=over_classes
        )
        wanted = margin_loss(*batch, margin=4.0, strength=0.3, over_classes=over_classes)
        torch.testing.assert_close(values, wanted, rtol=1e-6, atol=1e-6)


@given(batches())
def test_equals_the_equation(batch: tuple) -> None:
    k = batch[0].shape[1]
    multipliers = [0.25 * (j + 1) for j in range(k)]
    wanted = []
    for row, y in rows(*batch):
        cost = sum(m * max(0.0, max(row) - z - 5.0) for m, z in zip(multipliers, row, strict=True))
        wanted.append(-log_softmax(row)[y] + cost / k)
    values = class_adaptive_heuristic_loss(*batch, multipliers=torch.tensor(multipliers), margin=5.0)
    assert_each(values, wanted)


def test_updates_by_hand() -> None:
    loss = ClassAdaptiveHeuristicLoss(n_classes=3).double()
    # Gaps of class 1 and 2; held-out costs are multiplier x (gap - 10).
    epochs = [
        ((12.0, 15.0), (0.1, 0.1)),  # first epoch: costs 0.2, 0.5, nothing to compare with
        ((13.0, 12.0), (0.11, 0.1 / 1.1)),  # 0.3 > 1.1 x 0.2 rises; 0.2 < 0.5 / 1.1 falls
        ((12.9, 9.0), (0.11, 0.1 / 1.1**2)),  # 0.319 within a factor 1.1 of 0.3 stays; 0 falls
        ((12.9, 9.0), (0.11, 0.1 / 1.1**2)),  # 0 is not below 0
    ]
    for (first, second), wanted in epochs:
        loss.update(torch.tensor([[0.0, -first, -second]]), FIRST)
        assert loss.multipliers.tolist() == pytest.approx([0.1, *wanted], rel=1e-6)


def test_nothing_moves_while_no_constraint_was_ever_broken() -> None:
    loss = ClassAdaptiveHeuristicLoss(n_classes=2)
    for _ in range(3):
        loss.update(torch.tensor([[1.0, 0.0]]), FIRST)
    assert loss.multipliers.tolist() == pytest.approx([0.1, 0.1])


def test_a_cost_that_appears_after_costs_of_zero_raises_nothing() -> None:
    loss = ClassAdaptiveHeuristicLoss(n_classes=2)
    for gap in (1.0, 20.0):  # eq. 15 would raise the second multiplier, the authors' code does not
        loss.update(torch.tensor([[gap, 0.0]]), FIRST)
    assert loss.multipliers.tolist() == pytest.approx([0.1, 0.1])


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"logits\.shape\[1\]"):
        ClassAdaptiveHeuristicLoss(n_classes=0)
    with pytest.raises(ValueError, match="10 for images"):
        ClassAdaptiveHeuristicLoss(n_classes=2, margin=0)
