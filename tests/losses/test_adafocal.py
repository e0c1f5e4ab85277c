import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equipoise.losses import AdaFocalLoss, adafocal_loss, focal_loss
from equipoise.losses.adafocal import interpolated_edges, next_gammas
from helpers.per_sample import FIRST, assert_each, batches, log_softmax, logits_of, rows

EDGES = torch.tensor([0.0, 0.3, 0.6, 1.0], dtype=torch.float64)
GAMMAS = torch.tensor([2.0, 0.0, -1.5], dtype=torch.float64)


def held_out(confidences: list[float], correct: list[bool]) -> tuple[torch.Tensor, torch.Tensor]:
    """Two-class logits with these confidences in class 0."""
    probs = torch.tensor(confidences, dtype=torch.float64)
    return torch.stack([probs, 1 - probs], -1).log(), torch.tensor([0 if right else 1 for right in correct])


def test_value_by_hand() -> None:
    loss = adafocal_loss(logits_of(0.2, 0.8), FIRST, edges=EDGES, gammas=GAMMAS)
    assert_each(loss, [0.8**2 * math.log(5)])
    loss = adafocal_loss(logits_of(0.8, 0.2), FIRST, edges=EDGES, gammas=GAMMAS)
    assert_each(loss, [-(1.8**1.5) * math.log(0.8)])


@given(batches())
def test_before_the_first_update_it_is_focal_loss_with_gamma_1(batch: tuple) -> None:
    values = AdaFocalLoss(reduction="none")(*batch)
    torch.testing.assert_close(values, focal_loss(*batch, gamma=1.0))


@given(batches())
def test_equals_the_equation(batch: tuple) -> None:
    wanted = []
    for row, y in rows(*batch):
        log_p = log_softmax(row)[y]
        p = math.exp(log_p)
        gamma = 2.0 if p < 0.3 else 0.0 if p < 0.6 else -1.5
        weight = (1 - p) ** gamma if gamma > 0 else (1 + p) ** -gamma
        wanted.append(-weight * log_p)
    assert_each(adafocal_loss(*batch, edges=EDGES, gammas=GAMMAS), wanted)


@given(st.lists(st.integers(1, 99), min_size=1, max_size=40), st.integers(1, 15))
def test_edges_are_those_of_interpolated_ranks(percents: list[int], n_bins: int) -> None:
    confidence = np.array(percents) / 100
    n = len(percents)
    wanted = np.interp(np.linspace(0, n, n_bins + 1), np.arange(n), np.sort(confidence))
    assert_each(interpolated_edges(torch.tensor(confidence), n_bins=n_bins), wanted.tolist())


@given(st.lists(st.tuples(st.integers(51, 99), st.booleans()), min_size=1, max_size=40), st.booleans())
def test_update_equals_a_loop_over_bins(samples: list[tuple[int, bool]], drop_minimum: bool) -> None:
    logits, labels = held_out([percent / 100 for percent, _ in samples], [right for _, right in samples])
    loss = AdaFocalLoss(n_bins=4, drop_minimum=drop_minimum).double()
    loss.update(logits, labels)
    confidence, predicted = logits.softmax(-1).max(-1)
    confidence, correct = confidence.numpy(), (predicted == labels).numpy()
    n = len(confidence)
    edges = np.interp(np.linspace(0, n, 5), np.arange(n), np.sort(confidence))
    for b, (low, high) in enumerate(pairwise(edges)):
        inside = (confidence > low) & (confidence <= high)
        if b == 0 and not drop_minimum:
            inside |= confidence == low
        gap = confidence[inside].mean() - correct[inside].mean() if inside.any() else 0.0
        wanted = math.exp(gap)
        assert loss.bins.gammas[b].item() == pytest.approx(wanted if wanted >= 0.2 else -0.2, abs=1e-9)
    torch.testing.assert_close(loss.bins.edges, torch.tensor(edges))


def test_gammas_switch_side_when_they_get_small_and_stay_in_bounds() -> None:
    gammas = torch.tensor([0.21, -0.21, -1.9, 19.0])
    moved = next_gammas(gammas, torch.tensor([-0.1, 0.1, -0.2, 0.2]))
    torch.testing.assert_close(moved, torch.tensor([-0.2, 0.2, -2.0, 20.0]))


def test_over_confidence_raises_gamma_and_under_confidence_lowers_it() -> None:
    loss = AdaFocalLoss(n_bins=1)
    loss.update(*held_out([0.9] * 4, [True, False, False, False]))
    assert loss.bins.gammas > 1
    loss = AdaFocalLoss(n_bins=1)
    loss.update(*held_out([0.6] * 4, [True] * 4))
    assert loss.bins.gammas < 1


def test_the_minimum_counts_unless_dropped() -> None:
    samples = held_out([0.6, 0.9], [False, True])
    kept, dropped = AdaFocalLoss(n_bins=1).double(), AdaFocalLoss(n_bins=1, drop_minimum=True).double()
    kept.update(*samples)
    dropped.update(*samples)
    assert_each(kept.bins.gammas, [math.exp((0.6 + 0.9) / 2 - 0.5)])
    assert_each(dropped.bins.gammas, [math.exp(0.9 - 1)])


def test_one_sample_and_equal_confidences_make_no_trouble() -> None:
    for n in (1, 30):
        loss = AdaFocalLoss()
        loss.update(*held_out([0.75] * n, [True] * n))
        assert loss.bins.gammas.isfinite().all()
        assert loss(logits_of(0.75, 0.25), FIRST).isfinite()


def test_refusal() -> None:
    with pytest.raises(ValueError, match="paper uses 15"):
        AdaFocalLoss(n_bins=0)
