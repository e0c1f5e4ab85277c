"""Bayesian binning into quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from equipoise.calibrators import BayesianBinning
from equipoise.calibrators.bbq import average_histograms
from helpers.calibration_data import probs
from helpers.golden import arrays, expected

SIZES = (2, 3, 4, 6)


def golden_class() -> tuple[np.ndarray, np.ndarray]:
    logits, labels = arrays("R")
    return probs(logits)[:, 0], (labels == 0).astype(float)


def test_golden_evidence() -> None:
    want = expected("bbq.R")
    _, _, evidence = average_histograms(*golden_class(), np.ones(60), SIZES)
    np.testing.assert_allclose(evidence, want["log_score"], rtol=1e-8)
    np.testing.assert_allclose(softmax(evidence), want["weights"], rtol=1e-6)


def test_golden_prediction() -> None:
    edges, values, _ = average_histograms(*golden_class(), np.ones(60), SIZES)
    assert values[np.searchsorted(edges, 0.3)] == pytest.approx(
        expected("bbq.R")["pred_posterior_mean"], rel=1e-8
    )


def test_the_average_of_one_histogram_is_that_histogram() -> None:
    edges, values, _ = average_histograms(*golden_class(), np.ones(60), (1,))
    hits = golden_class()[1].sum()
    assert len(edges) == 0
    assert values[0] == pytest.approx((hits + 1) / 62)


def test_one_bin_explains_noise_best() -> None:
    rng = np.random.default_rng(0)
    _, _, evidence = average_histograms(
        rng.random(400), (rng.random(400) < 0.5).astype(float), np.ones(400), (1, 50)
    )
    assert evidence[0] > evidence[1]


def test_no_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="from 1 up"):
        BayesianBinning(sizes=())


def test_sizes_survive_a_file_as_a_tuple() -> None:
    assert BayesianBinning(sizes=[2, 3]).sizes == (2, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("hits", [0, 50, 100])
@pytest.mark.parametrize("scores", [(np.nextafter(1.0, 0.0), 1.0), (0.0, 5e-324)])
def test_bins_at_zero_and_one_have_a_finite_prior(scores, hits):
    _, values, evidence = average_histograms(
        np.repeat(scores, [30, 70]), np.arange(100.0) < hits, np.ones(100), (2, 5, 10)
    )
    assert np.isfinite(evidence).all()
    assert np.isfinite(values).all()
