"""Predictions x calibrators x metrics: scorecards with intervals, paired comparisons."""
