"""Endpoints of the second edition: scores, and what predictions are worth to somebody who acts on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from advised import NAME

from equipoise import score
from equipoise.calibrators import TemperatureScaling, choose
from equipoise.core.predictions import Predictions
from equipoise.decisions import PredictionSets, certify_threshold
from equipoise.metrics.selective import area_under_generalized_risk_coverage

METRICS = ("accuracy", "nll", "brier", "ece", "debiased_ece", "smece", "auroc", "aurc")
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


def endpoint_rows(about: Mapping[str, Any], found: Mapping[str, Predictions]) -> Iterator[dict[str, Any]]:
    """Score predictions that no run folder holds, without a calibrator and after those that ``calib`` gives.

    Args:
        about: What the rows are about.
        found: Predictions on ``tune``, ``calib`` and ``test``.
    """
    maps = {
        "identity": None,
        "temperature": TemperatureScaling().fit(found["calib"]),
        NAME: choose(found["calib"]).calibrator,
    }
    for calibrator, fitted in maps.items():
        tune, test = (found[split] if fitted is None else fitted(found[split]) for split in ("tune", "test"))
        here = {**about, "calibrator": calibrator, "split": "test"}
        card = score(test, n_resamples=300)
        for metric in METRICS:
            value, low, high = card[metric].value, card[metric].low, card[metric].high
            yield {**here, "metric": metric, "value": value, "low": low, "high": high, "n": len(test)}
        for metric, value in acting_scores(tune, test).items():
            yield {**here, "metric": metric, "value": value, "low": value, "high": value, "n": len(test)}
