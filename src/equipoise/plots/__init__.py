"""Figures drawn from records that metrics and histories give."""

from typing import TYPE_CHECKING

from equipoise.core.lazy import lazy_names as _lazy_names

__all__ = [
    "draw_accuracy_against_error",
    "draw_bars",
    "draw_classwise",
    "draw_confidence_histogram",
    "draw_corp_reliability",
    "draw_gammas",
    "draw_gradient_weights",
    "draw_history",
    "draw_hyperparameter",
    "draw_max_logits",
    "draw_multipliers",
    "draw_penalties",
    "draw_phi",
    "draw_reliability",
    "draw_reliability_diagrams",
    "draw_risk_coverage",
    "draw_rivals",
    "draw_shift",
    "draw_smooth_reliability",
    "draw_sweep",
    "draw_temperature_sweep",
]

if TYPE_CHECKING:
    from equipoise.plots.bars import draw_bars
    from equipoise.plots.classwise import draw_classwise
    from equipoise.plots.gammas import draw_gammas
    from equipoise.plots.gradient_weights import draw_gradient_weights
    from equipoise.plots.history import draw_history
    from equipoise.plots.hyperparameter import draw_hyperparameter
    from equipoise.plots.max_logits import draw_max_logits
    from equipoise.plots.multipliers import draw_multipliers
    from equipoise.plots.penalties import draw_penalties
    from equipoise.plots.phi import draw_phi
    from equipoise.plots.reliability import (
        draw_confidence_histogram,
        draw_reliability,
        draw_reliability_diagrams,
    )
    from equipoise.plots.risk_coverage import draw_risk_coverage
    from equipoise.plots.rivals import draw_rivals
    from equipoise.plots.scatter import draw_accuracy_against_error
    from equipoise.plots.shift import draw_shift
    from equipoise.plots.smooth_reliability import draw_corp_reliability, draw_smooth_reliability
    from equipoise.plots.sweep import draw_sweep
    from equipoise.plots.temperature import draw_temperature_sweep
else:
    # Kinds of figures are listed without loading what draws them.
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "draw_accuracy_against_error": "equipoise.plots.scatter",
            "draw_bars": "equipoise.plots.bars",
            "draw_classwise": "equipoise.plots.classwise",
            "draw_confidence_histogram": "equipoise.plots.reliability",
            "draw_corp_reliability": "equipoise.plots.smooth_reliability",
            "draw_gammas": "equipoise.plots.gammas",
            "draw_gradient_weights": "equipoise.plots.gradient_weights",
            "draw_history": "equipoise.plots.history",
            "draw_hyperparameter": "equipoise.plots.hyperparameter",
            "draw_max_logits": "equipoise.plots.max_logits",
            "draw_multipliers": "equipoise.plots.multipliers",
            "draw_penalties": "equipoise.plots.penalties",
            "draw_phi": "equipoise.plots.phi",
            "draw_reliability": "equipoise.plots.reliability",
            "draw_reliability_diagrams": "equipoise.plots.reliability",
            "draw_risk_coverage": "equipoise.plots.risk_coverage",
            "draw_rivals": "equipoise.plots.rivals",
            "draw_shift": "equipoise.plots.shift",
            "draw_smooth_reliability": "equipoise.plots.smooth_reliability",
            "draw_sweep": "equipoise.plots.sweep",
            "draw_temperature_sweep": "equipoise.plots.temperature",
        },
    )
