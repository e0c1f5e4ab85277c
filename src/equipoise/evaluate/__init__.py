"""Predictions x calibrators x metrics: scorecards with intervals, paired comparisons."""

from equipoise.evaluate.compare import Comparison, Difference, compare
from equipoise.evaluate.scorecard import Score, Scorecard, score

__all__ = ["Comparison", "Difference", "Score", "Scorecard", "compare", "score"]
