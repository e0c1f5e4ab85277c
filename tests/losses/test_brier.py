import pytest
import torch
from hypothesis import given

from equipoise.losses import BrierLoss, brier_loss
from helpers.per_sample import FIRST, assert_each, batches, logits_of, rows, softmax


def test_value_by_hand() -> None:
    assert_each(brier_loss(logits_of(0.7, 0.2, 0.1), FIRST), [0.3**2 + 0.2**2 + 0.1**2])


def test_uniform_over_k_is_one_minus_one_over_k() -> None:
    for k in (2, 5, 100):
        assert_each(brier_loss(torch.zeros(1, k, dtype=torch.float64), FIRST), [1 - 1 / k])


@given(batches())
def test_equals_the_sum_of_squares(batch: tuple) -> None:
    wanted = [sum((p - (j == y)) ** 2 for j, p in enumerate(softmax(row))) for row, y in rows(*batch)]
    assert_each(brier_loss(*batch), wanted)


@given(batches())
def test_shift_of_logits_changes_nothing_and_the_range_is_0_to_2(batch: tuple) -> None:
    logits, labels = batch
    torch.testing.assert_close(brier_loss(logits + 3.0, labels), brier_loss(logits, labels))
    assert ((brier_loss(logits, labels) >= 0) & (brier_loss(logits, labels) <= 2)).all()


def test_certain_and_wrong_costs_two_and_certain_and_right_nothing() -> None:
    logits = torch.tensor([[1e4, -1e4]])
    assert brier_loss(logits, torch.tensor([1])) == 2
    assert brier_loss(logits, torch.tensor([0])) == 0


def test_soft_target_is_its_own_minimum() -> None:
    target = torch.tensor([[0.6, 0.4]], dtype=torch.float64)
    torch.testing.assert_close(brier_loss(target.log(), target), torch.zeros(1, dtype=torch.float64))


def test_refuses_probabilities_in_place_of_labels_of_another_shape() -> None:
    with pytest.raises(ValueError, match="axis 1"):
        BrierLoss()(torch.zeros(4, 3), torch.zeros(4, 2))
