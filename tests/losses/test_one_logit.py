"""One column of log-odds is two columns (0, z), for every loss, objective and adapter."""

import pytest
import torch
from torch import nn

from equipoise.catalogue import CATALOGUE
from equipoise.losses import AdaFocalLoss, BrierLoss, FocalLoss
from equipoise.losses.base import log_odds_as_logits
from equipoise.objectives import Supervised
from equipoise.training import Recipe, fit
from helpers import toys

PENALTIES = CATALOGUE["penalties"]

# Constraints on pairs of wrong classes need three classes, and say so.
LOSSES = {key: entry for key, entry in {**CATALOGUE["losses"], **PENALTIES}.items() if key != "cpc"}


def make(key):
    entry = LOSSES[key]
    known = {"n_classes": 2} if "n_classes" in entry.factory.__init__.__code__.co_varnames else {}
    return entry.make(**known)


@pytest.mark.parametrize("key", LOSSES)
@pytest.mark.parametrize("shape", [(40, 1), (40,)])
def test_a_column_of_log_odds_has_the_loss_and_gradient_of_two_columns(key, shape):
    generator = torch.Generator().manual_seed(0)
    odds, labels = torch.randn(40, 1, generator=generator), torch.arange(40) % 2
    one, two = odds.reshape(shape).requires_grad_(), odds.clone().requires_grad_()
    mine, theirs = make(key)(one, labels), make(key)(log_odds_as_logits(two), labels)
    torch.testing.assert_close(mine, theirs)
    if theirs.requires_grad:
        mine.backward()
        theirs.backward()
        torch.testing.assert_close(one.grad.reshape(-1, 1), two.grad)


def test_weights_and_soft_targets_are_those_of_two_classes():
    odds = torch.tensor([[1.0], [-2.0]])
    weight = torch.tensor([1.0, 3.0])
    labels, soft = torch.tensor([1, 0]), torch.tensor([[0.2, 0.8], [1.0, 0.0]])
    both = log_odds_as_logits(odds)
    torch.testing.assert_close(FocalLoss(weight=weight)(odds, labels), FocalLoss(weight=weight)(both, labels))
    torch.testing.assert_close(BrierLoss()(odds, soft), BrierLoss()(both, soft))


def test_labels_beyond_two_classes_are_an_error():
    with pytest.raises(ValueError, match="classes from 0 to 1"):
        FocalLoss()(torch.zeros(3, 1), torch.tensor([0, 1, 2]))


def test_an_adaptive_loss_learns_the_same_from_one_column():
    odds, labels = torch.linspace(-2, 2, 30)[:, None], torch.arange(30) % 2
    one, two = AdaFocalLoss(n_bins=3), AdaFocalLoss(n_bins=3)
    one.update(odds, labels)
    two.update(log_odds_as_logits(odds), labels)
    assert torch.equal(one.bins.gammas, two.bins.gammas)


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss, FocalLoss, AdaFocalLoss])
def test_a_network_of_one_output_trains_with_any_loss(loss):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(64, 2, generator=generator)
    batches = [(inputs, (inputs[:, 0] > 0).long())]
    torch.manual_seed(0)
    objective = Supervised(nn.Linear(2, 1), loss(), recipe=Recipe(optimizer=toys.RECIPE.optimizer))
    history = fit(objective, batches, epochs=30, tune=batches, hardware=toys.CPU, quiet=True)
    assert history[-1]["tune_accuracy"] > 0.9
