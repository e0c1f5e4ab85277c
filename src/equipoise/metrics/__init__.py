"""Calibration metrics: one streaming, mergeable state; kernel errors; scores; intervals and tests."""

from equipoise.metrics.accuracy import accuracy, top_k_accuracy
from equipoise.metrics.adaptive_calibration_error import adaptive_calibration_error, adaptive_edges
from equipoise.metrics.area_under_risk_coverage import (
    RiskCoverage,
    area_under_generalized_risk_coverage,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    risk_at_coverage,
    risk_coverage,
)
from equipoise.metrics.area_under_roc import area_under_roc, error_auroc, out_of_distribution_auroc
from equipoise.metrics.average_calibration_error import average_calibration_error
from equipoise.metrics.brier_score import BrierSplit, brier_score, brier_split, root_brier_score
from equipoise.metrics.classwise_calibration_error import (
    classwise_calibration_error,
    classwise_calibration_errors,
)
from equipoise.metrics.consistency import ConsistencyTest, consistency_test
from equipoise.metrics.corp import CorpCurve, CorpSplit, corp_curve, corp_split
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.debiased_calibration_error import debiased_calibration_error
from equipoise.metrics.expected_calibration_error import expected_calibration_error, reliability_curve
from equipoise.metrics.gaussian_calibration_error import gaussian_calibration_error
from equipoise.metrics.kernel_calibration_error import choose_bandwidth, kernel_calibration_error
from equipoise.metrics.kolmogorov_smirnov_error import kolmogorov_smirnov_error
from equipoise.metrics.maximum_calibration_error import maximum_calibration_error
from equipoise.metrics.negative_log_likelihood import negative_log_likelihood
from equipoise.metrics.overconfidence import confidence_gap, over_confidence_error
from equipoise.metrics.rival import rival_probability
from equipoise.metrics.root_mean_square_calibration_error import root_mean_square_calibration_error
from equipoise.metrics.smooth_calibration_error import smooth_calibration_error
from equipoise.metrics.smooth_curve import SmoothCurve, smooth_curve
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.sweep_calibration_error import sweep_calibration_error
from equipoise.metrics.temperature_sweep import TemperatureSweep, sweep_temperatures
from equipoise.metrics.thresholded_adaptive_calibration_error import thresholded_adaptive_calibration_error

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
