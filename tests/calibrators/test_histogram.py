"""Histogram binning."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.calibrators import HistogramBinning
from equipoise.calibrators.binning import bin_sums, equal_mass_edges
from helpers.calibration_data import probs, sample
from helpers.golden import SECOND, arrays, expected


def test_golden_values_classwise() -> None:
    want = expected("histogram.R")
    calibrator = HistogramBinning(n_bins=5).fit(*arrays("R"))
    np.testing.assert_allclose(calibrator.result.parameters["values"], want["theta_per_class"], rtol=1e-9)
    np.testing.assert_allclose(calibrator(SECOND), want["S_normalised_first2"], rtol=1e-9)


def test_golden_values_top_label_but_for_empty_bins() -> None:
    found = HistogramBinning(n_bins=5, share="top_label").fit(*arrays("R")).result.parameters["values"][0]
    np.testing.assert_allclose(found[1:], expected("histogram.R")["theta_top_label"][1:], rtol=1e-9)
    assert found[0] == pytest.approx(0.1)  # empty: the center, where the authors give 0


def test_one_bin_answers_with_the_frequencies() -> None:
    logits, labels = arrays("R")
    values = HistogramBinning(n_bins=1).fit(logits, labels).result.parameters["values"]
    np.testing.assert_allclose(values[:, 0], np.bincount(labels) / len(labels))


def test_equal_mass_means_equal_counts() -> None:
    values = np.random.default_rng(0).random(100)
    mass, _ = bin_sums(values, values, np.ones(100), equal_mass_edges(values, np.ones(100), 10))
    np.testing.assert_array_equal(mass, 10)


def test_ties_are_not_parted() -> None:
    values = np.array([0.1] * 7 + [0.2] * 2 + [0.3])
    edges = equal_mass_edges(values, np.ones(10), 5)
    np.testing.assert_allclose(edges, [0.15, 0.25])


def test_top_label_leaves_the_others_their_shares() -> None:
    logits, labels = sample(500, 4)
    calibrator = HistogramBinning(share="top_label", bins="mass").fit(3 * logits, labels)
    before, after = probs(3 * logits), calibrator(3 * logits)
    top = before.argmax(1)
    rest = [np.where(np.arange(4) == top[:, None], 0, p) for p in (before, after)]
    shares = [part / part.sum(1, keepdims=True) for part in rest]
    np.testing.assert_allclose(shares[0], shares[1], atol=1e-9)


@pytest.mark.parametrize("wrong", [{"bins": "equal"}, {"share": "all"}, {"n_bins": 0}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="HistogramBinning: `"):
        HistogramBinning(**wrong)
