"""The metrics of a scorecard that a state alone does not give exactly."""

from __future__ import annotations

import numpy as np

from equipoise.core.predictions import Predictions
from equipoise.metrics.binned import debiased_from_curve
from equipoise.metrics.detection import auroc_of_cells, error_auroc
from equipoise.metrics.ranked import adaptive_calibration_error, kolmogorov_smirnov_error
from equipoise.metrics.resample import equal_mass_error
from equipoise.metrics.selective import area_under_risk_coverage, aurc_of_cells
from equipoise.metrics.smooth import (
    fixed_point_error,
    residual_spectrum,
    smooth_calibration_error,
)
from equipoise.metrics.state import CalibrationState

__all__ = ["exact_values", "sketched_values"]


def exact_values(predictions: Predictions, state: CalibrationState) -> dict[str, float]:
    """Return the metrics that need the rows themselves."""
    found = {
        "ada_ece": adaptive_calibration_error(predictions, n_bins=state.n_bins),
        "smece": smooth_calibration_error(predictions),
        "ks": kolmogorov_smirnov_error(predictions),
        "auroc": error_auroc(predictions),
        "aurc": area_under_risk_coverage(predictions),
        "debiased_ece": debiased_from_curve(state.curve(), state.effective_samples, norm="l1"),
    }
    return {key: value for key, value in found.items() if not np.isnan(value)}


def sketched_values(state: CalibrationState) -> dict[str, float]:
    """Return the same metrics for a stream, from the state's sketch of confidence."""
    sketch = state.sums.sketch.cpu().numpy()
    # Weights count rows, as in the metrics of arrays.
    sketch = sketch * max(1.0, state.n_samples / state.total_weight)
    mass, right = sketch[:, 0], sketch[:, 2]
    wrong, gaps = np.maximum(mass - right, 0), sketch[:, 1] - right
    total = mass.sum()
    confidence = np.divide(sketch[:, 1], mass, out=np.zeros_like(mass), where=mass > 0)
    found = {
        "ada_ece": float(equal_mass_error(mass, gaps, state.n_bins)),
        "smece": fixed_point_error(residual_spectrum(confidence, gaps / total)),
        "ks": float(np.abs(np.cumsum(gaps)).max() / total),
        "auroc": float(auroc_of_cells(right, wrong)),
        "aurc": float(aurc_of_cells(mass[::-1], wrong[::-1])),
        "debiased_ece": debiased_from_curve(state.curve(), state.effective_samples, norm="l1"),
    }
    return {key: value for key, value in found.items() if not np.isnan(value)}
