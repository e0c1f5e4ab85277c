"""From a confidence to a decision: certified thresholds, least expected cost, prediction sets."""

from equipoise.decisions.accept_rule import AcceptRule, PromiseCheck
from equipoise.decisions.certificate import Certificate, Shortfall
from equipoise.decisions.certify import certify_threshold
from equipoise.decisions.costs import CostedActions, CostSummary, least_cost_actions
from equipoise.decisions.prediction_sets import PredictionSets, set_scores
from equipoise.decisions.set_report import ClassSets, CoverageRow, SetReport

__all__ = [
    "AcceptRule",
    "Certificate",
    "ClassSets",
    "CostSummary",
    "CostedActions",
    "CoverageRow",
    "PredictionSets",
    "PromiseCheck",
    "SetReport",
    "Shortfall",
    "certify_threshold",
    "least_cost_actions",
    "set_scores",
]
