"""Calibration losses: pure functions and plain modules of (logits, labels); one file per method."""

from equipoise.losses.ada_dual_focal import AdaDualFocalLoss, ada_dual_focal_loss
from equipoise.losses.adafocal import AdaFocalLoss, adafocal_loss
from equipoise.losses.base import Loss, Penalty
from equipoise.losses.brier import BrierLoss, brier_loss
from equipoise.losses.cals_alm import ClassAdaptiveLoss, class_adaptive_loss
from equipoise.losses.cals_hr import ClassAdaptiveHeuristicLoss, class_adaptive_heuristic_loss
from equipoise.losses.cpc import PairwiseConstraintLoss, pairwise_constraint_loss
from equipoise.losses.dual_focal import DualFocalLoss, dual_focal_loss
from equipoise.losses.entropy import EntropyRegularizedLoss, entropy_regularized_loss
from equipoise.losses.flsd import SampleDependentFocalLoss, sample_dependent_focal_loss
from equipoise.losses.focal import FocalLoss, focal_loss
from equipoise.losses.inverse_focal import InverseFocalLoss, inverse_focal_loss
from equipoise.losses.label_smoothing import LabelSmoothingLoss, label_smoothing_loss
from equipoise.losses.logit_norm import LogitNormLoss, logit_norm_loss
from equipoise.losses.mbls import MarginLoss, margin_loss
from equipoise.losses.sum import Adaptive, Scaled, Sum, Term

__all__ = [
    "AdaDualFocalLoss",
    "AdaFocalLoss",
    "Adaptive",
    "BrierLoss",
    "ClassAdaptiveHeuristicLoss",
    "ClassAdaptiveLoss",
    "DualFocalLoss",
    "EntropyRegularizedLoss",
    "FocalLoss",
    "InverseFocalLoss",
    "LabelSmoothingLoss",
    "LogitNormLoss",
    "Loss",
    "MarginLoss",
    "PairwiseConstraintLoss",
    "Penalty",
    "SampleDependentFocalLoss",
    "Scaled",
    "Sum",
    "Term",
    "ada_dual_focal_loss",
    "adafocal_loss",
    "brier_loss",
    "class_adaptive_heuristic_loss",
    "class_adaptive_loss",
    "dual_focal_loss",
    "entropy_regularized_loss",
    "focal_loss",
    "inverse_focal_loss",
    "label_smoothing_loss",
    "logit_norm_loss",
    "margin_loss",
    "pairwise_constraint_loss",
    "sample_dependent_focal_loss",
]
