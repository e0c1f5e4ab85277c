import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.losses import AvUC, CrossEntropyLoss, avuc_penalty
from helpers.batch_terms import batches, check_edges, entropies, plain


def cells(batch, threshold):
    """Sums over accurate or inaccurate, certain or uncertain samples: AC, AU, IC, IU."""
    sums = {(accurate, certain): 0.0 for accurate in (0.0, 1.0) for certain in (False, True)}
    for c, a, u in zip(*plain(*batch), entropies(batch[0]), strict=True):
        certain = u <= threshold
        sums[a, certain] += (c if a else 1 - c) * (1 - math.tanh(u) if certain else math.tanh(u))
    return sums[1.0, True], sums[1.0, False], sums[0.0, True], sums[0.0, False]


def test_value_by_hand():
    # two samples at probability 1/2, entropy log 2 = u, one right, one wrong: c = 1 - c = 1/2
    logits, labels, tanh = torch.zeros(2, 2), torch.tensor([0, 1]), math.tanh(math.log(2))
    # certain: right is good with (1 - tanh)/2, wrong is bad with the same
    assert avuc_penalty(logits, labels, threshold=0.7).item() == pytest.approx(math.log(2))
    # three right, one wrong, all uncertain: bad 3 tanh / 2, good tanh / 2
    labels = torch.tensor([0, 0, 0, 1])
    value = avuc_penalty(torch.zeros(4, 2), labels, threshold=0.6)
    assert value.item() == pytest.approx(math.log(1 + 3 * tanh / tanh))


def test_zero_when_certain_where_right_and_uncertain_where_wrong():
    logits = torch.tensor([[9.0, 0.0], [0.1, 0.0]])
    assert avuc_penalty(logits, torch.tensor([0, 1]), threshold=0.5).item() == pytest.approx(0, abs=1e-6)


@given(batches(), st.floats(0.1, 1.5))
def test_oracle(batch, threshold):
    ac, au, ic, iu = (cell / len(batch[1]) for cell in cells(batch, threshold))
    wanted = math.log(au + ic + ac + iu + 1e-10) - math.log(ac + iu + 1e-10)
    assert avuc_penalty(*batch, threshold=threshold).item() == pytest.approx(wanted, abs=1e-9)


def test_a_sample_at_the_threshold_is_on_the_side_asked_for():
    logits, labels = torch.zeros(4, 2), torch.tensor([0, 0, 0, 1])
    at = torch.special.entr(torch.zeros(2).log_softmax(-1).exp()).sum()
    certain, uncertain = (
        avuc_penalty(logits, labels, threshold=at, ties=side) for side in ("certain", "uncertain")
    )
    assert certain < uncertain  # most are right, so being certain is good


def test_held_confidence_gets_no_gradient():
    logits = torch.tensor([[1.0, 0.0], [0.0, 0.5]], requires_grad=True)
    free, held = (
        torch.autograd.grad(
            avuc_penalty(logits, torch.tensor([0, 1]), threshold=0.6, detach_confidence=held), logits
        )[0]
        for held in (False, True)
    )
    assert not torch.allclose(free, held)


def test_update_takes_the_middle_between_right_and_wrong():
    term = AvUC()
    logits = torch.tensor([[0.0, 0.0], [30.0, 0.0], [0.0, 0.0]])
    term.update(logits, torch.tensor([0, 0, 1]))  # right: log 2 and 0; wrong: log 2
    assert term.threshold.item() == pytest.approx((math.log(2) / 2 + math.log(2)) / 2)


@pytest.mark.parametrize("label", [0, 1])
def test_update_without_right_or_without_wrong_takes_the_mean(label):
    term = AvUC()
    term.update(torch.zeros(3, 2), torch.full((3,), label))
    assert term.threshold.item() == pytest.approx(math.log(2))


def test_the_threshold_freezes_after_its_updates():
    term, labels = AvUC(n_updates=2), torch.tensor([0, 1])
    seen = []
    for scale in (1.0, 2.0, 3.0):
        term.update(scale * torch.eye(2), labels)
        seen.append(term.threshold.item())
    assert seen[0] != seen[1] == seen[2]


def test_the_state_travels_and_a_pair_passes_updates_on():
    pair = CrossEntropyLoss() + 3.0 * AvUC()
    pair.update(torch.zeros(2, 2), torch.tensor([0, 1]))
    resumed = CrossEntropyLoss() + 3.0 * AvUC()
    resumed.load_state_dict(pair.state_dict())
    assert resumed.terms[1].term.threshold.item() == pytest.approx(math.log(2))
    assert resumed.terms[1].term.updates_left == 4


@pytest.mark.parametrize("threshold", [0.0, 1.0, 10.0])
def test_edges(threshold):
    check_edges(AvUC(threshold=threshold))


def test_disagreement_alone_still_has_a_gradient():
    logits = torch.tensor([[2.0, 0.0]], requires_grad=True)
    avuc_penalty(logits, torch.tensor([1]), threshold=1.0).backward()  # wrong and certain, nobody agrees
    assert logits.grad.abs().sum() > 0


def test_refusals_carry_the_remedy():
    with pytest.raises(ValueError, match="at least 0, got -1"):
        AvUC(n_updates=-1)
    with pytest.raises(ValueError, match="'certain' or 'uncertain'"):
        AvUC(ties="left")
    with pytest.raises(ValueError, match="not ignored, got none"):
        AvUC().update(torch.zeros(2, 2), torch.full((2,), -100))
