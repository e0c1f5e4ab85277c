"""The rival of the true class."""

import numpy as np
import torch

from equipoise import Predictions
from equipoise.losses.dual_focal import true_and_rival
from equipoise.metrics import rival_probability


def test_by_hand():
    probs = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]
    np.testing.assert_allclose(rival_probability(Predictions(probs=probs, labels=[0, 1, 2])), [0.3, 0.2, 0])


def test_ties_do_not_lie_below():
    assert rival_probability(Predictions(probs=[[0.4, 0.4, 0.2]], labels=[0]))[0] == 0.2


def test_agrees_with_what_the_loss_looks_at():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(300, 7)), rng.integers(0, 7, 300)
    _, rival = true_and_rival(torch.tensor(logits), torch.tensor(labels))
    np.testing.assert_allclose(
        rival_probability(Predictions(logits=logits, labels=labels)), rival, atol=1e-12
    )
