import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from equipoise.experiments import Spec
from equipoise.experiments.build.run_parts import build
from equipoise.losses import MaxSuppressionLoss, max_suppression_loss
from equipoise.losses.adaptive import adapts
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, rows
from helpers.tiny_runs import TABLE


def test_value_by_hand() -> None:
    logits = torch.tensor([[2.0, 0.0, 1.0]], dtype=torch.float64)
    ce = math.log(math.exp(2) + 1 + math.e) - 2
    assert_each(max_suppression_loss(logits, FIRST, strength=0.5), [ce + 0.5 * (2 - 1)])


@given(batches())
def test_strength_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(max_suppression_loss(*batch, strength=0.0), wanted)


@given(batches(), st.floats(0, 3))
def test_equals_the_equation(batch: tuple, strength: float) -> None:
    wanted = [-log_softmax(row)[y] + strength * (max(row) - sum(row) / len(row)) for row, y in rows(*batch)]
    assert_each(max_suppression_loss(*batch, strength=strength), wanted)


@given(batches(), st.floats(-5, 5))
def test_a_shift_of_the_logits_changes_nothing(batch: tuple, shift: float) -> None:
    logits, labels = batch
    torch.testing.assert_close(
        max_suppression_loss(logits + shift, labels), max_suppression_loss(logits, labels)
    )


def test_the_strength_grows_from_the_first_to_the_last_epoch() -> None:
    loss = MaxSuppressionLoss(epochs=5)
    logits, labels = torch.tensor([[3.0, 0.0, 0.0]]), FIRST
    ce = nn.functional.cross_entropy(logits, labels)
    found = []
    for _ in range(6):  # one more than there are epochs
        found.append(float(loss(logits, labels) - ce) / 2)
        loss.update(logits, labels)
    assert found == pytest.approx([0.1, 0.125, 0.15, 0.175, 0.2, 0.2], abs=1e-6)


def test_without_a_number_of_epochs_it_is_constant() -> None:
    assert not adapts(MaxSuppressionLoss())
    assert adapts(MaxSuppressionLoss(epochs=2))
    once = MaxSuppressionLoss(epochs=1)
    once.update(torch.zeros(1, 2), torch.tensor([0]))
    assert once.current_strength.item() == pytest.approx(0.2)


def test_a_spec_fills_in_the_epochs() -> None:
    made = build(Spec.from_table({**TABLE, "method": "maxsup", "recipe": {"name": "quick", "epochs": 7}}))
    assert made.objective.loss.epochs == 7


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        MaxSuppressionLoss(strength=-1)
    with pytest.raises(ValueError, match="at least 1"):
        MaxSuppressionLoss(epochs=0)
