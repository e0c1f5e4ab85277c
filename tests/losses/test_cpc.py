import math

import pytest
import torch
from hypothesis import given
from torch import nn

from equipoise.losses import PairwiseConstraintLoss, cpc, pairwise_constraint_loss
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def test_value_by_hand() -> None:
    # Three equal classes: log 3 + log 2 / 1 + (1/2) log 2.
    value = pairwise_constraint_loss(torch.zeros(1, 3).double(), FIRST, discrimination=1.0, exclusion=1.0)
    assert_each(value, [math.log(3) + 1.5 * math.log(2)])


@given(batches(n_classes=(3, 5)))
def test_both_weights_0_is_cross_entropy(batch: tuple) -> None:
    wanted = nn.functional.cross_entropy(*batch, reduction="none")
    torch.testing.assert_close(pairwise_constraint_loss(*batch, discrimination=0.0, exclusion=0.0), wanted)


@given(batches(n_classes=(3, 6)))
def test_equals_the_equation(batch: tuple) -> None:
    wanted = []
    for row, y in rows(*batch):
        k, others = len(row), [j for j in range(len(row)) if j != y]
        apart = -sum(log_sigmoid(row[y] - row[j]) for j in others) / (k - 1)
        pairs = [0.5 * log_sigmoid(row[i] - row[j]) for i in others for j in others if i != j]
        wanted.append(-log_softmax(row)[y] + 2 * apart - 3 * sum(pairs) / ((k - 1) * (k - 2)))
    assert_each(pairwise_constraint_loss(*batch, discrimination=2.0, exclusion=3.0), wanted)


def test_pairs_of_a_class_with_itself_add_a_constant() -> None:
    logits = logits_of(0.5, 0.2, 0.2, 0.1)
    values = [
        pairwise_constraint_loss(logits, FIRST, discrimination=0.0, self_pairs=own) for own in (False, True)
    ]
    assert_each(values[1] - values[0], [0.5 * math.log(2) / 2])


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(7, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 5, (7,), generator=generator)
    whole = pairwise_constraint_loss(logits, labels).sum()
    whole_grad = torch.autograd.grad(whole, logits)[0]
    monkeypatch.setattr(cpc, "_CHUNK", 50)  # three rows at a time
    parts = pairwise_constraint_loss(logits, labels).sum()
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(torch.autograd.grad(parts, logits)[0], whole_grad)


def test_ranking_the_wrong_classes_costs() -> None:
    even = pairwise_constraint_loss(torch.tensor([[3.0, 0.0, 0.0]]), FIRST, discrimination=0.0)
    ranked = pairwise_constraint_loss(torch.tensor([[3.0, 2.0, -20.0]]), FIRST, discrimination=0.0)
    assert ranked > even


def test_two_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 classes"):
        PairwiseConstraintLoss()(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))
