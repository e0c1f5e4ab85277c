"""Scaling-binning."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.calibrators import PlattScaling, ScalingBinning
from helpers.calibration_data import sample


def test_one_bin_answers_with_the_mean_scaled_rate() -> None:
    logits, labels = sample(200, 3)
    rates = np.exp(PlattScaling().fit(logits, labels)(logits))
    values = ScalingBinning(n_bins=1).fit(logits, labels).result.parameters["values"]
    np.testing.assert_allclose(values[:, 0], rates.mean(0), rtol=1e-9)


def test_as_many_bins_as_rows_are_platt_scaling() -> None:
    logits, labels = sample(60, 3)
    rates = np.exp(PlattScaling().fit(logits, labels)(logits))
    binned = ScalingBinning(n_bins=60).fit(logits, labels)
    np.testing.assert_allclose(binned(logits), rates / rates.sum(1, keepdims=True), rtol=1e-6)


def test_there_are_no_more_values_than_bins() -> None:
    logits, labels = sample(500, 2)
    assert len(np.unique(ScalingBinning(n_bins=7).fit(logits, labels)(logits)[:, 1].round(12))) <= 49


def test_no_bins_are_refused() -> None:
    with pytest.raises(ValueError, match="`n_bins` must be at least 1"):
        ScalingBinning(n_bins=0)
