"""What predictions are worth to somebody who acts on them: certified coverage, prediction sets, AUGRC."""

from __future__ import annotations

import numpy as np

from equipoise.core.predictions import Predictions
from equipoise.decisions import PredictionSets, certify_threshold
from equipoise.metrics.selective import area_under_generalized_risk_coverage

MAX_ERROR, CONFIDENCE, SET_COVERAGE = 0.05, 0.95, 0.9


def acting_scores(tune: Predictions, test: Predictions) -> dict[str, float]:
    """Return the endpoints of decisions; thresholds and sets come from ``tune``, numbers from ``test``.

    Args:
        tune: Predictions that no calibrator was fitted on.
        test: Predictions of the same network after the same calibrator.

    Returns:
        ``augrc``; ``coverage_at_5``, the share that is accepted where at most 5% of the accepted may be wrong, and
        ``error_at_5``, the share of these that are; ``set_size_90`` and ``set_coverage_90`` of sets that hold the true
        class with probability 0.9.
    """
    accepted = certify_threshold(tune, max_error=MAX_ERROR, confidence=CONFIDENCE)(test)
    sets = PredictionSets("lac", coverage=SET_COVERAGE).fit(tune)(test).report()
    return {
        "augrc": area_under_generalized_risk_coverage(test),
        "coverage_at_5": float(np.mean(accepted)),
        "error_at_5": float(np.mean(~test.correct[accepted])) if accepted.any() else 0.0,
        "set_size_90": float(sets.mean_size),
        "set_coverage_90": float(sets.coverage),
    }
