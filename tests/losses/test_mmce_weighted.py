import math
from itertools import product

import pytest
import torch
from hypothesis import given

from equipoise.losses import MMCEWeighted, mmce_weighted_penalty
from helpers.batch_terms import batches, check_edges, plain

NORMALIZATIONS = ["paper", "authors"]


def means(batch):
    """Means over pairs: right with right, wrong with wrong, right with wrong; and the two counts."""
    confidence, correct = plain(*batch)
    right = [c for c, a in zip(confidence, correct, strict=True) if a]
    wrong = [c for c, a in zip(confidence, correct, strict=True) if not a]

    def mean(first, second, weigh):
        pairs = [weigh(c, d) * math.exp(-abs(c - d) / 0.4) for c, d in product(first, second)]
        return sum(pairs) / len(pairs) if pairs else 0.0

    both_right = mean(right, right, lambda c, d: (1 - c) * (1 - d))
    both_wrong = mean(wrong, wrong, lambda c, d: c * d)
    mixed = mean(right, wrong, lambda c, d: (1 - c) * d)
    return both_right, both_wrong, mixed, len(right), len(wrong)


def test_value_by_hand():
    # all confidences 1/2: (1/2)^2 + (1/2)^2 - 2 (1/2)^2 = 0, however few are wrong
    assert mmce_weighted_penalty(torch.zeros(5, 2), torch.tensor([0, 0, 0, 0, 1])).item() == 0
    # all right at confidence 1/2: the first mean alone
    assert mmce_weighted_penalty(torch.zeros(5, 2), torch.zeros(5).long()).item() == pytest.approx(0.5)


@given(batches())
def test_oracle_of_the_paper(batch):
    s1, s2, s3, _, _ = means(batch)
    value = mmce_weighted_penalty(*batch).item()
    assert value**2 == pytest.approx(max(s1 + s2 - 2 * s3, 0), abs=1e-13)


@given(batches())
def test_oracle_of_the_authors(batch):
    s1, s2, s3, m, n = means(batch)
    square = s1 / (m * m + 1e-5) + s2 / (n * n + 1e-5) - 2 * s3 / (m * n + 1e-5) + 1e-10
    value = mmce_weighted_penalty(*batch, normalization="authors").item()
    assert value**2 == pytest.approx(max(square, 0) if m and n else 0, abs=1e-13)


def test_repeating_the_right_predictions_changes_nothing():
    logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.5, 0.0]])
    labels = torch.tensor([0, 0, 1])
    repeated = torch.tensor([0, 1, 0, 1, 0, 1, 2])
    torch.testing.assert_close(
        mmce_weighted_penalty(logits[repeated], labels[repeated]), mmce_weighted_penalty(logits, labels)
    )


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_edges(normalization):
    check_edges(MMCEWeighted(normalization=normalization))


@pytest.mark.parametrize("label", [0, 1])
def test_the_authors_form_is_zero_without_right_or_without_wrong(label):
    logits = torch.tensor([[1.0, 0.0], [2.0, 0.0]], requires_grad=True)
    value = mmce_weighted_penalty(logits, torch.full((2,), label), normalization="authors")
    value.backward()
    assert value == 0
    assert not logits.grad.any()


def test_refuses_an_unknown_normalization():
    with pytest.raises(ValueError, match="Did you mean 'authors'"):
        MMCEWeighted(normalization="author")
