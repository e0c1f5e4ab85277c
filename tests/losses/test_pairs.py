import pytest
import torch
from torch import nn

from equipoise.experiments.catalogue.losses import LOSSES
from equipoise.experiments.catalogue.penalties import PAIRS, PENALTIES
from equipoise.losses import FocalLoss, ce_dca, focal_mdca, mdca_penalty

LOGITS = 2 * torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, -100])


def test_value_by_hand():
    # cross-entropy log 2, and twice the gap of 1/4
    value = ce_dca(strength=2.0)(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    assert value.item() == pytest.approx(torch.tensor(2.0).log().item() + 0.5)


@pytest.mark.parametrize("key", PAIRS)
def test_a_key_names_its_terms(key):
    loss, term = key.split("+")
    pair = PAIRS[key].make()
    assert type(pair.terms[0]) is type(LOSSES[loss].make())
    assert type(pair.terms[1].term) is PENALTIES[term].factory


@pytest.mark.parametrize("key", PAIRS)
def test_no_strength_leaves_the_loss(key):
    loss = FocalLoss(gamma=1.0) if key.startswith("focal") else nn.CrossEntropyLoss()
    torch.testing.assert_close(PAIRS[key].make(strength=0.0)(LOGITS, LABELS), loss(LOGITS, LABELS))


@pytest.mark.parametrize("key", PAIRS)
def test_sum_is_mean_times_the_weight_of_the_samples(key):
    weight = torch.tensor([1.0, 2.0, 0.5])
    mean, total = (PAIRS[key].make(weight=weight, reduction=reduction) for reduction in ("mean", "sum"))
    torch.testing.assert_close(total(LOGITS, LABELS), mean(LOGITS, LABELS) * weight[LABELS[:-1]].sum())


@pytest.mark.parametrize("key", PAIRS)
def test_both_terms_ignore_the_same(key):
    pair = PAIRS[key].make(ignore_index=0)
    kept = LABELS > 0
    moved = torch.where(LABELS < 0, 0, LABELS)
    torch.testing.assert_close(pair(LOGITS, moved), PAIRS[key].make()(LOGITS[kept], LABELS[kept]))


@pytest.mark.parametrize("key", PAIRS)
def test_only_the_term_gathers(key):
    pair = PAIRS[key].make(gather=True)
    assert pair.terms[1].term.gather
    assert not hasattr(pair.terms[0], "gather")


def test_a_pair_is_its_terms():
    logits, labels = LOGITS[:-1], LABELS[:-1]
    wanted = FocalLoss(gamma=2.0)(logits, labels) + 3.0 * mdca_penalty(logits, labels)
    torch.testing.assert_close(focal_mdca(gamma=2.0, strength=3.0)(logits, labels), wanted)


def test_refuses_an_unknown_parameter():
    with pytest.raises(TypeError, match="strenght"):
        PAIRS["ce+dca"].make(strenght=2.0)
