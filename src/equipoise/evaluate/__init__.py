"""Predictions x calibrators x metrics: scorecards with intervals, paired comparisons."""

from equipoise.evaluate.compare import Comparison, Difference, compare
from equipoise.evaluate.scorecard import Score, Scorecard, score
from equipoise.evaluate.slices import Slice, SliceSums, score_by_class, score_by_group

__all__ = [
    "Comparison",
    "Difference",
    "Score",
    "Scorecard",
    "Slice",
    "SliceSums",
    "compare",
    "score",
    "score_by_class",
    "score_by_group",
]
