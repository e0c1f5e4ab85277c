"""Gates: do a scorecard and every group keep within limits, and is a model no worse than another?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtri

from equipoise.core.arrays import Array
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate.audit_state import AuditState
from equipoise.evaluate.audits import printable
from equipoise.evaluate.differences import Difference
from equipoise.evaluate.scorecard import Scorecard
from equipoise.evaluate.scoring import are_unequal
from equipoise.evaluate.slices import Slice, SliceSums
from equipoise.evaluate.verdict import p_text
from equipoise.metrics.curve import calibration_errors
from equipoise.metrics.facts import MetricFacts, metric_facts
from equipoise.metrics.intervals import Interval, check_settings, error_interval
from equipoise.metrics.target import POSITIVE_KEYS, TOP, Target, target_facts

__all__ = ["Bound", "Gate", "Limit", "check_groups", "check_limits", "check_not_worse"]

#: Which number is held against a limit: an end of the interval, or the estimate.
Bound: TypeAlias = Literal["low", "value", "high"]


class Limit(NamedTuple):
    """What a metric must not exceed, or not fall below.

    Attributes:
        metric: Its key.
        side: ``"max"`` or ``"min"``.
        number: The limit itself, never in percent.
    """

    metric: str
    side: Literal["max", "min"]
    number: float


class Gate(NamedTuple):
    """A limit and whether it is kept.

    Attributes:
        metric: The metric's key.
        passed: Whether it is kept.
        text: The reason, as a sentence.
        target: What the number is of: ``"top"``, ``"classwise"``, or the probability, such as ``"P(fraud)"``.
        group: The group that was judged, as ``"site=a"``; empty for all rows.
        decided: Whether the rows are enough to decide; a gate on a group that is not decided passes.
    """

    metric: str
    passed: bool
    text: str
    target: str = "top"
    group: str = ""
    decided: bool = True


def check_limits(card: Scorecard, limits: Iterable[Limit], *, bound: Bound | None = None) -> tuple[Gate, ...]:
    """Hold a scorecard against limits.

    A card that judges the probability of class 1 beside the predicted class (``card.event``) must keep every limit in
    both views, so that a rare class cannot pass unseen; name a target to judge one.

    Args:
        card: The scores.
        limits: What must hold.
        bound: Which number must keep a limit. By default the unfavorable end of the interval, so that a gate passes
            when the data show that the limit is kept, not when they are too few to show anything: the upper end for
            ``max``, the lower for ``min``.

    Returns:
        One gate per limit and view, in order.

    Raises:
        SpecError: For an unknown metric, one that these predictions do not give, or a limit that nothing can miss.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[[0.9, 0.1]] * 40, labels=[0] * 20 + [1] * 20))
        >>> print(check_limits(card, [Limit("ece", "max", 0.05)], bound="value")[0].text)
        ECE is 40.00%, above the limit of 5%
    """
    gates = []
    for limit in limits:
        gates.append(_check(card, limit, bound))
        if card.event is not None and limit.metric in POSITIVE_KEYS and limit.metric in card.event.scores:
            gates.append(_check(card.event, limit, bound))
    return tuple(gates)


def _check(card: Scorecard, limit: Limit, bound: Bound | None) -> Gate:
    facts = target_facts(limit.metric, card.target)
    title = facts.title if card.event is None else f"{facts.title} of the predicted class"
    if limit.metric not in card.scores:
        raise SpecError(f"gate: {title} cannot be held to a limit here: {card.why_missing(limit.metric)}.")
    check_range(facts, limit)
    end = bound or ("high" if limit.side == "max" else "low")
    found = getattr(card.scores[limit.metric], end)
    passed = bool(found <= limit.number if limit.side == "max" else found >= limit.number)
    where = {
        "low": f"{title} may be as low as",
        "value": f"{title} is",
        "high": f"{title} may be as high as",
    }[end]
    beyond = "above" if limit.side == "max" else "below"
    return Gate(
        limit.metric,
        passed,
        f"{where} {shown(facts, found)}, {'within' if passed else beyond} the limit of "
        f"{shown(facts, limit.number, exact=True)}",
        card.target.label,
    )


def check_range(facts: MetricFacts, limit: Limit) -> None:
    """Raise for a limit that nothing can miss.

    Raises:
        SpecError: With the range of the metric.
    """
    if not facts.low <= limit.number <= facts.high:
        percent = f" For percent write {limit.metric}={limit.number:g}%." if facts.percent else ""
        raise SpecError(
            f"gate: the limit of {limit.metric} must be a number from {facts.low:g} to {facts.high:g}, which it can "
            f"reach, got {limit.number:g}.{percent if limit.number > 1 else ''}"
        )


def check_not_worse(
    comparison: Iterable[Difference], metrics: Sequence[tuple[str, float | None]], *, level: float = 0.95
) -> tuple[Gate, ...]:
    """Hold a comparison against "not worse than".

    Args:
        comparison: Baseline first, from :func:`equipoise.compare` or :func:`equipoise.evaluate.compare_states`.
        metrics: Keys, each with a margin or None. Without a margin a gate fails if the test shows that the
            second model is worse. With one it fails unless the interval of the difference shows that it is worse by no
            more than that margin.
        level: The level at which the comparison was made, for the sentence.

    Returns:
        One gate per metric, in order.

    Raises:
        SpecError: For a metric that was not compared, or that has no better end.

    Example:
        >>> from equipoise import Predictions, compare
        >>> first = Predictions(probs=[[0.6, 0.4]] * 40, labels=[0] * 24 + [1] * 16)
        >>> second = first.with_scores(probs=[[0.99, 0.01]] * 40)
        >>> print(check_not_worse(compare(first, second), [("ece", None)])[0].text)
        ECE is worse than the baseline's by 39.00 points (p < 0.001)
    """
    known = {row.metric: row for row in comparison if metric_facts(row.metric).better != "zero"}
    for key, _ in metrics:
        metric_facts(key, what="metric to compare", of="card")
    return tuple(
        _not_worse(look_up(key, known, what="metric to compare"), margin, level) for key, margin in metrics
    )


def _not_worse(row: Difference, margin: float | None, level: float) -> Gate:
    facts = metric_facts(row.metric)
    title, loss = row.title, facts.badness(row.difference)
    worst = max(map(facts.badness, (row.low, row.high)))
    if margin is None:
        passed = row.verdict != "worse"
        if not passed:
            text = f"{title} is worse than the baseline's by {_lost(facts, loss)} ({p_text(row.p_value)})"
        else:
            how = "better than" if row.verdict == "better" else "not shown to be worse than"
            text = f"{title} is {how} the baseline's ({p_text(row.p_value)})"
        return Gate(row.metric, passed, text, row.target)
    if margin < 0:
        raise SpecError(f"gate: the margin of {row.metric} must be 0 or more, got {margin:g}.")
    passed = bool(worst <= margin)
    if worst <= 0:
        return Gate(
            row.metric,
            True,
            f"{title} is no worse than the baseline's, whole {100 * level:g}% interval",
            row.target,
        )
    return Gate(
        row.metric,
        passed,
        f"{title} may be worse than the baseline's by {_lost(facts, worst)} ({100 * level:g}% interval), "
        f"{'within' if passed else 'beyond'} the margin of {_lost(facts, margin, exact=True)}",
        row.target,
    )


def shown(facts: MetricFacts, number: float, *, exact: bool = False) -> str:
    """Return a value of a metric with its unit; a limit as it was given."""
    if not exact:
        return facts.text(number)
    return f"{facts.scale * number:.6g}{'%' if facts.percent else ''}"


def _lost(facts: MetricFacts, number: float, *, exact: bool = False) -> str:
    return shown(facts, number, exact=exact).replace("%", " points")


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
    center: float
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
    check_settings(ScoreSettings(level=level, n_resamples=n_resamples, seed=seed), where=_WHERE)
    limits = list(limits)
    for limit in limits:
        if limit.metric not in _METRICS:
            raise SpecError(
                f"gate: {limit.metric!r} is not known for each group. Groups can be held to {', '.join(_METRICS)}."
            )
    views = _views(state, target)
    if not state.groups:
        raise SpecError(
            "there are no groups to judge. Name a column of groups with {by}.",
            where="gate",
            arguments={"by": ""},
        )
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
                    gates.append(_group_gate(limit, facts, title, judged, group, found, bound))
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
    center, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = ((center + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    return Interval(max(0.0, float(low)), min(1.0, float(high)))


def _group_gate(
    limit: Limit,
    facts: MetricFacts,
    title: str,
    target: Target,
    group: _Group,
    found: _Estimate,
    bound: Bound | None,
) -> Gate:
    value, center, ends = found
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
        text += _enough(sign * center, best, worst, most, group.part.n_samples)
    return Gate(limit.metric, bool(passed), text, target.label, group.name, bool(decided))


def _enough(value: float, best: float, worst: float, most: float, n_rows: int) -> str:
    """Return how many rows would decide if the estimate stayed as it is; intervals shrink with the root of the rows."""
    reach, distance = (worst - value, most - value) if value < most else (value - best, value - most)
    if distance <= 0 or reach <= 0:
        return ""
    needed = n_rows * (reach / distance) ** 2
    digits = max(0, int(np.floor(np.log10(max(needed, 1)))) - 1)
    return f"; about {int(np.ceil(needed / 10**digits) * 10**digits):,} would" if needed < 1e9 else ""
