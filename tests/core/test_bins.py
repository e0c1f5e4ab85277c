"""The rule of bins: every number has one place, whoever asks."""

import numpy as np
import pytest
import torch

from equipoise import Predictions
from equipoise.calibrators.temperature_search import ece_on_grid
from equipoise.compiled.dispatch import find_kernel
from equipoise.core.bins import bin_of, expected_error, lower_edges
from equipoise.evaluate import score_by_class
from equipoise.metrics import expected_calibration_error
from helpers.both_ways import go

# Numbers on the edges, and their neighbours on both sides.
EDGES = np.linspace(0, 1, 16)
NEAR = np.clip(np.concatenate([EDGES, np.nextafter(EDGES, 2), np.nextafter(EDGES, -1)]), 0, 1)


@pytest.fixture(params=["compiled", "plain"])
def way(request):
    yield from go(request.param)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_edges_with_a_side_place_numbers_as_the_side_says(closed):
    inner = lower_edges(15, closed)[1:-1]
    assert bin_of(NEAR, inner).tolist() == bin_of(NEAR, EDGES[1:-1], closed=closed).tolist()
    assert bin_of(torch.tensor(NEAR), torch.tensor(inner)).tolist() == bin_of(NEAR, inner).tolist()


def test_every_row_may_have_edges_of_its_own():
    edges = torch.tensor([[0.2, 0.4], [0.6, float("inf")]])
    values = torch.tensor([[0.1, 0.2, 0.3, 0.9]]).repeat(2, 1)
    assert bin_of(values, edges).tolist() == [[0, 0, 1, 2], [0, 0, 0, 1]]
    assert bin_of(values, edges, closed="left").tolist() == [[0, 1, 1, 2], [0, 0, 0, 1]]
    assert bin_of(values.T.contiguous().T, edges).tolist() == bin_of(values, edges).tolist()


def test_an_expected_error_by_hand():
    gaps = np.array([[-0.5, 1.0], [0.0, 0.25]])
    assert expected_error(gaps, np.array([4.0, 1.0])).tolist() == [0.375, 0.25]


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.usefixtures("way")
def test_slices_have_the_bins_of_the_metric(closed):
    confidence = np.repeat(NEAR, 40)
    right = np.arange(len(confidence)) % 3 == 0
    rows = Predictions(
        predicted=np.zeros(len(right), int), labels=np.where(right, 0, 1), confidence=confidence
    )
    (found,) = score_by_class(rows, closed=closed)
    assert found.ece == pytest.approx(expected_calibration_error(rows, closed=closed), abs=1e-12)


@pytest.mark.usefixtures("way")
def test_the_grid_of_temperatures_has_the_bins_of_the_metric():
    # Off the edges, where the last bit of an exponential does not decide; some bins are empty.
    shares = np.repeat(EDGES[9:-1] + 0.01, 40)
    logits = np.stack([np.log(shares) - np.log1p(-shares), np.zeros_like(shares)], axis=1)
    labels = (np.arange(len(shares)) % 3 == 0).astype(int)
    _, found = ece_on_grid(logits, labels, None, n_bins=15, grid=np.array([1.0, 2.0]))
    for temperature, ece in zip((1.0, 2.0), found, strict=True):
        confidence = 1 / np.exp((logits - logits.max(1, keepdims=True)) / temperature).sum(1)
        place = bin_of(confidence, lower_edges(15, "right")[1:-1])
        gaps = np.bincount(place, confidence - (logits.argmax(1) == labels), minlength=15)
        assert ece == pytest.approx(float(expected_error(gaps, len(labels))), abs=1e-12)


def test_compiled_and_plain_bins_are_the_same_at_every_edge():
    for closed in ("left", "right"):
        edges = lower_edges(15, closed)
        add = find_kernel("slices", "d", 10**9)
        if add is None:
            pytest.skip("nothing is compiled here")
        bins = np.zeros((len(NEAR), 15, 3))
        places = np.arange(len(NEAR))
        rows, squares = np.zeros(len(NEAR), np.int64), np.zeros((len(NEAR), 3))
        add(NEAR.copy(), np.ones(len(NEAR), bool), np.empty(0), places, edges, rows, bins, squares)
        assert bins[..., 0].argmax(1).tolist() == bin_of(NEAR, edges[1:-1]).tolist()
