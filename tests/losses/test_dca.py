import pytest
import torch
from hypothesis import given

from equipoise.losses import DCA, dca_penalty
from helpers.batch_terms import batches, check_edges, plain


def test_value_by_hand():
    # confidence 1/2 everywhere, three of four right
    assert dca_penalty(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1])).item() == 0.25


def test_zero_when_calibrated_with_gradient_zero():
    logits = torch.zeros(4, 2, requires_grad=True)
    value = dca_penalty(logits, torch.tensor([0, 0, 1, 1]))
    value.backward()
    assert value == 0
    assert not logits.grad.any()


@given(batches())
def test_oracle(batch):
    confidence, correct = plain(*batch)
    wanted = abs(sum(confidence) - sum(correct)) / len(correct)
    assert dca_penalty(*batch).item() == pytest.approx(wanted, abs=1e-14)


@given(batches())
def test_does_not_see_which_class_is_which(batch):
    logits, labels = batch
    flipped = dca_penalty(logits.flip(1), logits.shape[1] - 1 - labels)
    assert flipped.item() == pytest.approx(dca_penalty(logits, labels).item(), abs=1e-14)


def test_edges():
    check_edges(DCA())


def test_refuses_one_value_per_sample():
    with pytest.raises(ValueError, match="no value per sample"):
        DCA(reduction="none")
