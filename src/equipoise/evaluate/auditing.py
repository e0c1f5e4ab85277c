"""Auditing: one pass over predictions in bounded memory, or their sums, becomes an audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError, SpecError
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.combine import concatenate
from equipoise.evaluate.audit_state import AuditState
from equipoise.evaluate.audits import Audit
from equipoise.evaluate.cautions import Caution, input_mistakes
from equipoise.evaluate.scorecard import Scorecard
from equipoise.evaluate.scoring import card_of_target, event_card, score_state
from equipoise.evaluate.slices import Slice, one_vs_rest, with_class_names
from equipoise.metrics.clusters import ClusterSums, find_clusters, sum_clusters
from equipoise.metrics.inputs import sorted_top_label
from equipoise.metrics.intervals import check_settings
from equipoise.metrics.selective import RiskCoverage, risk_curve, risk_of_cells
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.target import Target, event_view

__all__ = ["audit", "audit_sums", "sum_chunks"]


def audit(
    predictions: Predictions | Iterable[Predictions] | AuditState,
    *,
    by: Sequence[str] | None = None,
    n_bins: int = 15,
    closed: str = "right",
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    clusters: Any = None,
    target: str | None = None,
    positive: str | int | None = None,
) -> Audit:
    """Audit predictions: scorecard, consistency test, worst classes and groups, and signs of mistakes in the file.

    Args:
        predictions: Predictions; or chunks of them, as :func:`equipoise.iter_predictions` gives, which are visited
            once; or the sums of an audit, which need no rows. A single chunk is scored exactly; of more, and of sums,
            adaptive and smooth errors are read from a fine sketch.
        by: Columns of groups to look at one by one; by default all that the predictions have, the column of clusters
            excepted.
        n_bins: Bins of equal width; 15 in the papers. A state brings its own.
        closed: Which side of a bin belongs to it. A state brings its own.
        level: Level of the intervals and of the verdicts.
        n_resamples: Bootstrap resamples behind the intervals.
        seed: The same seed gives the same answer.
        clusters: Where rows depend on each other, such as pixels of one image or posts of one author: one value per
            row, or the name of a column of groups. Clusters are then resampled, not rows; all chunks are held in
            memory for this.
        target: What is judged: ``"top"``, ``"positive"`` or ``"classwise"``, as for :func:`equipoise.score`.
        positive: The positive class, by name or number; by default class 1. Naming one means ``target="positive"``.

    Returns:
        A record; print it to read it.

    Raises:
        DataError: If there are no rows, or a column asked for has too many different values; if there is only one
            cluster, or clusters were given with a state, which keeps none.
        SpecError: If the target does not fit the classes, or a state keeps too little for it.
        SplitError: If the rows were used to fit the calibrator that made these predictions.

    Example:
        >>> found = audit(Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 20 + [1] * 20))
        >>> round(found.card["ece"].value, 3), found.consistency.p_value < 0.01
        (0.4, True)
    """
    settings = ScoreSettings(n_bins, closed, level, n_resamples, seed)
    check_settings(settings, where="audit")
    if isinstance(predictions, AuditState):
        if clusters is not None:
            raise DataError("audit: a state keeps no clusters, so none can be resampled. Audit the rows.")
        chosen = predictions.find_target(target, positive, where="audit")
        state = predictions if by is None else predictions.with_groups(by)
        return audit_sums(state, None, settings, target=chosen)
    rows = predictions
    if clusters is not None:
        rows = predictions if isinstance(predictions, Predictions) else concatenate(list(predictions))
        if by is None:
            column = find_clusters(clusters, rows, where="audit").name
            by = tuple(name for name in rows.groups if name != column)
    state, single = sum_chunks(rows, by=by, n_bins=n_bins, closed=closed, positive=positive)
    chosen = state.find_target(target, positive, where="audit")
    return audit_sums(state, single, settings, clusters=clusters, target=chosen)


def audit_sums(
    state: AuditState,
    rows: Predictions | None,
    settings: ScoreSettings,
    *,
    clusters: Any = None,
    target: Target | None = None,
) -> Audit:
    """Audit rows that are summed already; what the sums do not give exactly is read from the rows, if they are at hand.

    Args:
        state: The sums.
        rows: The rows themselves, if they are at hand; clusters need them.
        settings: Level of the intervals and of the verdicts, and the resamples behind them.
        clusters: One value per row, or the name of a column of groups.
        target: What is judged, as :meth:`AuditState.find_target` gives it.

    Example:
        >>> rows = Predictions(probs=[0.9, 0.2], labels=[1, 0])
        >>> found = audit_sums(*sum_chunks(rows, by=None), ScoreSettings(n_resamples=10))
        >>> found.card.n_samples
        2
    """
    refused = (Caution("too_many_groups", text) for text in state.refused.values())
    cautions = (*state.diagnostics.cautions(state.class_names), *refused)
    # The sums have their bins already.
    settings = settings._replace(n_bins=state.calibration.n_bins, closed=state.calibration.closed)
    level = settings.level

    def sums_of(part: Predictions | None) -> ClusterSums | None:
        if clusters is None or part is None:
            return None
        return sum_clusters(part, clusters, settings, where="audit")

    def of_event(plain: Scorecard, judged: Target) -> Scorecard:
        assert state.event is not None
        view = None if rows is None else event_view(rows, state.event.positive)
        named = judged._replace(positive=state.event.positive, name=_name(state, state.event.positive))
        return event_card(plain, state.event.calibration, view, named, settings, clusters=sums_of(view))

    top = None if rows is None else sorted_top_label(rows, where="audit")
    plain = score_state(
        state.calibration,
        rows,
        settings,
        top=top,
        cautions=input_mistakes(cautions),
        clusters=sums_of(rows),
        n_dropped=state.n_dropped,
    )
    known = None if state.event is None else of_event
    card = card_of_target(plain, state.calibration, target, state.class_names, known)
    inflation = 1.0 if card.clusters is None else card.clusters.inflation(level)
    kind = "top" if target is None else target.kind
    if kind == "classwise":
        if state.groups and not state.optional:
            raise SpecError(
                "groups need target 'top' or 'positive', got 'classwise': over all classes, probabilities and "
                "frequencies of any rows are equal on average. Leave {by} out.",
                where="audit",
                arguments={"by": ""},
            )
        classes = one_vs_rest(state.calibration, level=level, inflation=inflation)
        groups: dict[str, tuple[Slice, ...]] = {}
    else:
        part = state.event if kind == "positive" and state.event is not None else state
        classes = part.classes.slices(level=level, inflation=inflation)
        groups = {name: sums.slices(level=level, inflation=inflation) for name, sums in part.groups.items()}
    return Audit(
        card=card,
        classes=with_class_names(classes, state.class_names),
        groups=groups,
        risk=(_sketched_risk(state.calibration) if top is None else risk_curve(top)).thinned(),
        cautions=cautions,
    )


def _name(state: AuditState, place: int) -> str:
    return state.class_names[place] if state.class_names else str(place)


def sum_chunks(
    predictions: Predictions | Iterable[Predictions],
    *,
    by: Sequence[str] | None,
    n_bins: int = 15,
    closed: str = "right",
    positive: str | int | None = None,
) -> tuple[AuditState, Predictions | None]:
    """Return the sums of all chunks, and the chunk itself if there is only one."""
    held: list[Predictions | None] = []

    def watched(chunks: Iterable[Predictions]) -> Iterator[Predictions]:
        for chunk in chunks:
            # Two places are enough to know that there was more than one, and no chunk is held for long.
            held[:] = [None, None] if held else [chunk]
            yield chunk

    chunks = (predictions,) if isinstance(predictions, Predictions) else predictions
    state = AuditState.of(watched(chunks), by=by, n_bins=n_bins, closed=closed, positive=positive)
    return state, held[0]


def _sketched_risk(state: CalibrationState) -> RiskCoverage:
    """Return error rate by coverage of a stream, from the state's sketch of confidence."""
    sketch = state.arrays.sketch
    mass, confidence, right = sketch[sketch[:, 0] > 0][::-1].T
    return risk_of_cells(mass, np.maximum(mass - right, 0), confidence / mass)
