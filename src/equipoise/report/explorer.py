"""The data of the page's controls: bins, thresholds, classes, groups and calibrators."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from equipoise.core.escaping import without_controls
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.report.charts import axis_names
from equipoise.report.details import RowDetails, fine_bins
from equipoise.report.records import Report
from equipoise.report.view import has_details

__all__ = ["explorer_data"]

_FEWEST_BINS = 4
_POINTS = 120


def explorer_data(report: Report) -> dict[str, Any] | None:
    """Return what the page's script needs, as plain values for JSON; None if no rows were in memory.

    Example:
        >>> from equipoise import Predictions
        >>> from equipoise.report import report_of
        >>> report = report_of(Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0]), n_resamples=5)
        >>> explorer_data(report)["bins"]
        [4, 5, 6, 10, 12, 15, 20, 30, 60]
    """
    if not has_details(report):
        return None
    card = report.base.first
    fine = fine_bins(card.n_bins)
    names = axis_names(card.target)
    return {
        "bins": [n for n in range(1, fine + 1) if fine % n == 0 and (n >= _FEWEST_BINS or n == card.n_bins)],
        "fine": fine,
        "chosen": card.n_bins,
        "level": card.level,
        "z": float(ndtri((1 + card.level) / 2)),
        "claimed": names.claimed,
        "came": names.came,
        "methods": [
            {
                "name": without_controls(method.name),
                "variants": [
                    _variant(name, details)
                    for name, details in (
                        ("before", method.details),
                        *((f"after {one.name}", one.details) for one in method.calibrated),
                    )
                    if details is not None
                ],
            }
            for method in report.methods
            if method.details is not None
        ],
    }


def _variant(name: str, details: RowDetails) -> dict[str, Any]:
    certified = [one for one in details.certificates if one.certified and one.threshold is not None]
    risk = details.risk.thinned(_POINTS)
    steps: list[tuple[float, float, float, float | None]] = [
        (float(threshold), float(coverage), float(error), None)
        for threshold, coverage, error in zip(risk.threshold, risk.coverage, risk.risk, strict=True)
    ]
    steps += [
        (float(one.threshold or 0), float(one.coverage), float(one.observed_error or 0), one.max_error)
        for one in certified
    ]
    # A certified threshold replaces the point of the curve with the same threshold.
    by_threshold: dict[float, list[Any]] = {}
    for threshold, coverage, error, limit in steps:
        limits = by_threshold.get(threshold, [0, 0, 0, []])[3]
        limits = [*limits, limit] if limit is not None else limits
        by_threshold[threshold] = [
            _short(threshold, 10),
            _short(coverage, 5),
            _short(error, 5),
            limits,
        ]
    return {
        "name": without_controls(name),
        "slices": [
            {
                "column": without_controls(column),
                "name": without_controls(value),
                "bins": _sparse(curve),
            }
            for (column, value), curve in details.curves.items()
        ],
        "corp": None
        if details.corp is None
        else [
            [_short(float(number)) for number in step]
            for step in zip(
                details.corp.low,
                details.corp.high,
                details.corp.forecast,
                details.corp.frequency,
                strict=True,
            )
        ],
        "split": [_short(float(part)) for part in details.split],
        "steps": sorted(by_threshold.values(), key=lambda step: (step[1], -step[0])),
    }


def _sparse(curve: ReliabilityCurve) -> list[list[float]]:
    """Return index, weight, mean confidence and frequency of the bins that have rows."""
    filled = np.flatnonzero(curve.weight)
    return [
        [index, _short(weight, 6), _short(confidence / weight, 6), _short(outcome / weight, 6)]
        for index, weight, confidence, outcome in zip(
            filled.tolist(),
            curve.weight[filled].tolist(),
            curve.confidence_sum[filled].tolist(),
            curve.outcome_sum[filled].tolist(),
            strict=True,
        )
    ]


def _short(value: float, digits: int = 4) -> float:
    """Return a number with few digits; whole numbers without a point, as JSON writes them shorter."""
    rounded = round(value, digits)
    return int(rounded) if float(rounded).is_integer() else rounded
