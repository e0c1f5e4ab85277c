"""Sums of losses: one grammar for the catalogue's own sums and everybody else's."""

import inspect
import pickle

import pytest
import torch
from torch import nn

from equipoise.catalogue import CATALOGUE, find_loss
from equipoise.core.errors import SpecError
from equipoise.losses import (
    MDCA,
    BrierLoss,
    ClassAdaptiveLoss,
    EntropyRegularizedLoss,
    FocalLoss,
    mdca_penalty,
)

LOSSES = CATALOGUE["losses"]
PENALTIES = CATALOGUE["penalties"]
SUMS = [key for key, entry in LOSSES.items() if entry.sum]

LOGITS = 2 * torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, -100])


def test_value_by_hand():
    # cross-entropy log 2, and twice the gap of 1/4
    value = find_loss("ce+2*dca").make()(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    assert value.item() == pytest.approx(torch.tensor(2.0).log().item() + 0.5)


@pytest.mark.parametrize("key", SUMS)
def test_a_key_names_its_terms(key):
    loss, term = key.split("+")
    total = LOSSES[key].make()
    assert type(total.terms[0]) is type(LOSSES[loss].make())
    assert type(total.terms[1].term) is PENALTIES[term].factory
    assert LOSSES[key].needs == LOSSES[loss].needs | PENALTIES[term].needs


@pytest.mark.parametrize("key", SUMS)
def test_strength_0_is_the_loss_alone(key):
    loss = FocalLoss(gamma=1.0) if key.startswith("focal") else nn.CrossEntropyLoss()
    torch.testing.assert_close(LOSSES[key].make(strength=0.0)(LOGITS, LABELS), loss(LOGITS, LABELS))


@pytest.mark.parametrize("key", SUMS)
def test_sum_is_mean_times_the_weight_of_the_samples(key):
    weight = torch.tensor([1.0, 2.0, 0.5])
    mean, total = (LOSSES[key].make(weight=weight, reduction=reduction) for reduction in ("mean", "sum"))
    torch.testing.assert_close(total(LOGITS, LABELS), mean(LOGITS, LABELS) * weight[LABELS[:-1]].sum())


@pytest.mark.parametrize("key", SUMS)
def test_both_terms_ignore_the_same(key):
    total = LOSSES[key].make(ignore_index=0)
    kept = LABELS > 0
    moved = torch.where(LABELS < 0, 0, LABELS)
    torch.testing.assert_close(total(LOGITS, moved), LOSSES[key].make()(LOGITS[kept], LABELS[kept]))


@pytest.mark.parametrize("key", SUMS)
def test_only_the_term_gathers(key):
    total = LOSSES[key].make(gather=True)
    assert total.terms[1].term.gather
    assert not hasattr(total.terms[0], "gather")


def test_a_sum_is_its_terms():
    logits, labels = LOGITS[:-1], LABELS[:-1]
    wanted = FocalLoss(gamma=2.0)(logits, labels) + 3.0 * mdca_penalty(logits, labels)
    for name, options in (("focal+mdca", {"strength": 3.0}), ("focal+3*mdca", {}), ("3*mdca+focal", {})):
        torch.testing.assert_close(find_loss(name).make(gamma=2.0, **options)(logits, labels), wanted)


@pytest.mark.parametrize("key", SUMS)
def test_every_option_of_both_can_be_given(key):
    known = [inspect.signature(entry.factory).parameters for entry, _ in LOSSES[key].factory.terms]
    assert set(inspect.signature(LOSSES[key].factory).parameters) == {"strength", *known[0], *known[1]}
    defaults = {name: option.default for options in known for name, option in options.items()}
    assert len(LOSSES[key].factory(**defaults).terms) == 2


def test_an_option_reaches_the_term_it_belongs_to():
    total = LOSSES["ce+kde"].make(power=2, least_density=1e-10)
    assert (total.terms[1].term.power, total.terms[1].term.least_density) == (2, 1e-10)
    assert not LOSSES["ce+sece"].make(include_self=False).terms[1].term.include_self


def test_a_table_overrides_the_setting_of_the_catalogue():
    total = LOSSES["focal+mdca"].make(focal={"gamma": 1.5}, mdca={"strength": 0.5})
    assert (total.terms[0].gamma, total.terms[1].factor) == (1.5, 0.5)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("ce+dca", {"strenght": 2.0}, "no option 'strenght'; did you mean 'strength'"),
        ("entropy+0.5*dca", {"strength": 2.0}, "entropy and dca take 'strength'. Give it in a table"),
        ("focal+0.5*dual_focal", {"gamma": 2.0}, "focal and dual_focal take 'gamma'"),
        ("focal+mdca", {"mdca": {"gamma": 1.0}}, "'mdca' has no option 'gamma'"),
    ],
)
def test_mistakes_in_options(name, options, sentence):
    with pytest.raises(SpecError, match=sentence):
        find_loss(name).make(**options)


def test_an_option_given_twice_is_an_error():
    factory = LOSSES["focal+mdca"].factory
    with pytest.raises(SpecError, match="'gamma' is given twice"):
        factory.check({"gamma": 1.0, "focal": {"gamma": 2.0}})
    factory.check({"focal": {"gamma": 2.0}})


def test_a_factory_survives_pickling():
    assert pickle.loads(pickle.dumps(LOSSES["focal+mdca"].factory)) == LOSSES["focal+mdca"].factory


def test_tables_give_each_term_its_own_options():
    logits, labels = LOGITS[:-1], LABELS[:-1]
    weight = torch.tensor([1.0, 2.0, 0.5])
    total = find_loss("entropy+0.5*mdca+2*cals_alm+brier").make(
        entropy={"strength": 0.3}, cals_alm={"margin": 6.0}, weight=weight, n_classes=3
    )
    wanted = (
        EntropyRegularizedLoss(strength=0.3, weight=weight)(logits, labels)
        + 0.5 * MDCA(weight=weight)(logits, labels)
        + 2 * ClassAdaptiveLoss(n_classes=3, margin=6.0, weight=weight)(logits, labels)
        + BrierLoss(weight=weight)(logits, labels)
    )
    torch.testing.assert_close(total(logits, labels), wanted)
