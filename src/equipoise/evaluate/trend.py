"""One model over time: did it change, and since when?

Every run of consecutive states is held against all others. The largest standardized difference is compared with its
distribution when all rows come from one source, which is simulated from the pooled sums. So the level holds for all
places where a change may begin and end together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError, SpecError
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.audit_state import AuditState, merge_states
from equipoise.evaluate.auditing import audit
from equipoise.evaluate.chance import holm
from equipoise.evaluate.refit import Part, Refit, changed_parts, refit_gain
from equipoise.evaluate.scorecard import Scorecard
from equipoise.evaluate.verdict import p_text
from equipoise.metrics.facts import metric_facts
from equipoise.metrics.intervals import check_settings
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.target import TOP, Target, target_facts

__all__ = ["Change", "Trend", "find_changes", "find_trend"]

_WHERE = "find_trend"
_METRICS = ("ece", "nll", "accuracy")
#: With more states than this, only changes that last until the end are sought.
_MOST_STATES = 60
#: A change is sought among runs of states with so many rows inside and outside.
_FEWEST_ROWS = 100
#: Numbers that a block of simulated states holds.
_BLOCK = 1 << 23


class Change(NamedTuple):
    """The strongest change of a metric over time.

    Attributes:
        metric: Its key.
        target: What it is of: ``"top"``, or the probability, such as ``"P(fraud)"``.
        kind: How the states from ``first`` to ``last`` stand against the others.
        first: Name of the first state that is different.
        last: Name of the last one.
        start: Number of the first state that is different, from 0.
        stop: Number after the last one.
        others: The metric over all other states.
        value: The metric over the states that are different.
        difference: Value minus others; for calibration errors with chance taken off both.
        p_value: How often the largest difference of equal states is as large, over all runs of states, corrected by
            Holm's rule for the metrics that were looked at.
        significant: Whether that is below one minus the level.
    """

    metric: str
    target: str
    kind: Literal["worse", "better"]
    first: str
    last: str
    start: int
    stop: int
    others: float
    value: float
    difference: float
    p_value: float
    significant: bool


@final
@dataclass(frozen=True)
class Trend:
    """One model over time; print it to read it.

    Attributes:
        names: Names of the states, in order.
        changes: The strongest change of each metric, whether significant or not.
        card: Scores of all rows together.
        level: Level at which changes are called.
        n_places: How many runs of states were held against the others.
        parts: Bands of confidence and groups whose calibration changed with the first change found.
        refit: What a calibrator fitted on recent states would gain on the most recent one; None with too few rows.

    Example:
        >>> from equipoise import Predictions
        >>> rng = np.random.default_rng(0)
        >>> days = {
        ...     f"day{n}": AuditState.of(Predictions(probs=p, labels=rng.random(500) < p - 0.3 * (n > 4)))
        ...     for n in range(1, 7) for p in [rng.uniform(0.5, 1, 500)]
        ... }
        >>> print(find_trend(days, target="top", n_resamples=200).headline)
        Worse since day5: ECE 29.8% instead of 1.9%
    """

    names: tuple[str, ...]
    changes: tuple[Change, ...]
    card: Scorecard
    level: float
    n_places: int
    parts: tuple[Part, ...] = ()
    refit: Refit | None = None

    @property
    def found(self) -> tuple[Change, ...]:
        """The changes that chance does not explain; that of the calibration error first."""
        return tuple(change for change in self.changes if change.significant)

    @property
    def is_worse(self) -> bool:
        """Whether something became worse and stayed so."""
        return any(change.kind == "worse" and change.stop == len(self.names) for change in self.found)

    @property
    def headline(self) -> str:
        """What changed first of all, in a few words."""
        if not self.found:
            return f"No change is shown over {len(self.names)} states"
        words = self._words(self.found[0])
        return f"{words[0].upper()}{words[1:]}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The evidence."""
        rule = (
            f"P-values are for the largest difference between a run of states and all others, of {self.n_places:,} "
            f"runs, corrected for {len(self.changes)} metrics: equal states raise any alarm in at most "
            f"{100 * (1 - self.level):.3g}% of reports."
        )
        where = [f"Most changed: {part}." for part in self._widest()]
        refit = (
            "A refit cannot be judged yet: it needs 100 rows since the change to fit on, and a later state of 100."
            if self.refit is None
            else f"{self.refit}."
        )
        return (*(self._sentence(change) for change in self.changes), *where, refit, rule)

    def _widest(self) -> list[Part]:
        """Return the band, and the group of each column, that changed most."""
        first: dict[str, Part] = {}
        for part in self.parts:
            first.setdefault(part.column, part)
        return list(first.values())

    def _words(self, change: Change) -> str:
        facts = metric_facts(change.metric)
        percent = "%" if facts.percent else ""
        numbers = [
            f"{facts.scale * one:.{1 if facts.percent else 3}f}{percent}"
            for one in (change.value, change.others)
        ]
        title = self._title(change)
        return f"{change.kind} {self._when(change)}: {title} {numbers[0]} instead of {numbers[1]}"

    def _title(self, change: Change) -> str:
        return target_facts(change.metric, self.card.target).title

    def _when(self, change: Change) -> str:
        if change.stop == len(self.names):
            return f"since {change.first}"
        return (
            f"on {change.first}" if change.first == change.last else f"from {change.first} to {change.last}"
        )

    def _sentence(self, change: Change) -> str:
        title = self._title(change)
        if not change.significant:
            return f"{title[0].upper()}{title[1:]}: no change is shown ({p_text(change.p_value)})."
        facts = metric_facts(change.metric)
        size = abs(facts.scale * change.difference)
        shown = f"{size:.1f} points" if facts.percent else f"{size:.3f}"
        chance = " with chance taken off" if facts.is_error else ""
        return (
            f"{title[0].upper()}{title[1:]}: {change.kind} {self._when(change)} by {shown}{chance} "
            f"({p_text(change.p_value)})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "states": list(self.names),
            "headline": self.headline,
            "level": self.level,
            "runs_of_states": self.n_places,
            "changes": [change._asdict() for change in self.changes],
            "parts": [part._asdict() for part in self.parts],
            "refit": None
            if self.refit is None
            else {**asdict(self.refit), "is_worthwhile": self.refit.is_worthwhile},
            "target": self.card.target._asdict(),
        }

    def __str__(self) -> str:
        return "\n".join((f"{self.headline}.", *self.sentences))


def find_trend(
    states: Mapping[str, AuditState],
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    target: str | None = None,
    positive: str | int | None = None,
) -> Trend:
    """Find whether, and since when, a model changed over several states, such as one per day.

    A change in calibration error, log-loss or accuracy is sought: a run of consecutive states that differs from all
    others. If all rows come from one source, any change is called in at most ``1 - level`` of cases, whatever the
    number of states. Rows are taken as independent, so a day that is different by its nature is a change.

    Args:
        states: States by name, in the order of time; at least two, of different rows.
        level: Level at which changes are called.
        n_resamples: Simulated series of equal states.
        seed: The same seed gives the same answer.
        target: ``"top"`` or ``"positive"``, as for :func:`equipoise.score`. By default the predicted class; the
            positive class where two classes have clearly unequal frequencies.
        positive: The positive class, by name or number; by default class 1. Naming one means ``target="positive"``.

    Raises:
        DataError: If there are fewer than two states, they share rows, or were summed with other bins or classes.
        SpecError: If the target does not fit the classes, or a state keeps too little for it.

    Example:
        >>> from equipoise import Predictions
        >>> def day(p, share):
        ...     return AuditState.of(Predictions(probs=[p] * 400, labels=[1] * share + [0] * (400 - share)))
        >>> states = {"mon": day(0.7, 280), "tue": day(0.69, 276), "wed": day(0.71, 180)}
        >>> find_trend(states, n_resamples=99).changes[0].first
        'wed'
    """
    check_settings(ScoreSettings(level=level, n_resamples=n_resamples, seed=seed), where=_WHERE)
    if len(states) < 2:
        raise DataError(f"{_WHERE}: expected two states or more, got {len(states)}. Give one state per time.")
    parts = {name: _without_groups(state) for name, state in states.items()}
    pooled = merge_states(parts)
    card = audit(
        pooled, level=level, n_resamples=n_resamples, seed=seed, target=target, positive=positive
    ).card
    if card.target.kind == "classwise":
        raise SpecError(f"{_WHERE}: expected target 'top' or 'positive', got 'classwise'. Name one of them.")
    card = card.event or card
    plain = [part.calibration for part in parts.values()]
    events, groups = plain, [state.groups for state in states.values()]
    if card.target.kind == "positive":
        events = [part.event.calibration for part in parts.values() if part.event is not None]
        groups = [state.event.groups for state in states.values() if state.event is not None]
    sources = {"ece": events, "nll": plain, "accuracy": plain}
    known = [key for key in _METRICS if key in card.scores]
    settings = {"n_resamples": n_resamples, "seed": seed}
    found = [find_changes(sources[key], key, **settings) for key in known]
    p_values = holm(np.array([p_value for *_, p_value in found]))
    names = tuple(states)
    changes = tuple(
        _change(key, place, sources[key], names, card.target, float(p_value), level)
        for key, (place, _), p_value in zip(known, found, p_values, strict=True)
    )
    first = next((change for change in changes if change.significant), None)
    lasting = first is not None and first.stop == len(names)
    return Trend(
        names=names,
        changes=changes,
        card=card,
        level=level,
        n_places=len(_runs([state.effective_samples for state in plain])),
        parts=() if first is None else changed_parts(events, groups, (first.start, first.stop), level=level),
        refit=refit_gain(
            events, names, first.start if first is not None and lasting else len(names) // 2, level=level
        ),
    )


def _without_groups(state: AuditState) -> AuditState:
    event = None if state.event is None else replace(state.event, groups={})
    return replace(state, groups={}, refused={}, event=event)


def _change(
    key: str,
    place: tuple[int, int],
    states: Sequence[CalibrationState],
    names: Sequence[str],
    target: Target,
    p_value: float,
    level: float,
) -> Change:
    start, stop = place
    sums = np.stack([_cells(state) for state in states])
    inside, whole = sums[start:stop].sum(axis=0), sums.sum(axis=0)
    value, others = (float(_read(key, part, chance=False)) for part in (inside, whole - inside))
    difference = float(_read(key, inside) - _read(key, whole - inside))
    # Where the others are better by as much, these are worse.
    worse = metric_facts(key).badness(difference) > metric_facts(key).badness(0.0)
    return Change(
        metric=key,
        target=target.label if target != TOP else "top",
        kind="worse" if worse else "better",
        first=names[start],
        last=names[stop - 1],
        start=start,
        stop=stop,
        others=others,
        value=value,
        difference=difference,
        p_value=p_value,
        significant=p_value < 1 - level,
    )


class _Found(NamedTuple):
    place: tuple[int, int]
    p_value: float


def find_changes(
    states: Sequence[CalibrationState], metric: str, *, n_resamples: int = 1000, seed: int = 0
) -> _Found:
    """Return the run of states that differs most from the others, and how often equal states differ as much.

    Args:
        states: In the order of time.
        metric: ``"ece"``, ``"nll"`` or ``"accuracy"``.
        n_resamples: Simulated series of equal states.
        seed: Random seed of the simulation.

    Returns:
        Numbers of the first state of the run and of that after its last, and the p-value.

    Example:
        >>> def day(share):
        ...     state = CalibrationState(2)
        ...     state.update(probs=[0.8] * 500, labels=[1] * round(500 * share) + [0] * round(500 * (1 - share)))
        ...     return state
        >>> place, p_value = find_changes([day(0.8), day(0.8), day(0.6)], "ece", n_resamples=99)
        >>> place, p_value < 0.05
        ((2, 3), True)
    """
    places = _runs([state.effective_samples for state in states])
    observed = np.stack([_cells(state) for state in states])[None]
    pooled = np.sum([state.arrays.cells for state in states], axis=0)
    sizes = [max(1, round(state.effective_samples)) for state in states]
    rng = numpy_generator(seed, "trend", metric)
    step = max(1, _BLOCK // (len(states) * observed[0, 0].size))
    drawn = np.concatenate(
        [
            _differences(metric, _simulated(pooled, sizes, min(step, n_resamples - start), rng), places)
            for start in range(0, n_resamples, step)
        ]
    )
    spread = np.maximum(drawn.std(axis=0), np.finfo(np.float64).tiny)
    scores = np.abs(_differences(metric, observed, places)[0]) / spread
    best = int(np.argmax(scores))
    largest = np.abs(drawn / spread).max(axis=1)
    p_value = (1 + np.count_nonzero(largest >= scores[best] * (1 - 1e-9))) / (1 + n_resamples)
    return _Found(places[best], float(p_value))


def _runs(sizes: Sequence[float]) -> list[tuple[int, int]]:
    """Return the runs of states that are held against the others.

    A run that begins with the first state is the rest of another. Runs of few rows, and all but few, are left out: the
    scatter of their numbers is not known well enough. If all have few rows, only the largest is kept.
    """
    n, until = len(sizes), np.concatenate([[0.0], np.cumsum(sizes)])
    found = [
        (start, stop) for start in range(1, n) for stop in range(start + 1 if n <= _MOST_STATES else n, n + 1)
    ]
    inside = {place: until[place[1]] - until[place[0]] for place in found}
    smaller = {place: min(rows, until[-1] - rows) for place, rows in inside.items()}
    kept = [place for place in found if smaller[place] >= _FEWEST_ROWS]
    return kept or [max(found, key=lambda place: smaller[place])]


def _cells(state: CalibrationState) -> Array:
    """Return weight, confidence and NLL by bin and correctness, of as many rows as the weights are worth."""
    cells = state.arrays.cells[..., [0, 1, 3]]
    scaled: Array = cells * (state.effective_samples / max(state.total_weight, np.finfo(np.float64).tiny))
    return scaled


def _simulated(pooled: Array, sizes: Sequence[int], n: int, rng: np.random.Generator) -> Array:
    """Draw states of these sizes from the pooled rows, ``(n, states, bins, 2, 3)``."""
    weight = pooled[..., 0].reshape(-1)
    share = weight / weight.sum()
    counts = np.stack([rng.multinomial(size, share, size=n) for size in sizes], axis=1).astype(np.float64)
    drawn = np.empty((*counts.shape, 3))
    drawn[..., 0] = counts
    for column, first in ((1, 1), (2, 3)):
        mean, square = (
            np.divide(pooled[..., one].reshape(-1), weight, out=np.zeros_like(weight), where=weight > 0)
            for one in (first, first + 1)
        )
        noise = np.sqrt(np.maximum(square - mean**2, 0) * counts) * rng.standard_normal(counts.shape)
        drawn[..., column] = counts * mean + noise
    return drawn.reshape(n, len(sizes), *pooled.shape[:2], 3)


def _differences(metric: str, sums: Array, places: Sequence[tuple[int, int]]) -> Array:
    """Return runs of states minus the others, ``(n, places)``, from sums ``(n, states, bins, 2, 3)``."""
    whole = sums.sum(axis=1)
    until = np.concatenate([np.zeros_like(whole)[:, None], np.cumsum(sums, axis=1)], axis=1)
    found = []
    for start, stop in places:
        inside = until[:, stop] - until[:, start]
        found.append(_read(metric, inside) - _read(metric, whole - inside))
    return np.stack(found, axis=1)


def _read(metric: str, sums: Array, *, chance: bool = True) -> Array:
    """Return a metric of sums ``(..., bins, 2, 3)``; a calibration error with chance taken off, if asked."""
    total = np.maximum(sums[..., 0].sum(axis=(-1, -2)), np.finfo(np.float64).tiny)
    if metric == "accuracy":
        share: Array = sums[..., 1, 0].sum(axis=-1) / total
        return share
    if metric == "nll":
        mean: Array = sums[..., 2].sum(axis=(-1, -2)) / total
        return mean
    weight, confidence = sums[..., 0].sum(axis=-1), sums[..., 1].sum(axis=-1)
    ece: Array = np.abs(confidence - sums[..., 1, 0]).sum(axis=-1) / total
    if not chance:
        return ece
    mean_confidence = np.divide(confidence, weight, out=np.zeros_like(weight), where=weight > 0)
    variance = weight * np.clip(mean_confidence * (1 - mean_confidence), 0, None)
    # The mean absolute deviation of the hits of a bin: normal, or twice the mean of rare ones.
    expected = np.minimum(np.sqrt(2 / np.pi * variance), 2 * variance).sum(axis=-1) / total
    debiased: Array = np.sqrt(np.maximum(ece**2 - expected**2, 0.0))
    return debiased
