"""The epoch that a temperature afterwards makes best."""

import numpy as np
import pytest
from torch import nn

from equipoise import Predictions
from equipoise.objectives import Supervised
from equipoise.training import Selection, fit, predict
from equipoise.training.epoch_scores import tune_scores
from helpers import toys

SHARP = 8 * np.random.default_rng(0).normal(size=(300, 3))
LABELS = np.array(
    [
        np.random.default_rng(n).choice(3, p=p)
        for n, p in enumerate(np.exp(SHARP / 4) / np.exp(SHARP / 4).sum(1, keepdims=True))
    ]
)


def nll(logits):
    shifted = logits - logits.max(1, keepdims=True)
    return -(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))[np.arange(300), LABELS].mean()


def test_the_scaled_nll_is_the_smallest_over_temperatures():
    scores = tune_scores(Predictions(logits=SHARP, labels=LABELS))
    grid = {t: nll(SHARP / t) for t in np.linspace(2, 8, 601)}
    best = min(grid, key=grid.get)
    assert scores["tune_temperature"] == pytest.approx(best, abs=0.02)
    assert scores["tune_nll_scaled"] == pytest.approx(grid[best], rel=1e-5)
    assert scores["tune_nll_scaled"] < scores["tune_nll"]


def test_scaling_first_changes_no_scaled_score():
    one, two = (tune_scores(Predictions(logits=SHARP * factor, labels=LABELS)) for factor in (1.0, 3.0))
    assert one["tune_nll_scaled"] == pytest.approx(two["tune_nll_scaled"], rel=1e-6)
    assert 3 * one["tune_temperature"] == pytest.approx(two["tune_temperature"], rel=1e-4)


def test_it_chooses_another_epoch_than_the_nll():
    rows = [
        {"tune_nll": 0.5, "tune_nll_scaled": 0.5},
        {"tune_nll": 0.9, "tune_nll_scaled": 0.4},  # better, and overconfident
    ]
    assert Selection().best(rows) == 0
    assert Selection(metric="tune_nll_scaled").best(rows) == 1


def test_history_holds_both_for_every_epoch():
    objective = Supervised(toys.make_network(0), nn.CrossEntropyLoss(), recipe=toys.RECIPE)
    history = fit(objective, toys.TRAIN, epochs=2, tune=toys.TUNE, hardware=toys.CPU)
    last = tune_scores(predict(objective.network(), toys.TUNE(**toys.WHERE)))
    assert history[-1]["tune_nll_scaled"] == pytest.approx(last["tune_nll_scaled"])
    assert history[0]["tune_temperature"] > 0
