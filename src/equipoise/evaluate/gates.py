"""Gates: does a scorecard keep within limits, and is a model no worse than another?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.evaluate.differences import Difference
from equipoise.evaluate.scorecard import Scorecard
from equipoise.evaluate.verdict import p_text
from equipoise.metrics.facts import MetricFacts, metric_facts
from equipoise.metrics.target import POSITIVE_KEYS, target_facts

__all__ = ["Bound", "Gate", "Limit", "check_limits", "check_not_worse", "check_range", "shown"]

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
        bound: Which number must keep a limit. By default the unfavourable end of the interval, so that a gate passes
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
        ECE is 40.00 %, above the limit of 5 %
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
        passed = row.second_is != "worse"
        if not passed:
            text = f"{title} is worse than the baseline's by {_lost(facts, loss)} ({p_text(row.p_value)})"
        else:
            how = "better than" if row.second_is == "better" else "not shown to be worse than"
            text = f"{title} is {how} the baseline's ({p_text(row.p_value)})"
        return Gate(row.metric, passed, text, row.target)
    if margin < 0:
        raise SpecError(f"gate: the margin of {row.metric} must be 0 or more, got {margin:g}.")
    passed = bool(worst <= margin)
    if worst <= 0:
        return Gate(
            row.metric,
            True,
            f"{title} is no worse than the baseline's, whole {100 * level:g} % interval",
            row.target,
        )
    return Gate(
        row.metric,
        passed,
        f"{title} may be worse than the baseline's by {_lost(facts, worst)} ({100 * level:g} % interval), "
        f"{'within' if passed else 'beyond'} the margin of {_lost(facts, margin, exact=True)}",
        row.target,
    )


def shown(facts: MetricFacts, number: float, *, exact: bool = False) -> str:
    """Return a value of a metric with its unit; a limit as it was given."""
    if not exact:
        return facts.text(number)
    return f"{facts.scale * number:.6g}{' %' if facts.percent else ''}"


def _lost(facts: MetricFacts, number: float, *, exact: bool = False) -> str:
    return shown(facts, number, exact=exact).replace(" %", " points")
