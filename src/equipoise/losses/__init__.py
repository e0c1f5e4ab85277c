"""Calibration losses: pure functions and plain modules of (logits, labels); one file per method."""

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message
from equipoise.losses.acls import AdaptiveConditionalLoss, adaptive_conditional_loss
from equipoise.losses.ada_dual_focal import AdaDualFocalLoss, ada_dual_focal_loss
from equipoise.losses.adafocal import AdaFocalLoss, adafocal_loss
from equipoise.losses.avuc import AvUC, avuc_penalty
from equipoise.losses.base import Loss, Penalty
from equipoise.losses.brier import BrierLoss, brier_loss
from equipoise.losses.bsce import BrierWeightedLoss, brier_weighted_loss
from equipoise.losses.cals_alm import ClassAdaptiveLoss, class_adaptive_loss
from equipoise.losses.cals_hr import ClassAdaptiveHeuristicLoss, class_adaptive_heuristic_loss
from equipoise.losses.cpc import PairwiseConstraintLoss, pairwise_constraint_loss
from equipoise.losses.cross_entropy import CrossEntropyLoss, cross_entropy_loss
from equipoise.losses.dca import DCA, dca_penalty
from equipoise.losses.dece import DifferentiableECE, dece_penalty
from equipoise.losses.dual_focal import DualFocalLoss, dual_focal_loss
from equipoise.losses.entropy import EntropyRegularizedLoss, entropy_regularized_loss
from equipoise.losses.flsd import SampleDependentFocalLoss, sample_dependent_focal_loss
from equipoise.losses.focal import FocalLoss, focal_loss
from equipoise.losses.huber_ca import HuberConfidenceAccuracy, huber_ca_penalty
from equipoise.losses.inverse_focal import InverseFocalLoss, inverse_focal_loss
from equipoise.losses.kde import KernelECE, kde_penalty
from equipoise.losses.l1_ace import L1AverageCalibrationError, l1_ace_penalty
from equipoise.losses.label_smoothing import LabelSmoothingLoss, label_smoothing_loss
from equipoise.losses.logit_l2 import LogitL2Loss, logit_l2_loss
from equipoise.losses.logit_norm import LogitNormLoss, logit_norm_loss
from equipoise.losses.logit_penalty import LogitPenaltyLoss, logit_penalty_loss
from equipoise.losses.maxsup import MaxSuppressionLoss, max_suppression_loss
from equipoise.losses.mbls import MarginLoss, margin_loss
from equipoise.losses.mdca import MDCA, mdca_penalty
from equipoise.losses.mmce import MMCE, mmce_penalty
from equipoise.losses.mmce_weighted import MMCEWeighted, mmce_weighted_penalty
from equipoise.losses.nacl import NeighborAwareLoss, neighbor_aware_loss
from equipoise.losses.poly1 import Poly1Loss, poly1_loss
from equipoise.losses.sece import SmoothECE, sece_penalty
from equipoise.losses.soft_avuc import SoftAvUC, soft_avuc_penalty
from equipoise.losses.soft_ece import SoftBinnedECE, soft_ece_penalty
from equipoise.losses.sum import Adaptive, Scaled, Sum, Term

__all__ = [
    "DCA",
    "MDCA",
    "MMCE",
    "AdaDualFocalLoss",
    "AdaFocalLoss",
    "Adaptive",
    "AdaptiveConditionalLoss",
    "AvUC",
    "BrierLoss",
    "BrierWeightedLoss",
    "ClassAdaptiveHeuristicLoss",
    "ClassAdaptiveLoss",
    "CrossEntropyLoss",
    "DifferentiableECE",
    "DualFocalLoss",
    "EntropyRegularizedLoss",
    "FocalLoss",
    "HuberConfidenceAccuracy",
    "InverseFocalLoss",
    "KernelECE",
    "L1AverageCalibrationError",
    "LabelSmoothingLoss",
    "LogitL2Loss",
    "LogitNormLoss",
    "LogitPenaltyLoss",
    "Loss",
    "MMCEWeighted",
    "MarginLoss",
    "MaxSuppressionLoss",
    "NeighborAwareLoss",
    "PairwiseConstraintLoss",
    "Penalty",
    "Poly1Loss",
    "SampleDependentFocalLoss",
    "Scaled",
    "SmoothECE",
    "SoftAvUC",
    "SoftBinnedECE",
    "Sum",
    "Term",
    "ada_dual_focal_loss",
    "adafocal_loss",
    "adaptive_conditional_loss",
    "avuc_penalty",
    "brier_loss",
    "brier_weighted_loss",
    "class_adaptive_heuristic_loss",
    "class_adaptive_loss",
    "cross_entropy_loss",
    "dca_penalty",
    "dece_penalty",
    "dual_focal_loss",
    "entropy_regularized_loss",
    "focal_loss",
    "huber_ca_penalty",
    "inverse_focal_loss",
    "kde_penalty",
    "l1_ace_penalty",
    "label_smoothing_loss",
    "logit_l2_loss",
    "logit_norm_loss",
    "logit_penalty_loss",
    "margin_loss",
    "max_suppression_loss",
    "mdca_penalty",
    "mmce_penalty",
    "mmce_weighted_penalty",
    "neighbor_aware_loss",
    "pairwise_constraint_loss",
    "poly1_loss",
    "sample_dependent_focal_loss",
    "sece_penalty",
    "soft_avuc_penalty",
    "soft_ece_penalty",
]

#: Names that are gone, and what to write instead.
