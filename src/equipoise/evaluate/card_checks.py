"""Whether values that were read can be a scorecard or an audit: types, ranges, and numbers that have to agree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.core.bins import check_bins
from equipoise.core.splits import SPLITS
from equipoise.metrics.facts import FACTS
from equipoise.metrics.target import TARGETS

if TYPE_CHECKING:
    from equipoise.evaluate.audit import Audit
    from equipoise.evaluate.differences import Difference
    from equipoise.evaluate.scorecard import Scorecard
    from equipoise.evaluate.slices import Slice

__all__ = ["check_audit", "check_card", "check_difference"]

_ROUNDING = 1e-6


def check_card(card: Scorecard) -> None:
    """Raise unless a scorecard can be one.

    Raises:
        ValueError: With the part that cannot.
    """
    check_bins(card.n_bins, card.closed, where="bins")
    counts = (card.n_samples, card.n_resamples)
    _require(all(_is_count(count) and count > 0 for count in counts), "a count")
    _require(_is_count(card.n_dropped), "the number of rows left out")
    _require(card.n_classes is None or _is_count(card.n_classes), "the number of classes")
    _require(
        type(card.seed) is int and _is_number(card.level) and 0 < card.level < 1, "the level or the seed"
    )
    _require(card.split is None or card.split in SPLITS, "the split")
    texts = [card.fingerprint, card.consistency.metric, *card.notes, *card.missing, *card.missing.values()]
    texts += [part for caution in card.cautions for part in caution]
    _require(all(type(text) is str for text in texts), "a text")
    _require(not set(card.missing) & set(card.scores), "a score that is both known and missing")
    for key, score in card.scores.items():
        low, high = (FACTS[key].low, FACTS[key].high) if key in FACTS else (-math.inf, math.inf)
        inside = _are_numbers(score[:3]) and all(
            low - _ROUNDING <= one <= high + _ROUNDING for one in score[:3]
        )
        _require(inside and score.low <= score.high and _is_chance(score.p_value), f"score {key!r}")
    _check_target(card)
    test = card.consistency
    _require(_are_numbers(test[1:]) and all(0 <= one <= 1 for one in test[1:]), "the consistency test")
    _require(test.metric == "ece" and test.value == card.scores["ece"].value, "the consistency test")
    _check_curve(card)


def _check_target(card: Scorecard) -> None:
    kind, positive, name = card.target
    _require(kind in TARGETS and type(name) is str, "the target")
    _require(
        positive is None if kind != "positive" else type(positive) is int and positive in (0, 1), "the target"
    )
    if card.event is not None:
        same = (card.target.kind, card.event.target.kind, card.event.event) == ("top", "positive", None)
        _require(same and card.event.n_samples == card.n_samples, "the scorecard of the event")


def _check_curve(card: Scorecard) -> None:
    curve, n = card.curve, card.n_bins
    weight, confidence, outcome = curve.weight, curve.confidence_sum, curve.outcome_sum
    _require(len(weight) == n and np.isfinite([weight, confidence, outcome]).all(), "the bins")
    slack = _ROUNDING * weight + 1e-9 * weight.sum() if (weight >= 0).all() and weight.any() else -1.0
    inside = (confidence >= np.arange(n) / n * weight - slack - _ROUNDING * weight) & (
        confidence <= np.arange(1, n + 1) / n * weight + slack + 1e-5 * weight
    )
    hits = (outcome >= -slack) & (outcome <= weight + slack)
    _require((inside & hits).all(), "the sums of the bins")
    known = {"ece": curve.expected_error(), "accuracy": float(outcome.sum() / weight.sum())}
    if card.target.kind != "top":
        # The bins hold the frequency of a class, and over all classes each class has an error of its own.
        known = {"ece": known["ece"]} if card.target.kind == "positive" else {}
    for key, value in known.items():
        _require(abs(card.scores[key].value - value) <= _ROUNDING, f"score {key!r} and the bins")


def check_audit(audit: Audit) -> None:
    """Raise unless an audit can be one; its scorecard was checked before.

    Raises:
        ValueError: With the part that cannot.
    """
    for slices in (audit.classes, *audit.groups.values()):
        for part in slices:
            _check_slice(part)
        # Over all classes every slice holds all rows.
        rows = [part.n_samples for part in slices] or [0]
        most = max(rows) if audit.card.target.kind == "classwise" else sum(rows)
        _require(most <= audit.card.n_samples, "the rows of the slices")
    _require(all(type(name) is str for name in audit.groups), "the name of a group")
    _require(all(type(text) is str for caution in audit.cautions for text in caution), "a caution")
    columns = list(audit.risk)
    shape = np.shape(columns[0])
    _require(len(shape) == 1 and shape[0] > 0 and all(np.shape(one) == shape for one in columns), "the risk")
    table = np.array(columns, np.float64)
    _require(((table >= -_ROUNDING) & (table <= 1 + _ROUNDING)).all(), "the risk")
    _require((np.diff(table[0]) >= 0).all(), "the coverage")


def check_difference(row: Difference) -> None:
    """Raise unless a difference of two models can be one.

    Raises:
        ValueError: With the part that cannot.
    """
    numbers = (row.first, row.second, row.difference, row.low, row.high, row.p_value)
    _require(type(row.metric) is str and all(type(one) in (int, float) for one in numbers), "a difference")
    # A metric may be undefined for a run, and NaN fails no comparison.
    apart = abs(row.second - row.first - row.difference) > _ROUNDING * (1 + abs(row.first))
    _require(not (apart or row.low > row.high or row.p_value < 0 or row.p_value > 1), "a difference")
    _require(row.verdict in ("first better", "second better", "tie"), "a verdict")


def _check_slice(part: Slice) -> None:
    where = f"slice {str(part.name)[:40]!r}"
    numbers = part[2:]
    _require(type(part.name) is str and _is_count(part.n_samples) and part.n_samples > 0, where)
    _require(_are_numbers(numbers) and all(-1 <= number <= 1 + _ROUNDING for number in numbers), where)
    _require(min(part.accuracy, part.confidence, part.ece, part.p_value) >= -_ROUNDING, where)
    _require(abs(part.confidence - part.accuracy - part.gap) <= _ROUNDING and part.low <= part.high, where)


def _is_chance(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= 1)


def _are_numbers(values: Any) -> bool:
    return all(map(_is_number, values))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _require(condition: Any, what: str) -> None:
    if not condition:
        raise ValueError(f"inconsistent: {what}")
