"""The laws for losses of others: ours keep them, and each law is broken by someone."""

import pytest
import torch
from torch import nn

from equipoise.catalogue import CATALOGUE
from equipoise.testing import LAWS, check_loss

LOSSES = CATALOGUE["losses"]


@pytest.mark.parametrize("key", LOSSES)
def test_every_loss_of_the_catalogue_keeps_the_laws(key):
    assert check_loss(LOSSES[key].factory, **LOSSES[key].options) == list(LAWS)


def test_torchs_own_losses_keep_them():
    check_loss(nn.CrossEntropyLoss, label_smoothing=0.1)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, logits, labels):
        self.calls += 1
        return self.calls * nn.functional.cross_entropy(logits, labels)


class Void(nn.Module):
    ignore_index = 3

    def forward(self, logits, labels):
        return nn.functional.cross_entropy(logits, labels)


class Closure(nn.Module):
    def __init__(self):
        super().__init__()
        self.function = lambda z, y: nn.functional.cross_entropy(z / 2, y)

    def forward(self, logits, labels):
        return self.function(logits, labels)


BREAKERS = {
    "gives one number": lambda z, y: nn.functional.cross_entropy(z, y, reduction="none"),
    "keeps its inputs": lambda z, y: nn.functional.cross_entropy(z.detach().mul_(0.5) + z, y),
    "gives the same for the same": Counting(),
    "does not see the order of rows": lambda z, y: nn.functional.cross_entropy(z, y, reduction="none")[0],
    "has a gradient": lambda z, y: nn.functional.cross_entropy(z.detach(), y),
    "stays finite": lambda z, y: -z.softmax(1).log().gather(1, y[:, None]).mean(),
    "follows the type of the logits": lambda z, y: nn.functional.cross_entropy(z, y).float(),
    "can be copied and saved": Closure(),
    "leaves void rows out": Void(),
}


@pytest.mark.parametrize("law", LAWS)
def test_each_law_can_be_broken(law):
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'"):
        check_loss(lambda: BREAKERS[law])


def test_it_says_what_was_wanted():
    with pytest.raises(AssertionError, match=r"expected one number, got shape \(12, 4\)"):
        check_loss(lambda: lambda z, y: torch.sigmoid(z))
