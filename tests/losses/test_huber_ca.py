import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.losses import HuberConfidenceAccuracy, dca_penalty, huber_ca_penalty
from helpers.batch_terms import batches, check_edges, plain


def test_value_by_hand():
    # the gap is 1/4: beyond alpha = 0.1 linear, 0.1 (0.25 - 0.05); below alpha = 1 squared, 0.25^2 / 2
    logits, labels = torch.zeros(4, 2), torch.tensor([0, 0, 0, 1])
    assert huber_ca_penalty(logits, labels, alpha=0.1).item() == pytest.approx(0.02)
    assert huber_ca_penalty(logits, labels, alpha=1.0).item() == pytest.approx(0.03125)


@given(batches())
def test_a_small_alpha_gives_the_absolute_difference(batch):
    scaled = huber_ca_penalty(*batch, alpha=1e-9).item() / 1e-9
    assert scaled == pytest.approx(dca_penalty(*batch).item(), abs=1e-8)


@given(batches(), st.floats(0.001, 1))
def test_oracle(batch, alpha):
    confidence, correct = plain(*batch)
    gap = abs(sum(confidence) - sum(correct)) / len(correct)
    wanted = gap**2 / 2 if gap <= alpha else alpha * (gap - alpha / 2)
    assert huber_ca_penalty(*batch, alpha=alpha).item() == pytest.approx(wanted, abs=1e-14)


def test_gradient_is_continuous_where_the_norm_turns():
    logits, labels = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True), torch.tensor([0, 0, 0, 1])
    below, above = (
        torch.autograd.grad(huber_ca_penalty(logits, labels, alpha=alpha), logits)[0]
        for alpha in (0.25 + 1e-9, 0.25 - 1e-9)
    )
    torch.testing.assert_close(below, above, rtol=1e-6, atol=0)


def test_edges():
    check_edges(HuberConfidenceAccuracy())


def test_refuses_a_norm_without_a_turn():
    with pytest.raises(ValueError, match=r"above 0, got 0.*use DCA"):
        HuberConfidenceAccuracy(alpha=0)
