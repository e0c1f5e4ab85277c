"""From a confidence to a decision: certified thresholds, least expected cost, prediction sets."""

from equipoise.decisions.accept_rule import AcceptRule, PromiseCheck
from equipoise.decisions.certificate import Certificate, Shortfall
from equipoise.decisions.certify import certify_threshold
from equipoise.decisions.costs import CostedActions, CostRule, CostSummary, least_cost_actions, read_costs
from equipoise.decisions.files import decide_file, load_decision
from equipoise.decisions.labelling import LabelPlan, PoweredRate, plan_labels, powered_rate, stratified_rate
from equipoise.decisions.monitor import Alarm, DailyMonitor, Evidence, WatchedDay
from equipoise.decisions.prediction_sets import PredictionSets, set_scores
from equipoise.decisions.promise import DecisionCheck, check_decision
from equipoise.decisions.set_report import ClassSets, CoverageRow, SetReport
from equipoise.decisions.unlabelled import ShiftReport, compare_unlabelled

__all__ = [
    "AcceptRule",
    "Alarm",
    "Certificate",
    "ClassSets",
    "CostRule",
    "CostSummary",
    "CostedActions",
    "CoverageRow",
    "DailyMonitor",
    "DecisionCheck",
    "Evidence",
    "LabelPlan",
    "PoweredRate",
    "PredictionSets",
    "PromiseCheck",
    "SetReport",
    "ShiftReport",
    "Shortfall",
    "WatchedDay",
    "certify_threshold",
    "check_decision",
    "compare_unlabelled",
    "decide_file",
    "least_cost_actions",
    "load_decision",
    "plan_labels",
    "powered_rate",
    "read_costs",
    "set_scores",
    "stratified_rate",
]
