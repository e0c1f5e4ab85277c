"""Calibration losses: pure functions and plain modules of (logits, labels); one file per method."""

from equipoise.losses.base import Loss, Penalty
from equipoise.losses.brier import BrierLoss, brier_loss
from equipoise.losses.focal import FocalLoss, focal_loss
from equipoise.losses.sum import Adaptive, Scaled, Sum, Term

__all__ = [
    "Adaptive",
    "BrierLoss",
    "FocalLoss",
    "Loss",
    "Penalty",
    "Scaled",
    "Sum",
    "Term",
    "brier_loss",
    "focal_loss",
]
