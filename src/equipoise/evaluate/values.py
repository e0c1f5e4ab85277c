"""Which numbers a scorecard holds, and how those are computed that a state alone does not give exactly."""

from __future__ import annotations

import numpy as np

from equipoise.core.predictions import Predictions
from equipoise.metrics.adaptive_calibration_error import adaptive_calibration_error
from equipoise.metrics.area_under_risk_coverage import area_under_risk_coverage, aurc_of_cells
from equipoise.metrics.area_under_roc import auroc_of_cells, error_auroc
from equipoise.metrics.debiased_calibration_error import debiased_from_curve
from equipoise.metrics.kolmogorov_smirnov_error import kolmogorov_smirnov_error
from equipoise.metrics.resample import equal_mass_error
from equipoise.metrics.smooth_calibration_error import (
    fixed_point_error,
    residual_spectrum,
    smooth_calibration_error,
)
from equipoise.metrics.state import CalibrationState

__all__ = ["ERRORS", "LOWER_IS_BETTER", "PERCENT", "RANGES", "TITLES", "exact_values", "sketched_values"]

#: Everything a scorecard holds, in the order it is printed.
TITLES = {
    "accuracy": "accuracy",
    "top5_accuracy": "top-5 accuracy",
    "nll": "negative log-likelihood",
    "brier": "Brier score",
    "brier_calibration": "  part lost to calibration",
    "brier_refinement": "  part lost to refinement",
    "root_brier": "root Brier score",
    "ece": "ECE",
    "debiased_ece": "ECE, debiased",
    "ada_ece": "adaptive ECE",
    "classwise_ece": "classwise ECE",
    "mce": "maximum CE",
    "rms_ce": "root mean square CE",
    "smece": "smooth ECE",
    "ks": "KS error",
    "confidence_gap": "confidence - accuracy",
    "over_confidence": "  over-confident part",
    "under_confidence": "  under-confident part",
    "auroc": "AUROC of right vs wrong",
    "aurc": "area under risk-coverage",
}
#: Errors that chance alone pushes up; zero for a perfectly calibrated model.
ERRORS = frozenset(
    {
        "ece",
        "ada_ece",
        "classwise_ece",
        "mce",
        "rms_ce",
        "smece",
        "ks",
        "brier_calibration",
        "over_confidence",
        "under_confidence",
    }
)
#: Shown in percent.
PERCENT = frozenset(TITLES) - {
    "nll",
    "brier",
    "brier_calibration",
    "brier_refinement",
    "root_brier",
    "auroc",
    "aurc",
}
#: What a metric can be, which its interval does not leave.
RANGES = dict.fromkeys(TITLES, (0.0, 1.0)) | {
    "nll": (0.0, np.inf),
    "brier": (0.0, 2.0),
    "brier_calibration": (0.0, 2.0),
    "brier_refinement": (0.0, 2.0),
    "root_brier": (0.0, 2.0**0.5),
    "confidence_gap": (-1.0, 1.0),
}
#: For the rest, higher is better, except the signed gap, which is best at zero.
LOWER_IS_BETTER = frozenset(TITLES) - {"accuracy", "top5_accuracy", "auroc", "confidence_gap"}


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
