"""Calibration metrics: one streaming, mergeable state; kernel errors; scores; intervals and tests."""

from equipoise.metrics.binned import (
    average_calibration_error,
    classwise_calibration_error,
    classwise_calibration_errors,
    confidence_gap,
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    over_confidence_error,
    reliability_curve,
    root_mean_square_calibration_error,
)
from equipoise.metrics.consistency import ConsistencyTest, consistency_test
from equipoise.metrics.corp import CorpCurve, CorpSplit, corp_curve, corp_split
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.detection import area_under_roc, error_auroc, out_of_distribution_auroc
from equipoise.metrics.kernel import choose_bandwidth, gaussian_calibration_error, kernel_calibration_error
from equipoise.metrics.proper import (
    BrierSplit,
    accuracy,
    brier_score,
    brier_split,
    negative_log_likelihood,
    root_brier_score,
    top_k_accuracy,
)
from equipoise.metrics.ranked import (
    adaptive_calibration_error,
    adaptive_edges,
    kolmogorov_smirnov_error,
    sweep_calibration_error,
    thresholded_adaptive_calibration_error,
)
from equipoise.metrics.rival import rival_probability
from equipoise.metrics.selective import (
    RiskCoverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    risk_at_coverage,
    risk_coverage,
)
from equipoise.metrics.smooth import SmoothCurve, smooth_calibration_error, smooth_curve
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.temperature_sweep import TemperatureSweep, sweep_temperatures

__all__ = [
    "BrierSplit",
    "CalibrationState",
    "ConsistencyTest",
    "CorpCurve",
    "CorpSplit",
    "ReliabilityCurve",
    "RiskCoverage",
    "SmoothCurve",
    "TemperatureSweep",
    "accuracy",
    "adaptive_calibration_error",
    "adaptive_edges",
    "area_under_generalized_risk_coverage",
    "area_under_risk_coverage",
    "area_under_roc",
    "average_calibration_error",
    "brier_score",
    "brier_split",
    "choose_bandwidth",
    "classwise_calibration_error",
    "classwise_calibration_errors",
    "confidence_gap",
    "consistency_test",
    "corp_curve",
    "corp_split",
    "coverage_at_risk",
    "debiased_calibration_error",
    "error_auroc",
    "excess_area_under_risk_coverage",
    "expected_calibration_error",
    "gaussian_calibration_error",
    "kernel_calibration_error",
    "kolmogorov_smirnov_error",
    "maximum_calibration_error",
    "negative_log_likelihood",
    "out_of_distribution_auroc",
    "over_confidence_error",
    "reliability_curve",
    "risk_at_coverage",
    "risk_coverage",
    "rival_probability",
    "root_brier_score",
    "root_mean_square_calibration_error",
    "smooth_calibration_error",
    "smooth_curve",
    "sweep_calibration_error",
    "sweep_temperatures",
    "thresholded_adaptive_calibration_error",
    "top_k_accuracy",
]
