"""What the papers prove, as functions: phi, confidence regions, posterior recovery."""

from equipoise.theory.gradients import GradientWeight, gradient_weight
from equipoise.theory.phi import dual_focal_phi, focal_phi
from equipoise.theory.posterior import confidence_bias, recover_posterior
from equipoise.theory.regions import (
    ConfidenceRegions,
    dual_focal_regions,
    dual_focal_under_confident_from,
    focal_regions,
)

__all__ = [
    "ConfidenceRegions",
    "GradientWeight",
    "confidence_bias",
    "dual_focal_phi",
    "dual_focal_regions",
    "dual_focal_under_confident_from",
    "focal_phi",
    "focal_regions",
    "gradient_weight",
    "recover_posterior",
]
