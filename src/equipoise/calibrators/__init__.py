"""Post-hoc calibrators, fitted on held-out predictions; one file per method."""

from typing import TYPE_CHECKING

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.bbq import BayesianBinning
from equipoise.calibrators.beta import BetaCalibration
from equipoise.calibrators.by_group import CalibrationByGroup
from equipoise.calibrators.dirichlet import DirichletCalibration
from equipoise.calibrators.ensemble import EnsembleScaling, average_predictions
from equipoise.calibrators.ensemble_temperature import EnsembleTemperatureScaling
from equipoise.calibrators.files import calibrate_file
from equipoise.calibrators.focal_recovery import FocalRecovery
from equipoise.calibrators.focal_temperature import FocalTemperatureScaling
from equipoise.calibrators.histogram import HistogramBinning
from equipoise.calibrators.identity import Identity
from equipoise.calibrators.isotonic import IsotonicCalibration
from equipoise.calibrators.loading import from_artifact, load
from equipoise.calibrators.matrix import MatrixScaling
from equipoise.calibrators.own import OwnCalibrator, UserCalibrator
from equipoise.calibrators.platt import PlattScaling
from equipoise.calibrators.prior_shift import PriorShift, estimate_priors
from equipoise.calibrators.quadratic import QuadraticScaling
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.scaling_binning import ScalingBinning
from equipoise.calibrators.selection import Choice, Trial, choose
from equipoise.calibrators.spline import SplineCalibration
from equipoise.calibrators.structured import StructuredMatrixScaling, StructuredVectorScaling
from equipoise.calibrators.temperature import TemperatureScaling
from equipoise.calibrators.vector import VectorScaling
from equipoise.calibrators.venn_abers import VennAbers
from equipoise.core.lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from equipoise.calibrators.module import CalibratorModule
else:
    # A torch module: torch is imported when it is first used.
    __getattr__, __dir__ = _lazy_names(__name__, {"CalibratorModule": "equipoise.calibrators.module"})

__all__ = [
    "BayesianBinning",
    "BetaCalibration",
    "CalibrationByGroup",
    "Calibrator",
    "CalibratorModule",
    "Choice",
    "DirichletCalibration",
    "EnsembleScaling",
    "EnsembleTemperatureScaling",
    "FitResult",
    "FocalRecovery",
    "FocalTemperatureScaling",
    "HistogramBinning",
    "Identity",
    "IsotonicCalibration",
    "MatrixScaling",
    "OwnCalibrator",
    "PlattScaling",
    "PriorShift",
    "QuadraticScaling",
    "ScalingBinning",
    "SplineCalibration",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "Trial",
    "UserCalibrator",
    "VectorScaling",
    "VennAbers",
    "average_predictions",
    "calibrate_file",
    "choose",
    "estimate_priors",
    "from_artifact",
    "load",
]
