"""Signs of failure in a history, each made by hand, and none in a run that is well."""

import re

import pytest
from torch import nn

from equipoise.objectives import MutualLearning, Supervised
from equipoise.training import History, fit, watch
from helpers import toys


def rows(n=12, **columns):
    made = [{"epoch": epoch, "loss": 1.0} for epoch in range(n)]
    for name, values in columns.items():
        for epoch, row in enumerate(made):
            row[name] = values(epoch) if callable(values) else values
    return made


FAILING = {
    "gammas below": (rows(gamma_min=0.0, gamma_max=lambda n: 1.0 if n < 4 else 0.01), "since epoch 7"),
    "gammas above": (rows(gammas_min=16.0, gammas_max=20.0), "above 15"),
    "diverging": (rows(outer_loss=lambda n: 0.1 if n < 3 else 0.1 * n), "diverges: 0.1 in epoch 0, 1.1 now"),
    "oscillating": (rows(outer_loss=lambda n: 0.05 + 0.2 * (n % 2)), "oscillates between 0.05 and 0.25"),
    "no gain": (rows(outer_loss=0.2), "gained nothing after the first epochs"),
    "traded": (
        rows(tune_accuracy=lambda n: 0.9 - 0.01 * n, tune_ece=lambda n: 0.1 - 0.005 * n),
        r"accuracy was lost while calibration was gained: on tune 90.0% right in epoch 0, 79.0% now",
    ),
    "upper bound": (rows(multipliers_min=1.0, multipliers_max=1e6), "cannot be met"),
    "lower bound": (rows(multipliers_min=1e-6, multipliers_max=1e-6), "the penalty does nothing"),
    "second behind": (rows(loss_1=3.0, kl=0.1), "network 1 is far behind"),
    "first behind": (rows(loss_1=0.3, kl=0.1), "the first network is far behind"),
    "disagreeing": (rows(disagreement=0.7), "more than half"),
}

WELL = {
    "gammas": rows(gamma_min=0.0, gamma_max=3.0),
    "falling": rows(outer_loss=lambda n: 0.3 * 0.8**n),
    "better in both": rows(tune_accuracy=lambda n: 0.5 + 0.01 * n, tune_ece=lambda n: 0.1 - 0.005 * n),
    "pair": rows(loss_1=1.3, kl=0.1),
    "terms of a loss": rows(loss_brier=9.0, kl=0.1),
    "young": rows(n=3, gamma_min=0.0, gamma_max=0.0, outer_loss=0.2),
    "nothing": [],
}


@pytest.mark.parametrize("case", FAILING)
def test_a_failure_is_said_in_one_sentence(case):
    given, words = FAILING[case]
    found = watch(given)
    assert len(found) >= 1
    assert any(re.search(words, sentence) for sentence in found), found
    assert History(given).findings == found
    assert found[0] in repr(History(given))


@pytest.mark.parametrize("case", WELL)
def test_nothing_is_said_of_a_run_that_is_well(case):
    assert watch(WELL[case]) == []


def test_a_peer_that_cannot_learn_is_found_in_a_real_run():
    weak = nn.Sequential(nn.Linear(2, 3), nn.Hardtanh(-0.01, 0.01))  # says next to nothing
    objective = MutualLearning([toys.make_network(0, plain=True), weak], weight=0.0, recipe=toys.RECIPE)
    history = fit(objective, toys.TRAIN, epochs=15, hardware=toys.CPU)
    assert any("network 1 is far behind" in sentence for sentence in history.findings)
    alone = Supervised(toys.make_network(0), nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    assert fit(alone, toys.TRAIN, epochs=6, tune=toys.TUNE, hardware=toys.CPU).findings == []
