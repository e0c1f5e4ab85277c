"""Gates for every group: does each of them keep within limits, or are its rows too few to decide?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from equipoise.core.argument_names import argument
from equipoise.core.arrays import Array
from equipoise.core.errors import SpecError
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.audit_state import AuditState
from equipoise.evaluate.audit_text import printable
from equipoise.evaluate.gates import Bound, Gate, Limit, check_range, shown
from equipoise.evaluate.scorecard import are_unequal
from equipoise.evaluate.slices import Slice, SliceSums
from equipoise.metrics.curve import calibration_errors
from equipoise.metrics.facts import MetricFacts
from equipoise.metrics.intervals import Interval, check_resamples, error_interval
from equipoise.metrics.target import TOP, Target, target_facts

__all__ = ["check_groups"]

_WHERE = "check_groups"
#: Metrics that the sums of a group give, and the least that each can be if the mean gap has these ends.
_FLOORS = {
    "ece": lambda low, high: max(abs(low), abs(high)),
    "mce": lambda low, high: max(abs(low), abs(high)),
    "rms_ce": lambda low, high: max(abs(low), abs(high)),
    "ece_over": lambda low, high: max(0.0, high),
    "ece_under": lambda low, high: max(0.0, -low),
}
_METRICS = ("accuracy", *_FLOORS, "confidence_gap")
_MOST_RESAMPLES = 20_000


class _Group(NamedTuple):
    """Sums of one group: its name, rows, gap with interval, and weight, confidence and hits by bin."""

    name: str
    part: Slice
    bins: Array
    effective: float


class _Estimate(NamedTuple):
    """A metric of a group, the same with chance taken off, and its interval."""

    value: float
    centre: float
    ends: Interval


def check_groups(
    state: AuditState,
    limits: Iterable[Limit],
    *,
    bound: Bound | None = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    target: Target | None = None,
    inflation: float = 1.0,
) -> tuple[Gate, ...]:
    """Hold every group against limits.

    Intervals of all groups hold together: each has the level ``1 - (1 - level) / m`` for m groups (Bonferroni). A group
    passes if its interval is within the limit, and fails if its interval is beyond it. Otherwise its rows are too few
    to decide: the gate passes with ``decided=False``, and its text says how many rows would be enough.

    Args:
        state: The sums of an audit with groups.
        limits: What must hold, for accuracy, ``ece``, ``ece_over``, ``ece_under``, ``mce``, ``rms_ce`` or
            ``confidence_gap``.
        bound: Which number decides alone: an end of the interval, or the estimate; nothing is undecided then.
        level: Level at which all groups are judged together.
        n_resamples: Resamples behind intervals, at least; many groups need more.
        seed: The same seed gives the same answer.
        target: What is judged, as :meth:`AuditState.find_target` gives it. By default the predicted class; the
            probability of class 1 too where two classes have clearly unequal frequencies.
        inflation: By how much the variance of a gap is larger than for independent rows.

    Returns:
        One gate per limit and group.

    Raises:
        SpecError: If there are no groups, or a metric that their sums do not give.

    Example:
        >>> from equipoise import Predictions
        >>> site = ["a"] * 400 + ["b"] * 400 + ["c"] * 9
        >>> labels = [1, 0] * 200 + [1] * 360 + [0] * 40 + [1] * 8 + [0]
        >>> state = AuditState.of(Predictions(probs=[0.9] * 809, labels=labels, groups={"site": site}), by=["site"])
        >>> gates = check_groups(state, [Limit("ece", "max", 0.1)], target=TOP)
        >>> [(gate.group, gate.passed, gate.decided) for gate in gates]
        [('site=a', False, True), ('site=b', True, True), ('site=c', True, False)]
    """
    check_resamples(n_resamples, where=_WHERE)
    limits = list(limits)
    for limit in limits:
        if limit.metric not in _METRICS:
            raise SpecError(
                f"gate: {limit.metric!r} is not known for each group. Groups can be held to {', '.join(_METRICS)}."
            )
    views = _views(state, target)
    if not state.groups:
        raise SpecError(f"gate: there are no groups to judge. Name a column of groups with {argument('by')}.")
    n_groups = sum(len(sums.parts()[0]) for _, groups in views for sums in groups.values())
    strict = 1 - (1 - level) / n_groups
    n_resamples = min(max(n_resamples, round(40 / (1 - strict))), _MOST_RESAMPLES)
    gates = []
    for limit in limits:
        for judged, groups in views:
            facts = target_facts(limit.metric, judged)
            check_range(facts, limit)
            title = (
                facts.title
                if len(views) == 1 or judged.kind != "top"
                else f"{facts.title} of the predicted class"
            )
            for column, sums in groups.items():
                for group in _groups_of(column, sums, strict, inflation):
                    rng = numpy_generator(seed, "group", group.name)
                    found = _interval(limit.metric, facts, group, strict, n_resamples, rng)
                    gates.append(_judged(limit, facts, title, judged, group, found, bound))
    return tuple(gates)


def _views(state: AuditState, target: Target | None) -> Sequence[tuple[Target, Mapping[str, SliceSums]]]:
    if target is not None and target.kind == "classwise":
        raise SpecError("gate: groups need target 'top' or 'positive', got 'classwise'.")
    if state.event is not None and (target.kind == "positive" if target else are_unequal(state.calibration)):
        place = state.event.positive
        event = Target("positive", place, state.class_names[place] if state.class_names else str(place))
        both = [(TOP, state.groups), (event, state.event.groups)]
        return both if target is None else both[1:]
    return [(TOP, state.groups)]


def _groups_of(column: str, sums: SliceSums, level: float, inflation: float) -> Iterator[_Group]:
    names, parts = sums.parts()
    known = {part.name: part for part in sums.slices(level=level, inflation=inflation)}
    for name in sorted(known):  # without those whose rows all have weight zero
        place = names.index(name)
        bins = parts["bins"][place]
        effective = float(bins[:, 0].sum() ** 2 / parts["squares"][place, 0] / inflation)
        yield _Group(f"{column}={name}", known[name], bins, effective)


def _interval(
    metric: str, facts: MetricFacts, group: _Group, level: float, n_resamples: int, rng: np.random.Generator
) -> _Estimate:
    """Return a metric of a group and its interval, which a few rows that are all right do not make narrow."""
    part = group.part
    if metric == "confidence_gap":
        return _Estimate(part.gap, part.gap, Interval(part.low, part.high))
    if metric == "accuracy":
        return _Estimate(part.accuracy, part.accuracy, _wilson(part.accuracy, group.effective, level))
    weight, confidence, correct = np.maximum(group.bins, 0.0).T
    value = float(calibration_errors(weight, confidence, correct)[metric])
    mean = np.divide(confidence, weight, out=np.zeros_like(weight), where=weight > 0)
    n_rows = max(1, round(group.effective))
    cells = np.stack([np.maximum(weight - correct, 0.0), correct], axis=1).reshape(-1)
    counts = rng.multinomial(n_rows, cells / cells.sum(), size=n_resamples).reshape(n_resamples, -1, 2)
    drawn = calibration_errors(counts.sum(-1), counts.sum(-1) * mean, counts[..., 1])[metric]
    expected = np.round(weight * n_rows / weight.sum()).astype(np.int64)
    hits = rng.binomial(expected, np.clip(mean, 0, 1), size=(n_resamples, len(expected)))
    calibrated = calibration_errors(np.broadcast_to(expected, hits.shape), expected * mean + 0 * hits, hits)[
        metric
    ]
    low, high = error_interval(value, drawn, calibrated, level=level, largest=facts.high)
    # The mean gap is known with a margin that holds for few rows too, and no error is smaller than it.
    floor = float(_FLOORS[metric](part.low, part.high))
    by_chance = float(calibrated.mean())
    debiased = float(np.sqrt(max(0.0, value**2 - by_chance**2)))
    return _Estimate(value, debiased, Interval(low, min(max(high, floor), facts.high)))


def _wilson(share: float, n: float, level: float) -> Interval:
    z = float(ndtri((1 + level) / 2))
    centre, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = ((centre + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    return Interval(max(0.0, float(low)), min(1.0, float(high)))


def _judged(
    limit: Limit,
    facts: MetricFacts,
    title: str,
    target: Target,
    group: _Group,
    found: _Estimate,
    bound: Bound | None,
) -> Gate:
    value, centre, ends = found
    sign = 1.0 if limit.side == "max" else -1.0
    best, worst = (sign * end for end in (ends if limit.side == "max" else ends[::-1]))
    most, name = sign * limit.number, printable(group.name)
    where = f"{title} of {name}" if target.kind == "top" else f"{title} in {name}"
    number, beyond = shown(facts, limit.number, exact=True), "above" if limit.side == "max" else "below"
    low, high = (shown(facts, end) for end in ends)
    interval = f"{where} is {shown(facts, value)}, {low} to {high}"
    if bound is not None:
        held = sign * {"low": ends.low, "value": value, "high": ends.high}[bound]
        passed, decided = held <= most, True
    else:
        passed, decided = best <= most, worst <= most or best > most
    if decided:
        text = f"{interval}: {'within' if passed else beyond} the limit of {number} ({group.part.n_samples:,} rows)"
    else:
        text = f"{interval}: {group.part.n_samples:,} rows do not decide about the limit of {number}"
        text += _enough(sign * centre, best, worst, most, group.part.n_samples)
    return Gate(limit.metric, bool(passed), text, target.label, group.name, bool(decided))


def _enough(value: float, best: float, worst: float, most: float, n_rows: int) -> str:
    """Return how many rows would decide if the estimate stayed as it is; intervals shrink with the root of the rows."""
    reach, distance = (worst - value, most - value) if value < most else (value - best, value - most)
    if distance <= 0 or reach <= 0:
        return ""
    needed = n_rows * (reach / distance) ** 2
    digits = max(0, int(np.floor(np.log10(max(needed, 1)))) - 1)
    return f"; about {int(np.ceil(needed / 10**digits) * 10**digits):,} would" if needed < 1e9 else ""
