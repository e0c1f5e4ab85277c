"""Scoring: predictions or their sums become a scorecard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError, SpecError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import unchecked_rows
from equipoise.evaluate.cautions import Caution, InputDiagnostics, input_mistakes
from equipoise.evaluate.scorecard import Score, Scorecard
from equipoise.metrics.clusters import ClusterDraws, ClusterSums, sum_clusters
from equipoise.metrics.consistency import ConsistencyTest
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.facts import FACTS
from equipoise.metrics.influence import CORP_KEYS, SELECTIVE_KEYS, InfluenceTable, influence_table
from equipoise.metrics.inputs import TopLabel, as_predictions, sorted_top_label
from equipoise.metrics.intervals import (
    Interval,
    check_settings,
    error_interval,
    mean_interval,
    tail_probability,
)
from equipoise.metrics.resample import Resampler
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.target import POSITIVE_KEYS, Target, event_view, find_target
from equipoise.metrics.values import row_metrics, sketch_cells, sketch_metrics, state_metrics

__all__ = ["are_unequal", "card_of_target", "event_card", "score", "score_state", "score_values"]

#: A class is clearly rarer than the other if its share is shown to be below this.
_RARE = 1 / 3
#: What the sketch of a stream is too coarse for.
_LOG_PARTS = tuple(key for key in CORP_KEYS if "log" in key)
#: Metrics that all targets share, and what they are multiplied by for the event of two classes.
_SHARED = {
    "accuracy": 1.0,
    "nll": 1.0,
    "brier": 0.5,
    "brier_calibration": 0.5,
    "brier_refinement": 0.5,
    "root_brier": 0.5**0.5,
}


def score(
    predictions: Predictions | CalibrationState,
    *,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    clusters: Any = None,
    target: str | None = None,
    positive: str | int | None = None,
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
        clusters: Where rows depend on each other, such as pixels of one image or posts of one author: one value per
            row, or the name of a column of groups. Clusters are then resampled, not rows.
        target: What is judged: ``"top"``, the confidence of the predicted class; ``"positive"``, the probability of the
            positive class of two; ``"classwise"``, the probability of every class. By default the predicted class;
            where two classes have clearly unequal frequencies, ``card.event`` then judges the probability of class 1.
        positive: The positive class, by name or number; by default class 1. Naming one means ``target="positive"``.

    Returns:
        A record of scores; print it for a table.

    Raises:
        DataError: If there is only one cluster, or clusters were given with a state, which keeps none.
        SpecError: If the target does not fit the classes, or a state keeps too little for it.
        SplitError: If the rows were used to fit the calibrator that made these predictions.

    Example:
        >>> card = score(Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1]))
        >>> round(card["ece"].value, 3)
        0.4
        >>> card["ece"].low <= card["ece"].value <= card["ece"].high
        True
    """
    settings = ScoreSettings(n_bins, closed, level, n_resamples, seed)
    check_settings(settings, where="score")
    if isinstance(predictions, CalibrationState):
        if clusters is not None:
            raise DataError(
                "score: a state keeps no clusters, so none can be resampled. Pass the Predictions."
            )
        return _score_sums(predictions, target, positive, settings)
    rows = as_predictions(predictions, None, where="score")
    state = CalibrationState.of_checked(rows, settings)
    chosen = find_target(
        target, positive, n_classes=state.n_classes, class_names=rows.class_names, where="score"
    )
    diagnostics = InputDiagnostics()
    diagnostics.update(rows)

    def sums_of(part: Predictions) -> ClusterSums | None:
        return None if clusters is None else sum_clusters(part, clusters, settings, where="score")

    def of_event(plain: Scorecard, judged: Target) -> Scorecard:
        view = event_view(rows, judged.positive or 0)
        sums = CalibrationState.of_checked(view, settings)
        return event_card(plain, sums, view, judged, settings, clusters=sums_of(view))

    plain = score_state(
        state,
        rows,
        settings,
        cautions=input_mistakes(diagnostics.cautions()),
        clusters=sums_of(rows),
        n_dropped=rows.n_dropped,
    )
    return card_of_target(plain, state, chosen, rows.class_names, of_event)


def _score_sums(
    state: CalibrationState, target: str | None, positive: str | int | None, settings: ScoreSettings
) -> Scorecard:
    chosen = find_target(target, positive, n_classes=state.n_classes, class_names=None, where="score")
    if chosen is not None and chosen.kind == "positive":
        raise SpecError(
            "score: a CalibrationState keeps too little to judge the probability of one class. Pass the Predictions, "
            "or audit an AuditState."
        )
    plain = score_state(state, None, settings)
    return card_of_target(plain, state, chosen, None, None)


def score_values(
    predictions: Predictions | CalibrationState, *, n_bins: int = 15, closed: str = "right"
) -> dict[str, float]:
    """Return the numbers of :func:`score` alone, without intervals, tests and checks of the input.

    For loops and dashboards: it takes a small part of the time. One number says little about how well it is known, so
    what is reported comes from :func:`score`.

    Args:
        predictions: Predictions; or the state of a stream.
        n_bins: Bins of equal width. A state brings its own.
        closed: Which side of a bin belongs to it. A state brings its own.

    Returns:
        The metrics of the predicted class, by key.

    Raises:
        SplitError: If the rows were used to fit the calibrator that made these predictions.

    Example:
        >>> values = score_values(Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1]))
        >>> round(values["ece"], 3), round(values["auroc"], 3)
        (0.4, 0.5)
    """
    settings = ScoreSettings(n_bins, closed)
    check_settings(settings, where="score_values")
    if isinstance(predictions, CalibrationState):
        values, _ = _values(predictions, None)
    else:
        rows = as_predictions(predictions, None, where="score_values")
        state = CalibrationState.of_checked(rows, settings)
        values, _ = _values(state, sorted_top_label(rows, where="score_values"))
    return {key: values[key] for key in FACTS if key in values}


def _values(state: CalibrationState, top: TopLabel | None) -> tuple[dict[str, float], InfluenceTable]:
    """Return every metric by key, and the table that intervals of the scores of acting come from."""
    if top is None:
        values = {**state_metrics(state), **sketch_metrics(state)}
        acting, left_out = influence_table(sketch_cells(state)), _LOG_PARTS
    else:
        values = {**state_metrics(state), **row_metrics(top, state)}
        acting, left_out = influence_table(top.cells, area=values["aurc"]), ()
    return values | {key: value for key, value in acting.values.items() if key not in left_out}, acting


def score_state(
    state: CalibrationState,
    rows: Predictions | None,
    settings: ScoreSettings,
    *,
    top: TopLabel | None = None,
    cautions: tuple[Caution, ...] = (),
    clusters: ClusterSums | None = None,
    n_dropped: int = 0,
) -> Scorecard:
    """Score a state that holds the sums of some rows already.

    Args:
        state: The sums.
        rows: The rows themselves; without them, what needs them is approximated.
        settings: Level of the intervals, and the resamples behind them; the bins are those of the state.
        top: Confidence and correctness of the rows, if they are sorted already.
        cautions: Signs of mistakes in the input.
        clusters: Sums of clusters, which are then resampled instead of rows.
        n_dropped: How many rows were left out when a file was read.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> card = score_state(CalibrationState.of(rows), rows, ScoreSettings(n_resamples=20))
        >>> round(card["ece"].value, 3)
        0.4
    """
    level = settings.level
    if rows is not None:
        top = top or sorted_top_label(rows, where="score")
    values, acting = _values(state, top)
    resampler = Resampler(state, settings)
    draws, calibrated = resampler.bootstrap(), resampler.calibrated()
    clustered = None
    if clusters is not None:
        clustered = ClusterDraws(clusters, state, settings)
        draws, calibrated = clustered.bootstrap(values, draws), clustered.calibrated(calibrated)
    n_rows = float(state.effective_samples / (1.0 if clustered is None else clustered.inflation))
    scores: dict[str, Score] = {}
    for key, facts in FACTS.items():
        if key not in values:
            continue
        value, p_value = values[key], None
        if key in acting.entries:
            low, high = acting.interval(key, n_rows, level=level)
            ends = Interval(low, max(value, min(high, facts.high)))
        elif facts.is_error:
            drawn = calibrated.get(key)
            p_value = None if drawn is None else tail_probability(value, drawn)
            ends = error_interval(value, draws[key], drawn, level=level, largest=facts.high)
        elif key == "debiased_ece":
            ends = _follow(values, scores["ece"])
        else:
            ends = mean_interval(value, draws[key], level=level, within=(facts.low, facts.high))
        scores[key] = Score(value, *ends, p_value)
    return Scorecard(
        scores=scores,
        missing=_missing(state, scores),
        notes=(*_dropped_words(n_dropped), *_notes(state, rows, clusters, level)),
        curve=state.curve(),
        consistency=ConsistencyTest.of("ece", values["ece"], calibrated["ece"]),
        n_samples=state.n_samples,
        n_classes=rows.n_classes if rows is not None else state.n_classes or None,
        split=None if rows is None else rows.split,
        n_bins=state.n_bins,
        closed=state.closed,
        level=level,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
        identity="" if rows is None else rows,
        cautions=cautions,
        clusters=None if clustered is None else clustered.summary,
        n_dropped=n_dropped,
    )


def card_of_target(
    plain: Scorecard,
    state: CalibrationState,
    target: Target | None,
    class_names: Sequence[str] | None,
    of_event: Callable[[Scorecard, Target], Scorecard] | None,
) -> Scorecard:
    """Return the scorecard of a target, from that of the predicted class.

    Args:
        plain: The scorecard of the predicted class.
        state: The sums behind it.
        target: What is judged; None: the predicted class, with the probability of class 1 beside it if two classes
            have clearly unequal frequencies.
        class_names: Names of the classes.
        of_event: Makes the scorecard of the probability of a class; None if its sums are not known.
    """
    if target is None:
        if of_event is None or not are_unequal(state):
            return plain
        default = Target("positive", 1, class_names[1] if class_names else "1")
        return replace(plain, event=of_event(plain, default))
    if target.kind == "classwise":
        return _classwise_card(plain, state)
    if target.kind == "positive" and of_event is not None:
        return of_event(plain, target)
    return plain


def are_unequal(state: CalibrationState) -> bool:
    """Return whether one of two classes is clearly rarer: the 95% interval of its share ends below a third.

    Example:
        >>> state = CalibrationState(2); state.update(probs=[0.1] * 100, labels=[0] * 95 + [1] * 5)
        >>> are_unequal(state)
        True
    """
    if state.n_classes != 2:
        return False
    share = state.arrays.classwise[..., 2].sum(1) / state.total_weight
    n, z = state.effective_samples, 1.96
    rare = float(np.clip(share.min(), 0, 1))
    highest = (rare + z**2 / (2 * n) + z * np.sqrt(rare * (1 - rare) / n + z**2 / (4 * n**2))) / (
        1 + z**2 / n
    )
    return bool(highest < _RARE)


def event_card(
    plain: Scorecard,
    state: CalibrationState,
    view: Predictions | None,
    target: Target,
    settings: ScoreSettings,
    *,
    clusters: ClusterSums | None = None,
) -> Scorecard:
    """Return the scorecard of the probability of a positive class.

    Accuracy and log-loss are those of the predicted class, and the Brier score of the event is half of that of two
    classes, so they are taken from there.

    Args:
        plain: The scorecard of the predicted class.
        state: Sums of :func:`~equipoise.metrics.target.event_view`.
        view: The rows behind them, if they are at hand.
        target: The positive class.
        settings: Level of the intervals, and their resamples.
        clusters: Sums of clusters of the same rows.
    """
    card = score_state(state, view, settings, clusters=clusters)
    scores: dict[str, Score] = {}
    for key in FACTS:
        if key in _SHARED and key in plain.scores:
            scores[key] = _scaled(plain.scores[key], _SHARED[key])
        elif key in POSITIVE_KEYS and key in card.scores:
            scores[key] = card.scores[key]
    reasons = {
        "auroc": f"all rows are {target.event}, or none is",
        "top5_accuracy": plain.missing.get("top5_accuracy", ""),
        **dict.fromkeys(("aurc", *SELECTIVE_KEYS), "it is about the predicted class"),
        "classwise_ece": "it is about all classes",
    }
    absent = [key for key in FACTS if key not in scores]
    return replace(
        card,
        scores=scores,
        missing={key: reasons.get(key) or "not defined for these rows" for key in absent},
        notes=tuple(dict.fromkeys((*plain.notes, *card.notes))),
        curve=replace(card.curve, target="positive"),
        n_classes=plain.n_classes,
        split=plain.split,
        identity=plain.identity,
        cautions=plain.cautions,
        target=target,
    )


def _scaled(score: Score, factor: float) -> Score:
    return Score(factor * score.value, factor * score.low, factor * score.high, score.p_value)


def _classwise_card(plain: Scorecard, state: CalibrationState) -> Scorecard:
    """Return the scorecard of all classes against the rest: its ECE is the classwise one."""
    ece = plain.scores["classwise_ece"]
    kept = (*_SHARED, "top5_accuracy", "classwise_ece")
    scores = {
        key: ece if key == "ece" else plain.scores[key] for key in plain.scores if key in (*kept, "ece")
    }
    resampler = Resampler(state, ScoreSettings(n_resamples=plain.n_resamples, seed=plain.seed))
    inflation = 1.0 if plain.clusters is None else plain.clusters.inflation(plain.level)
    drawn = resampler.calibrated()["classwise_ece"] * np.sqrt(inflation)
    weight, probability, positive = state.arrays.classwise.sum(0).T
    others = dict.fromkeys(
        (key for key in plain.scores if key not in scores), "it is about the predicted class"
    )
    return replace(
        plain,
        scores=scores,
        missing={**plain.missing, **others},
        curve=ReliabilityCurve(weight, probability, positive, target="classwise", closed=state.closed),
        consistency=ConsistencyTest.of("ece", ece.value, drawn),
        target=Target("classwise"),
    )


def _follow(values: Mapping[str, float], plain: Score) -> Interval:
    """Return the interval of the debiased error: that of the plain one, whose ends are freed of bias already."""
    value = values["debiased_ece"]
    return Interval(min(plain.low, value), max(plain.high, value))


def _missing(state: CalibrationState, scores: Mapping[str, Score]) -> dict[str, str]:
    known = not state.n_classes
    absent = [key for key, facts in FACTS.items() if key not in scores and facts.only_confidence <= known]
    if state.n_classes == 0:
        why = "only a confidence is known, not the scores of every class"
        return {key: "it needs the rows" if key in _LOG_PARTS else why for key in absent}
    reasons = {
        "top5_accuracy": "five classes or fewer",
        "auroc": "all predictions are right, or all are wrong",
        **dict.fromkeys(_LOG_PARTS, "it needs the rows"),
    }
    return {key: reasons.get(key, "not defined for these rows") for key in absent}


def _dropped_words(n_dropped: int) -> tuple[str, ...]:
    if not n_dropped:
        return ()
    return (f"{n_dropped:,} {'row' if n_dropped == 1 else 'rows'} with missing values were left out.",)


def _notes(
    state: CalibrationState, rows: Predictions | None, clusters: ClusterSums | None, level: float
) -> tuple[str, ...]:
    notes = []
    if clusters is not None and 2.0 ** (1 - clusters.n_clusters) > 1 - level:
        notes.append(
            f"{clusters.n_clusters} clusters are too few to show miscalibration at the {100 * level:g}% level, "
            "whatever the rows are."
        )
    if state.n_samples < 20 * state.n_bins:
        notes.append(
            f"{state.n_samples} rows are few for {state.n_bins} bins: binned errors are mostly chance. "
            "Trust the intervals, and the proper scores more."
        )
    if state.n_impossible:
        notes.append(
            f"{state.n_impossible} rows gave the true class probability 0; NLL counts them at 87.3 nats. "
            "Save logits to avoid this."
            if state.n_classes
            else f"{state.n_impossible} rows were claimed with confidence 1 and wrong, or 0 and right; the log-loss "
            "counts them at 87.3 nats."
        )
    if rows is not None and rows.fitted_on is not None:
        unchecked = unchecked_rows(rows.rows, rows.fitted_on)
        notes += [unchecked] if unchecked else []
    filled = int((state.arrays.sketch[:, 0] > 0).sum())
    if filled == 1 and state.n_samples > 1:
        notes.append("All confidences are the same, so calibration says no more than accuracy does.")
    if rows is None:
        notes.append("A stream: adaptive, smooth and KS errors, AUROC and AURC are read from a fine sketch.")
    return tuple(notes)
