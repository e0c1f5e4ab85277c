"""Details that need the rows themselves: fine bins, curves of classes and groups, certified thresholds, sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.predictions import Predictions
from equipoise.decisions import Certificate, PredictionSets, SetReport, certify_threshold
from equipoise.evaluate.scorecard import Scorecard
from equipoise.metrics.corp import CorpCurve, CorpSplit, corp_curve, corp_split
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.selective import RiskCoverage, risk_coverage
from equipoise.metrics.target import event_view

__all__ = ["ERROR_LIMITS", "RowDetails", "details_of", "fine_bins", "sets_of"]

#: The error limits that a report tries to certify.
ERROR_LIMITS = (0.01, 0.02, 0.05, 0.10)
#: Coverage of the prediction sets of a report.
SET_COVERAGE = 0.9
_FINE = 60
_MOST_SLICES = 12
_MOST_STEPS = 400


@final
@dataclass(frozen=True, kw_only=True)
class RowDetails:
    """What a report shows only if the rows are in memory.

    Attributes:
        curves: Reliability curves with fine bins, by column and value; the key ``("", "")`` is all rows.
        risk: Error rate by coverage.
        corp: The reliability curve without bins; None if it has too many steps to draw.
        split: The Brier score of the event in its parts.
        certificates: Thresholds for every limit of :data:`ERROR_LIMITS`, certified or not; none if the rows do not
            allow a certificate.
    """

    curves: Mapping[tuple[str, str], ReliabilityCurve]
    risk: RiskCoverage
    split: CorpSplit
    corp: CorpCurve | None = None
    certificates: tuple[Certificate, ...] = ()


def fine_bins(n_bins: int) -> int:
    """Return a multiple of the number of bins, about 60, from which coarser bins are summed.

    Example:
        >>> fine_bins(15), fine_bins(25), fine_bins(100)
        (60, 75, 100)
    """
    return n_bins * max(1, -(-_FINE // n_bins))


def details_of(
    predictions: Predictions, card: Scorecard, *, slices: Mapping[str, Sequence[str]]
) -> RowDetails | None:
    """Return the details of predictions; None if there are no labels, or if every class is scored.

    Args:
        predictions: The rows.
        card: Their scorecard, whose target and bins are used.
        slices: Values to show by column; ``"class"`` is the predicted class.

    Example:
        >>> from equipoise.evaluate import score
        >>> rows = Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0])
        >>> found = details_of(rows, score(rows, n_resamples=5), slices={"class": ["1"]})
        >>> found.curves["class", "1"].weight.sum()
        np.float64(2.0)
    """
    if card.target.kind == "classwise" or not predictions.has_labels:
        return None
    positive = card.target.positive
    view = predictions if positive is None else event_view(predictions, positive)
    n_bins = fine_bins(card.n_bins)
    bins = np.searchsorted(view.lower_edges(n_bins, card.closed), view.confidence, side="left") - 1
    weight = np.ones(len(view)) if view.weights is None else np.asarray(view.weights, dtype=np.float64)
    sums = _Sums(bins, weight, weight * view.confidence, weight * view.correct, n_bins, card.closed)
    curves = {("", ""): sums.curve(slice(None))}
    for column, names in slices.items():
        values = _values(predictions, column)
        if values is not None:
            curves |= {(column, name): sums.curve(values == name) for name in names[:_MOST_SLICES]}
    corp = corp_curve(view)
    return RowDetails(
        curves={key: curve for key, curve in curves.items() if curve.weight.any()},
        risk=risk_coverage(view).thinned(),
        split=corp_split(view),
        corp=corp if len(corp.weight) <= _MOST_STEPS else None,
        certificates=_certificates(predictions, card) if card.target.kind == "top" else (),
    )


@dataclass(frozen=True)
class _Sums:
    bins: Array
    weight: Array
    confidence: Array
    outcome: Array
    n_bins: int
    closed: str

    def curve(self, rows: Any) -> ReliabilityCurve:
        """Return the reliability curve of some rows."""
        weight, confidence, outcome = (
            np.bincount(self.bins[rows], weights=column[rows], minlength=self.n_bins)
            for column in (self.weight, self.confidence, self.outcome)
        )
        return ReliabilityCurve(weight, confidence, outcome, closed=self.closed)


def _values(predictions: Predictions, column: str) -> Array | None:
    """Return the names of the predicted classes, or the values of a column, as text; None if there are none."""
    if column != "class":
        return (
            None if column not in predictions.groups else np.asarray(predictions.groups[column]).astype(str)
        )
    if predictions.kind == "confidence":
        return None
    names = predictions.class_names
    predicted = np.asarray(predictions.predicted)
    return predicted.astype(str) if names is None else np.array(names)[predicted]


def _certificates(predictions: Predictions, card: Scorecard) -> tuple[Certificate, ...]:
    """Return thresholds for every limit; none for clusters and training rows, which allow no certificate."""
    if card.clusters is not None or predictions.split == "train":
        return ()
    return tuple(
        certify_threshold(predictions, max_error=limit, confidence=card.level).certificate
        for limit in ERROR_LIMITS
    )


def sets_of(predictions: Predictions, calib: Predictions) -> SetReport | None:
    """Return the prediction sets of some rows, fitted on others; None without scores of at least three classes.

    Args:
        predictions: The rows to report on.
        calib: Other rows of the same model.
    """
    if not (predictions.has_scores and calib.has_scores) or (predictions.n_classes or 0) < 3:
        return None
    return PredictionSets("lac", coverage=SET_COVERAGE).fit(calib)(predictions).report()
