"""Predictions x calibrators x metrics: scorecards with intervals, paired comparisons, audits."""

from equipoise.evaluate.audit_state import AuditState, read_audit_state, write_audit_state
from equipoise.evaluate.auditing import audit
from equipoise.evaluate.audits import Audit
from equipoise.evaluate.cautions import Caution
from equipoise.evaluate.comparison import PairedDifferences, UnpairedDifferences, compare, compare_states
from equipoise.evaluate.differences import Difference
from equipoise.evaluate.gates import Gate, Limit, check_groups, check_limits, check_not_worse
from equipoise.evaluate.scorecard import Score, Scorecard
from equipoise.evaluate.scoring import score, score_values
from equipoise.evaluate.shift import DETECTION, ShiftScores, score_detection
from equipoise.evaluate.slices import Slice, SliceSums, score_by_class, score_by_group
from equipoise.evaluate.slow_metrics import EXTRA, score_extra
from equipoise.evaluate.standard_error import StandardError, mean_over_seeds
from equipoise.evaluate.sweep import Sweep
from equipoise.evaluate.trend import Change, Trend, find_trend

__all__ = [
    "DETECTION",
    "EXTRA",
    "Audit",
    "AuditState",
    "Caution",
    "Change",
    "Difference",
    "Gate",
    "Limit",
    "PairedDifferences",
    "Score",
    "Scorecard",
    "ShiftScores",
    "Slice",
    "SliceSums",
    "StandardError",
    "Sweep",
    "Trend",
    "UnpairedDifferences",
    "audit",
    "check_groups",
    "check_limits",
    "check_not_worse",
    "compare",
    "compare_states",
    "find_trend",
    "mean_over_seeds",
    "read_audit_state",
    "score",
    "score_by_class",
    "score_by_group",
    "score_detection",
    "score_extra",
    "score_values",
    "write_audit_state",
]
