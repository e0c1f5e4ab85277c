"""The scorecard: every number about one set of predictions, with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, final

from equipoise.core.predictions import Predictions
from equipoise.evaluate.values import ERRORS, RANGES, TITLES, exact_values, sketched_values
from equipoise.evaluate.words import describe
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.inputs import as_predictions
from equipoise.metrics.intervals import (
    Interval,
    check_resamples,
    error_interval,
    mean_interval,
    tail_probability,
)
from equipoise.metrics.readings import read_state
from equipoise.metrics.resample import Resampler
from equipoise.metrics.state import CalibrationState

__all__ = ["Score", "Scorecard", "score"]


class Score(NamedTuple):
    """One number with its interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end.
        p_value: For calibration errors: how often a calibrated model with the same confidences scores as high.
    """

    value: float
    low: float
    high: float
    p_value: float | None = None


@final
@dataclass(frozen=True, eq=False)
class Scorecard:
    """Every metric of one set of predictions, with intervals.

    Attributes:
        scores: Scores by key.
        missing: What could not be computed, and why.
        notes: Sentences a reader should know.
        curve: The reliability curve of the top label.
        n_samples: Number of rows.
        n_classes: Number of classes, if known.
        split: The split they are from, if said.
        n_bins: Bins of the binned metrics.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        n_resamples: Resamples behind the intervals.
        seed: Seed of the resamples.
        fingerprint: Which rows these were; empty for a stream.
    """

    scores: Mapping[str, Score]
    missing: Mapping[str, str]
    notes: tuple[str, ...]
    curve: ReliabilityCurve
    n_samples: int
    n_classes: int | None
    split: str | None
    n_bins: int
    closed: str
    level: float
    n_resamples: int
    seed: int
    fingerprint: str

    def __getitem__(self, key: str) -> Score:
        return self.scores[key]

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{"ece": {"value": ..., "low": ..., "high": ...}, ...}``.

        Example:
            >>> card = score(Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1]), n_resamples=50)
            >>> sorted(card.to_dict()["ece"])
            ['high', 'low', 'value']
        """
        return {key: {"value": s.value, "low": s.low, "high": s.high} for key, s in self.scores.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one tidy row per metric, ready for a data frame.

        Example:
            >>> card = score(Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1]), n_resamples=50)
            >>> card.rows()[0]["metric"]
            'accuracy'
        """
        context = {
            "split": self.split,
            "n_samples": self.n_samples,
            "n_bins": self.n_bins,
            "closed": self.closed,
            "level": self.level,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
        }
        return [{"metric": key, **s._asdict(), **context} for key, s in self.scores.items()]

    def __str__(self) -> str:
        return describe(self)


def score(
    predictions: Predictions | CalibrationState,
    *,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Scorecard:
    """Score predictions: accuracy, proper scores and the family of calibration errors, with intervals.

    Args:
        predictions: Predictions; or the state of a stream, from which adaptive and smooth errors are approximated to
            about one part in a thousand.
        n_bins: Bins of equal width; 15 in the papers. A state brings its own.
        closed: Which side of a bin belongs to it. A state brings its own.
        level: Level of the intervals.
        n_resamples: Bootstrap resamples behind them.
        seed: The same seed gives the same intervals.

    Returns:
        A record of scores; print it for a table.

    Raises:
        SplitError: If the rows were used to fit the calibrator that made these predictions.

    Example:
        >>> card = score(Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1]))
        >>> round(card["ece"].value, 3)
        0.4
        >>> card["ece"].low <= card["ece"].value <= card["ece"].high
        True
    """
    check_resamples(n_resamples, where="score")
    if isinstance(predictions, CalibrationState):
        state, rows = predictions, None
        values = {**read_state(state), **sketched_values(state)}
    else:
        rows = as_predictions(predictions, None, where="score")
        state = CalibrationState.of(rows, n_bins=n_bins, closed=closed)
        values = {**read_state(state), **exact_values(rows, state)}
    resampler = Resampler(state, n_resamples=n_resamples, seed=seed)
    draws, calibrated = resampler.bootstrap(), resampler.calibrated()
    scores: dict[str, Score] = {}
    for key in (key for key in TITLES if key in values):
        p_value = (
            tail_probability(values[key], calibrated[key]) if key in ERRORS and key in calibrated else None
        )
        if key in ERRORS:
            ends = error_interval(
                values[key], draws[key], calibrated.get(key), level=level, largest=RANGES[key][1]
            )
        elif key == "debiased_ece":
            ends = _follow(values, scores["ece"])
        else:
            ends = mean_interval(values[key], draws[key], level=level, within=RANGES[key])
        scores[key] = Score(values[key], *ends, p_value)
    return Scorecard(
        scores=MappingProxyType(scores),
        missing=MappingProxyType(_missing(state, scores)),
        notes=_notes(state, rows),
        curve=state.curve(),
        n_samples=state.n_samples,
        n_classes=rows.n_classes if rows is not None else state.n_classes or None,
        split=None if rows is None else rows.split,
        n_bins=state.n_bins,
        closed=state.closed,
        level=level,
        n_resamples=n_resamples,
        seed=seed,
        fingerprint="" if rows is None else rows.fingerprint,
    )


def _follow(values: Mapping[str, float], plain: Score) -> Interval:
    """Return the interval of the debiased error: that of the plain one, whose ends are freed of bias already."""
    value = values["debiased_ece"]
    return Interval(min(plain.low, value), max(plain.high, value))


def _missing(state: CalibrationState, scores: Mapping[str, Score]) -> dict[str, str]:
    absent = [key for key in TITLES if key not in scores]
    if state.n_classes == 0:
        why = "only the predicted class and its confidence are known"
        return dict.fromkeys(absent, why)
    reasons = {
        "top5_accuracy": "five classes or fewer",
        "auroc": "all predictions are right, or all are wrong",
    }
    return {key: reasons.get(key, "not defined for these rows") for key in absent}


def _notes(state: CalibrationState, rows: Predictions | None) -> tuple[str, ...]:
    notes = []
    if state.n_samples < 20 * state.n_bins:
        notes.append(
            f"{state.n_samples} rows are few for {state.n_bins} bins: binned errors are mostly chance. "
            "Trust the intervals, and the proper scores more."
        )
    if state.n_impossible:
        notes.append(
            f"{state.n_impossible} rows gave the true class probability 0; NLL counts them at 87.3 nats. "
            "Save logits to avoid this."
        )
    filled = int((state.sums.sketch[:, 0] > 0).sum())
    if filled == 1 and state.n_samples > 1:
        notes.append("All confidences are the same, so calibration says no more than accuracy does.")
    if rows is None:
        notes.append("A stream: adaptive, smooth and KS errors, AUROC and AURC are read from a fine sketch.")
    return tuple(notes)
