import pytest
import torch
from hypothesis import given

from equipoise.losses import DCA, MDCA, mdca_penalty
from helpers.batch_terms import batches, check_edges, probabilities


def test_value_by_hand():
    # mean probabilities (1/2, 1/2), frequencies (3/4, 1/4)
    assert mdca_penalty(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1])).item() == 0.25


def test_one_sample_is_the_absolute_error_of_its_probabilities():
    logits = torch.tensor([[1.0, 0.0, -1.0]], dtype=torch.float64)
    probs = logits.softmax(-1)[0]
    assert mdca_penalty(logits, torch.tensor([0])).item() == pytest.approx(2 * (1 - probs[0]).item() / 3)


@given(batches())
def test_oracle(batch):
    logits, labels = batch
    probs, n_classes = probabilities(logits), logits.shape[1]
    gaps = [
        abs(sum(row[j] for row in probs) - sum(y == j for y in labels.tolist())) / len(probs)
        for j in range(n_classes)
    ]
    assert mdca_penalty(logits, labels).item() == pytest.approx(sum(gaps) / n_classes, abs=1e-14)


@given(batches())
def test_one_hot_targets_equal_class_numbers(batch):
    logits, labels = batch
    targets = torch.nn.functional.one_hot(labels, logits.shape[1]).double()
    torch.testing.assert_close(MDCA()(logits, targets), MDCA()(logits, labels))


@given(batches())
def test_does_not_see_which_class_is_which(batch):
    logits, labels = batch
    flipped = mdca_penalty(logits.flip(1), logits.shape[1] - 1 - labels)
    torch.testing.assert_close(flipped, mdca_penalty(logits, labels))


def test_a_class_absent_from_the_batch_counts():
    logits = torch.tensor([[0.0, 0.0, 9.0]]).repeat(2, 1)
    assert mdca_penalty(logits, torch.tensor([0, 1])).item() == pytest.approx(2 / 3, abs=1e-3)


def test_edges():
    check_edges(MDCA())


def test_refuses_soft_targets_where_there_is_one_true_class():
    with pytest.raises(ValueError, match=r"one class number per row"):
        DCA()(torch.zeros(2, 3), torch.full((2, 3), 1 / 3))
