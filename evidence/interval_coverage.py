"""How often the interval of the ECE holds the truth, on a mixture whose truth is known.

python evidence/interval_coverage.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from tidy import write

from equipoise import Predictions
from equipoise.core.choices import ScoreSettings
from equipoise.core.seeds import numpy_generator
from equipoise.data import GaussianMixture, gaussian_mixture
from equipoise.metrics.binned import debiased_from_curve
from equipoise.metrics.intervals import error_interval
from equipoise.metrics.resample import Resampler
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.values import cell_metrics, state_metrics

SIZES = (500, 5_000, 50_000)
#: How much sharper than the posterior a predictor is: its logits are the true ones times this.
SHARPNESS = {"calibrated": 1.0, "slightly overconfident": 1.2, "overconfident": 1.6, "underconfident": 0.7}
N_TRUTH = 1_000_000
N_BINS = 15


def predict(
    model: GaussianMixture, inputs: torch.Tensor, sharpness: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give confidence, predicted class and the true chance that it is right."""
    posterior = model.posterior(inputs)
    confidence, predicted = torch.softmax(sharpness * posterior.log(), dim=1).max(dim=1)
    right = posterior.gather(1, predicted[:, None])[:, 0]
    return confidence.numpy(), predicted.numpy(), right.numpy()


def truth(model: GaussianMixture, sharpness: float) -> tuple[float, float]:
    """Give the ECE in fifteen bins and the calibration error without bins, both without the noise of labels."""
    inputs, _ = model.sample(N_TRUTH, seed=10**6)
    confidence, _, right = predict(model, inputs, sharpness)
    bins = np.clip(np.ceil(confidence * N_BINS).astype(int) - 1, 0, N_BINS - 1)
    binned = np.abs(np.bincount(bins, confidence - right, minlength=N_BINS)).sum() / N_TRUTH
    probs = torch.softmax(sharpness * model.posterior(inputs).log(), dim=1)
    return float(binned), model.true_calibration_error(inputs, probs)


def rows(repeats: int, resamples: int) -> Iterator[dict[str, Any]]:
    """Give one row per predictor and number of test rows."""
    model = gaussian_mixture()
    for name, sharpness in SHARPNESS.items():
        binned, exact = truth(model, sharpness)
        for n in SIZES:
            found = np.array([_once(model, sharpness, n, seed, resamples) for seed in range(repeats)])
            value, debiased, low, high = found.T
            yield {
                "predictor": name,
                "sharpness": sharpness,
                "n": n,
                "repeats": repeats,
                "resamples": resamples,
                "true_ece": binned,
                "true_error": exact,
                "mean_ece": value.mean(),
                "mean_debiased_ece": debiased.mean(),
                "mean_width": (high - low).mean(),
                "covers_ece": ((low <= binned) & (binned <= high)).mean(),
                "covers_error": ((low <= exact) & (exact <= high)).mean(),
                "below": (high < binned).mean(),
                "above": (low > binned).mean(),
            }


def _once(model: GaussianMixture, sharpness: float, n: int, seed: int, resamples: int) -> tuple[float, ...]:
    inputs, labels = model.sample(n, seed=seed + 1)
    confidence, predicted, _ = predict(model, inputs, sharpness)
    found = Predictions(confidence=confidence, predicted=predicted, labels=labels.numpy())
    return ece_and_interval(found, seed=seed, n_resamples=resamples)


def ece_and_interval(found: Predictions, *, seed: int, n_resamples: int) -> tuple[float, float, float, float]:
    """Give ECE, debiased ECE and the interval that a scorecard has, without drawing its other metrics."""
    state = CalibrationState.of(found, n_bins=N_BINS)
    values = state_metrics(state)
    resampler = Resampler(state, ScoreSettings(n_resamples=n_resamples, seed=seed))
    draws = cell_metrics(resampler._resampled_cells())["ece"]
    calibrated = cell_metrics(resampler._calibrated_cells(numpy_generator(seed, "calibrated")))["ece"]
    debiased = debiased_from_curve(state.curve(), state.effective_samples)
    return values["ece"], float(debiased), *error_interval(values["ece"], draws, calibrated, largest=1.0)


if __name__ == "__main__":
    repeats, resamples = (int(word) for word in [*sys.argv[1:], "400", "400"][:2])
    write("e/coverage.csv", rows(repeats, resamples))
