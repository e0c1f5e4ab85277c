import inspect
import pickle

import pytest
import torch
from torch import nn

from equipoise.experiments.catalogue.losses import LOSSES
from equipoise.experiments.catalogue.penalties import PAIRS, PENALTIES
from equipoise.losses import (
    DCA,
    MDCA,
    BrierLoss,
    ClassAdaptiveLoss,
    CrossEntropyLoss,
    EntropyRegularizedLoss,
    FocalLoss,
    Pair,
    Part,
    make_sum,
    mdca_penalty,
)

LOGITS = 2 * torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, -100])


def test_value_by_hand():
    # cross-entropy log 2, and twice the gap of 1/4
    value = Pair(CrossEntropyLoss, DCA)(strength=2.0)(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
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
    torch.testing.assert_close(Pair(FocalLoss, MDCA)(gamma=2.0, strength=3.0)(logits, labels), wanted)


@pytest.mark.parametrize("key", PAIRS)
def test_every_parameter_of_both_can_be_given(key):
    loss, term = (
        inspect.signature(factory).parameters
        for factory in (PAIRS[key].factory.loss, PAIRS[key].factory.term)
    )
    assert set(inspect.signature(PAIRS[key].factory).parameters) == {"strength", *loss, *term}
    defaults = {**{name: loss[name].default for name in loss}, **{name: term[name].default for name in term}}
    assert isinstance(PAIRS[key].factory(**defaults).terms[1].term, PAIRS[key].factory.term)


def test_a_parameter_reaches_the_part_it_belongs_to():
    pair = PAIRS["ce+kde"].make(power=2, least_density=1e-10)
    assert (pair.terms[1].term.power, pair.terms[1].term.least_density) == (2, 1e-10)
    assert not PAIRS["ce+sece"].make(include_self=False).terms[1].term.include_self


def test_refuses_an_unknown_parameter():
    with pytest.raises(ValueError, match=r"no parameter 'strenght'\. Did you mean 'strength'"):
        PAIRS["ce+dca"].make(strenght=2.0)


def test_refuses_a_parameter_that_would_mean_two_things():
    with pytest.raises(ValueError, match="make_sum"):
        Pair(EntropyRegularizedLoss, DCA)


def test_a_pair_survives_pickling():
    assert pickle.loads(pickle.dumps(PAIRS["focal+mdca"].factory)) == PAIRS["focal+mdca"].factory


def test_a_free_sum_gives_each_part_its_own_parameters():
    logits, labels = LOGITS[:-1], LABELS[:-1]
    weight = torch.tensor([1.0, 2.0, 0.5])
    total = make_sum(
        Part(EntropyRegularizedLoss, {"strength": 0.3}),
        Part(MDCA, strength=0.5),
        Part(ClassAdaptiveLoss, {"margin": 6.0}, 2.0),
        Part(BrierLoss),
        weight=weight,
        n_classes=3,
    )
    wanted = (
        EntropyRegularizedLoss(strength=0.3, weight=weight)(logits, labels)
        + 0.5 * MDCA(weight=weight)(logits, labels)
        + 2 * ClassAdaptiveLoss(n_classes=3, margin=6.0, weight=weight)(logits, labels)
        + BrierLoss(weight=weight)(logits, labels)
    )
    torch.testing.assert_close(total(logits, labels), wanted)
    with pytest.raises(ValueError, match="MDCA: no parameter 'gamma'"):
        make_sum(Part(FocalLoss), Part(MDCA, {"gamma": 1.0}))
