"""Whether values that were read can be a scorecard, an audit, a difference, or the sums of an audit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.bins import check_bins
from equipoise.core.splits import SPLITS
from equipoise.evaluate.cautions import InputDiagnostics
from equipoise.evaluate.slices import SliceSums
from equipoise.metrics.facts import FACTS
from equipoise.metrics.state import CalibrationState
from equipoise.metrics.target import TARGETS

if TYPE_CHECKING:
    from equipoise.evaluate.audit_state import AuditState
    from equipoise.evaluate.audits import Audit
    from equipoise.evaluate.differences import Difference
    from equipoise.evaluate.scorecard import Scorecard
    from equipoise.evaluate.slices import Slice

__all__ = ["check_audit", "check_card", "check_difference", "check_state"]

_CARD_ROUNDING = 1e-6


def check_card(card: Scorecard) -> None:
    """Raise unless a scorecard can be one.

    Raises:
        ValueError: With the part that cannot.
    """
    check_bins(card.n_bins, card.closed, where="bins")
    counts = (card.n_samples, card.n_resamples)
    _require_consistent(all(_is_count(count) and count > 0 for count in counts), "a count")
    _require_consistent(_is_count(card.n_dropped), "the number of rows left out")
    _require_consistent(card.n_classes is None or _is_count(card.n_classes), "the number of classes")
    _require_consistent(
        type(card.seed) is int and _is_number(card.level) and 0 < card.level < 1, "the level or the seed"
    )
    _require_consistent(card.split is None or card.split in SPLITS, "the split")
    texts = [card.fingerprint, card.consistency.metric, *card.notes, *card.missing, *card.missing.values()]
    texts += [part for caution in card.cautions for part in caution]
    _require_consistent(all(type(text) is str for text in texts), "a text")
    _require_consistent(not set(card.missing) & set(card.scores), "a score that is both known and missing")
    for key, score in card.scores.items():
        low, high = (FACTS[key].low, FACTS[key].high) if key in FACTS else (-math.inf, math.inf)
        inside = _are_numbers(score[:3]) and all(
            low - _CARD_ROUNDING <= one <= high + _CARD_ROUNDING for one in score[:3]
        )
        _require_consistent(
            inside and score.low <= score.high and _is_chance(score.p_value), f"score {key!r}"
        )
    _check_target(card)
    test = card.consistency
    _require_consistent(
        _are_numbers(test[1:]) and all(0 <= one <= 1 for one in test[1:]), "the consistency test"
    )
    _require_consistent(
        test.metric == "ece" and test.value == card.scores["ece"].value, "the consistency test"
    )
    _check_curve(card)


def _check_target(card: Scorecard) -> None:
    kind, positive, name = card.target
    _require_consistent(kind in TARGETS and type(name) is str, "the target")
    _require_consistent(
        positive is None if kind != "positive" else type(positive) is int and positive in (0, 1), "the target"
    )
    if card.event is not None:
        same = (card.target.kind, card.event.target.kind, card.event.event) == ("top", "positive", None)
        _require_consistent(same and card.event.n_samples == card.n_samples, "the scorecard of the event")


def _check_curve(card: Scorecard) -> None:
    curve, n = card.curve, card.n_bins
    weight, confidence, outcome = curve.weight, curve.confidence_sum, curve.outcome_sum
    _require_consistent(len(weight) == n and np.isfinite([weight, confidence, outcome]).all(), "the bins")
    slack = _CARD_ROUNDING * weight + 1e-9 * weight.sum() if (weight >= 0).all() and weight.any() else -1.0
    inside = (confidence >= np.arange(n) / n * weight - slack - _CARD_ROUNDING * weight) & (
        confidence <= np.arange(1, n + 1) / n * weight + slack + 1e-5 * weight
    )
    hits = (outcome >= -slack) & (outcome <= weight + slack)
    _require_consistent((inside & hits).all(), "the sums of the bins")
    known = {"ece": curve.expected_error(), "accuracy": float(outcome.sum() / weight.sum())}
    if card.target.kind != "top":
        # The bins hold the frequency of a class, and over all classes each class has an error of its own.
        known = {"ece": known["ece"]} if card.target.kind == "positive" else {}
    for key, value in known.items():
        _require_consistent(
            abs(card.scores[key].value - value) <= _CARD_ROUNDING, f"score {key!r} and the bins"
        )


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
        _require_consistent(most <= audit.card.n_samples, "the rows of the slices")
    _require_consistent(all(type(name) is str for name in audit.groups), "the name of a group")
    _require_consistent(all(type(text) is str for caution in audit.cautions for text in caution), "a caution")
    columns = list(audit.risk)
    shape = np.shape(columns[0])
    _require_consistent(
        len(shape) == 1 and shape[0] > 0 and all(np.shape(one) == shape for one in columns), "the risk"
    )
    table = np.array(columns, np.float64)
    _require_consistent(((table >= -_CARD_ROUNDING) & (table <= 1 + _CARD_ROUNDING)).all(), "the risk")
    _require_consistent((np.diff(table[0]) >= 0).all(), "the coverage")


def check_difference(row: Difference) -> None:
    """Raise unless a difference of two models can be one.

    Raises:
        ValueError: With the part that cannot.
    """
    numbers = (row.before, row.after, row.difference, row.low, row.high, row.p_value)
    _require_consistent(
        type(row.metric) is str and all(type(one) in (int, float) for one in numbers), "a difference"
    )
    # A metric may be undefined for a run, and NaN fails no comparison.
    apart = abs(row.after - row.before - row.difference) > _CARD_ROUNDING * (1 + abs(row.before))
    _require_consistent(
        not (apart or row.low > row.high or row.p_value < 0 or row.p_value > 1), "a difference"
    )
    _require_consistent(row.verdict in ("better", "worse", "tie"), "a verdict")


def _check_slice(part: Slice) -> None:
    where = f"slice {str(part.name)[:40]!r}"
    numbers = part[2:]
    _require_consistent(type(part.name) is str and _is_count(part.n_samples) and part.n_samples > 0, where)
    _require_consistent(
        _are_numbers(numbers) and all(-1 <= number <= 1 + _CARD_ROUNDING for number in numbers), where
    )
    _require_consistent(min(part.accuracy, part.confidence, part.ece, part.p_value) >= -_CARD_ROUNDING, where)
    gap_fits = abs(part.confidence - part.accuracy - part.gap) <= _CARD_ROUNDING
    _require_consistent(gap_fits and part.low <= part.high, where)


def _is_chance(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= 1)


def _are_numbers(values: Any) -> bool:
    return all(map(_is_number, values))


def _require_consistent(condition: Any, what: str) -> None:
    if not condition:
        raise ValueError(f"inconsistent: {what}")


#: Counts above this are not whole numbers in float64 any more.
_MOST_ROWS = 1 << 53
#: How far sums of the same numbers, in another order or precision, may differ per row.
_ROUNDING = 1e-5
#: Some sums are differences of others: how far each may be off, as a share of all.
_DIFFERENCE = 1e-9
#: How far the probabilities of a row may be from a distribution.
_TOLERANCE = 1e-2


def check_state(state: AuditState) -> None:
    """Raise unless all sums of an audit can be of the same rows.

    Raises:
        ValueError: With the part that cannot.
    """
    _check_form(state)
    with np.errstate(all="ignore"):  # what overflows fails a comparison
        weighted = bool(state.diagnostics.form["weighted"])
        _check_confidence(state.calibration, weighted=weighted)
        _check_scores(state.calibration, weighted=weighted)
        _check_diagnostics(state.diagnostics, state.calibration)
        if state.diagnostics.form["kind"] != "confidence":
            _check_slices(state.classes, state.calibration, "predicted classes", weighted=weighted)
        for name, sums in state.groups.items():
            _check_slices(sums, state.calibration, f"groups of {name!r}", weighted=weighted)
        if state.diagnostics.form["kind"] != "confidence":
            _check_counts_by_class(state, weighted=weighted)
        _check_event(state, weighted=weighted)
    _require(state.identity.n_rows == state.n_samples, "sources and sums hold different numbers of rows")


def _check_form(state: AuditState) -> None:
    plain, _ = state.diagnostics.parts()
    kind, n_classes, names = plain["kind"], plain["n_classes"], state.class_names
    _require(kind in ("logits", "probs", "top1", "confidence"), "the kind of predictions is unknown")
    if kind == "confidence":
        counted = [*state.diagnostics.parts()[1].values(), *state.classes.parts()[1].values()]
        _require(names is None and n_classes is None, "classes are known of confidences without a class")
        _require(
            not any(part.any() for part in counted), "classes are counted of confidences without a class"
        )
    _require(plain["split"] is None or plain["split"] in SPLITS, "the split is unknown")
    _require(n_classes is None or _is_count(n_classes), "the number of classes is not a number")
    _require(not plain["one_column"] or n_classes == 2, "one column is for two classes")
    _require(not plain["is_twice"] or kind == "probs", "only probabilities can be a softmax of probabilities")
    expected = n_classes if kind in ("logits", "probs") else 0
    _require(state.calibration.n_classes == expected, "the sums are of another number of classes")
    _require(_is_count(state.n_dropped), "the number of rows left out is not a number")
    flags = (state.optional, plain["one_column"], plain["weighted"], plain["is_twice"])
    _require(all(type(flag) is bool for flag in flags), "a flag is neither true nor false")
    texts = [*state.groups, *state.refused, *state.refused.values(), *(names or ())]
    for sums in (state.classes, *state.groups.values()):
        texts += sums.parts()[0]
    _require(all(type(text) is str for text in texts), "a name is not text")
    if names is not None:
        _require(n_classes is None or len(names) == n_classes, "class names do not fit the number of classes")
    known = len(names) if names is not None else n_classes
    predicted = state.classes.parts()[0]
    _require(all(name.isascii() and name.isdigit() for name in predicted), "a class is not a number")
    _require(known is None or all(int(name) < known for name in predicted), "a class is out of range")


def _check_confidence(state: CalibrationState, *, weighted: bool) -> None:
    sums = state.arrays.parts()
    rows, cells, squares = sums["rows"], sums["cells"], float(sums["squares"][0])
    weight, confidence, squared = cells[..., 0], cells[..., 1], cells[..., 2]
    _require(rows.min() >= 0 and rows.max() <= _MOST_ROWS, "a count of rows is not possible")
    total_rows, total = sum(rows.ravel().tolist()), float(weight.sum())
    _require(0 < total_rows <= _MOST_ROWS, "there are no rows, or too many")
    _require(0 <= int(sums["impossible"][0]) <= total_rows, "more rows are impossible than there are")
    _require(
        (cells >= -_ROUNDING * (1 + weight[..., None])).all() and (weight >= 0).all(), "a sum is negative"
    )
    _require((cells[rows == 0] == 0).all(), "a bin without rows holds sums")
    _require(weighted or (weight == rows).all(), "counts and weights differ")
    low, high = _ends(state.n_bins)
    _require(
        _is_between(confidence, low[:, None], high[:, None], weight), "a mean confidence is outside its bin"
    )
    _check_squares(weight, confidence, squared, "confidences")
    _require(
        (squared <= high[:, None] * confidence + _ROUNDING * weight).all(),
        "squared confidences are too large",
    )
    _require(_is_squares(squares, total, total_rows), "squared weights do not fit the weights")
    _check_sketch(sums["sketch"], weight, confidence)


def _check_sketch(sketch: Array, weight: Array, confidence: Array) -> None:
    mass, mean, right = sketch.T
    total = float(weight.sum())
    slack = _DIFFERENCE * total
    _require((sketch >= -slack).all() and (right <= mass + slack).all(), "the sketch has more hits than rows")
    _require(_is_between(mean, *_ends(len(sketch)), mass), "a confidence is outside its cell of the sketch")
    sums = (float(mass.sum()), float(mean.sum()), float(right.sum()))
    expected = (total, float(confidence.sum()), float(weight[:, 1].sum()))
    for found, one in zip(sums, expected, strict=True):
        _require(abs(found - one) <= _ROUNDING * total, "the sketch and the bins disagree")


def _check_scores(state: CalibrationState, *, weighted: bool) -> None:
    cells, ranks = state.arrays.cells, state.arrays.ranks
    weight, nll, nll_squared, brier, brier_squared = np.moveaxis(cells[..., [0, 3, 4, 5, 6]], -1, 0)
    if state.n_classes == 0:
        _require(not ranks.any(), "ranks of classes are known where only confidences are")
        _check_losses_of_being_right(state, weighted=weighted)
        return
    total, right = float(weight.sum()), float(weight[:, 1].sum())
    _check_squares(weight, nll, nll_squared, "losses")
    _require(
        weighted or (nll_squared <= nll**2 + _TOLERANCE * weight).all(), "squares of losses are too large"
    )
    _check_squares(weight, brier, brier_squared, "Brier scores")
    _require((brier <= (2 + _TOLERANCE) * weight).all(), "a Brier score is above 2")
    _require(
        (brier_squared <= (2 + _TOLERANCE) * brier + _ROUNDING * weight).all(), "a Brier score is above 2"
    )
    low, high = _ends(state.n_bins)
    slack = _TOLERANCE * weight
    with np.errstate(divide="ignore"):
        # A row that is right has the probability of its bin; one that is wrong gives its class at most the rest.
        least = np.stack([-np.log(np.minimum(high, 1 - low)), -np.log(high)], axis=1)
        most = -np.log(low)
    _require((nll >= least * weight - slack).all(), "a loss is too small for its confidence")
    _require(
        (nll[1:, 1] <= (most[1:] * weight[1:, 1]) + slack[1:, 1]).all(),
        "a loss is too large for its confidence",
    )
    _require((ranks >= 0).all() and _is_close(ranks.sum(), total, total), "ranks and bins disagree")
    _require(_is_close(ranks[0], right, total), "ranks and hits disagree")
    _require(not ranks[state.n_classes :].any(), "a rank is beyond the number of classes")
    _check_classwise(state.arrays.classwise, total)


def _check_losses_of_being_right(state: CalibrationState, *, weighted: bool) -> None:
    """Raise unless the losses of confidences fit them."""
    cells = state.arrays.cells
    weight, confidence, squared, nll, nll_squared, brier, brier_squared = np.moveaxis(cells, -1, 0)
    total = float(weight.sum())
    expected = np.stack([squared[:, 0], squared[:, 1] - 2 * confidence[:, 1] + weight[:, 1]], axis=1)
    _require(
        (brier <= expected + _ROUNDING * (weight + total)).all(),
        "a Brier score is too large for its confidence",
    )
    _check_squares(weight, nll, nll_squared, "losses")
    _check_squares(weight, brier, brier_squared, "Brier scores")
    _require((brier_squared <= brier + _ROUNDING * weight).all(), "a Brier score is above 1")
    _require((nll >= brier / 2 - _ROUNDING * weight).all(), "a loss is too small for its Brier score")
    most = 88 * weight
    _require(
        (nll <= most).all() and (nll_squared <= 88 * nll + _ROUNDING * weight).all(), "a loss is too large"
    )
    _require(weighted or int(state.arrays.impossible[0]) <= total, "more rows are impossible than there are")


def _check_classwise(table: Array, total: float) -> None:
    weight, probability, positive = np.moveaxis(table, -1, 0)
    slack = _DIFFERENCE * total
    _require(
        (table >= -slack).all() and (positive <= weight + slack).all(), "a class has more hits than rows"
    )
    low, high = _ends(table.shape[1])
    high[-1] += _TOLERANCE
    _require(_is_between(probability, low, high, weight), "a mean probability is outside its bin")
    _require(
        (np.abs(weight.sum(axis=1) - total) <= _ROUNDING * total).all(),
        "a class has other rows than the bins",
    )
    _require(
        abs(probability.sum() - total) <= _TOLERANCE * total,
        "the probabilities of the classes do not sum to 1",
    )
    _require(_is_close(positive.sum(), total, total), "the labels of the classes do not sum to the rows")


def _check_slices(sums: SliceSums, state: CalibrationState, what: str, *, weighted: bool) -> None:
    parts = sums.parts()[1]
    rows, bins, squares = parts["rows"], parts["bins"], parts["squares"]
    cells = state.arrays.cells
    weight, confidence, right = np.moveaxis(bins, -1, 0)
    total = float(cells[..., 0].sum())
    slack = _DIFFERENCE * total
    _require(rows.dtype.kind == "i" and (rows > 0).all(), f"{what}: a slice has no rows")
    _require(sum(rows.tolist()) == state.n_samples, f"{what}: the rows are not those of the bins")
    _require((bins >= -slack).all() and (right <= weight + slack).all(), f"{what}: more hits than rows")
    _require(
        _is_between(confidence, *_ends(state.n_bins), weight), f"{what}: a mean confidence is outside its bin"
    )
    expected = (total, float(cells[..., 1].sum()), float(cells[:, 1, 0].sum()))
    for column, one in zip((weight, confidence, right), expected, strict=True):
        _require(_is_close(column.sum(), one, total), f"{what}: the sums are not those of the bins")
    square, gap, squared_gap = squares.T
    _require(
        _is_close(square.sum(), state.arrays.squares[0], square.sum()),
        f"{what}: weights are not those of the bins",
    )
    by_slice = zip(square.tolist(), weight.sum(axis=1).tolist(), rows.tolist(), strict=True)
    _require(all(_is_squares(*one) for one in by_slice), f"{what}: squared weights do not fit the weights")
    _require((squared_gap <= square * (1 + _ROUNDING)).all(), f"{what}: a gap is above 1")
    _check_squares(square, np.abs(gap), squared_gap, f"gaps of {what}")
    gaps = (confidence - right).sum(axis=1)
    low, high = _ends(state.n_bins)
    least = (right * (1 - high) ** 2 + (weight - right) * low**2).sum(axis=1)
    most = (right * (1 - low) ** 2 + (weight - right) * high**2).sum(axis=1)
    rounding = _ROUNDING * rows
    fit = (
        (np.abs(gap - gaps) <= rounding)
        & (squared_gap >= least - rounding)
        & (squared_gap <= most + rounding)
    )
    _require(weighted or fit.all(), f"{what}: gaps and bins disagree")


def _check_diagnostics(diagnostics: InputDiagnostics, state: CalibrationState) -> None:
    plain, counted = diagnostics.parts()
    n, total = state.n_samples, state.total_weight
    right = int(state.arrays.rows[:, 1].sum())
    counts = [plain["n_rows"], plain["correct"], *plain["shifted"]]
    _require(all(_is_count(count) and count <= n for count in counts), "diagnostics: a count is not possible")
    _require(
        plain["n_rows"] == n and plain["correct"] == right, "diagnostics: the rows are not those of the bins"
    )
    numbers = {
        name: plain[name] for name in ("weight", "squares", "confidence", "inner_confidence", "inner_lowest")
    }
    _require(all(map(_is_number, [*numbers.values(), plain["lowest"]])), "diagnostics: a sum is not a number")
    _require(_is_close(plain["weight"], total, total), "diagnostics: weights are not those of the bins")
    squares = float(state.arrays.squares[0])
    _require(_is_close(plain["squares"], squares, squares), "diagnostics: weights are not those of the bins")
    _require(
        0 <= plain["lowest"] <= 1 and 0 <= plain["confidence"] <= n * (1 + _ROUNDING),
        "diagnostics: confidence",
    )
    most = n * (1 + _TOLERANCE * (1 + state.n_classes))
    inner = (plain["inner_confidence"], plain["inner_lowest"])
    _require(all(abs(one) <= most for one in inner), "diagnostics: sums of probabilities before a softmax")
    _require(set(plain["totals"]) <= {1, 100}, "diagnostics: the totals of logits are unknown")
    values = plain["values"]
    _require(
        values is None or (0 < len(values) <= n and _are_confidences(values)), "diagnostics: confidences"
    )
    for name, counts_by_class in counted.items():
        possible = counts_by_class.ndim == 1 and counts_by_class.dtype.kind == "i"
        _require(possible and bool((counts_by_class >= 0).all()), f"diagnostics: `{name}` are not counts")
        _require(sum(counts_by_class.tolist()) <= n, f"diagnostics: `{name}` are more than the rows")


def _check_counts_by_class(state: AuditState, *, weighted: bool) -> None:
    """Raise unless predictions and labels, which are counted by class if all classes are few, agree with the sums."""
    counted = state.diagnostics.parts()[1]
    names, parts = state.classes.parts()
    expected = {"predicted": dict(zip(map(int, names), parts["rows"].tolist(), strict=True))}
    if state.calibration.n_classes and not weighted:
        positive = state.calibration.arrays.classwise[..., 2].sum(1)
        expected["labels"] = dict(enumerate(positive.round().astype(np.int64).tolist()))
    for name, by_class in expected.items():
        found = counted[name].tolist()
        complete = state.calibration.n_classes in range(2, 1 << 20) or sum(found) == state.n_samples
        agrees = all(found[place] == by_class.get(place, 0) for place in range(len(found)))
        if complete:
            _require(
                agrees and sum(found) == state.n_samples, f"diagnostics: `{name}` are not those of the sums"
            )


def _check_event(state: AuditState, *, weighted: bool) -> None:
    """Raise unless the sums of the positive class are of the same rows as the others."""
    event, total = state.event, state.calibration.total_weight
    if event is None:
        return
    _require(type(event.positive) is int and event.positive in (0, 1), "the positive class is unknown")
    _require(state.calibration.n_classes == 2, "a positive class is for two classes")
    sums, names = event.calibration, state.classes.parts()[0]
    _require(sums.n_classes == 0 and sums.n_samples == state.n_samples, "the event has other rows")
    _check_confidence(sums, weighted=weighted)
    _check_scores(sums, weighted=weighted)
    weight, probability, positive = (
        float(part) for part in state.calibration.arrays.classwise[event.positive].sum(0)
    )
    cells = sums.arrays.cells
    found = (float(cells[..., 0].sum()), float(cells[..., 1].sum()), float(cells[:, 1, 0].sum()))
    agree = zip(found, (weight, probability, positive), (_ROUNDING, _TOLERANCE, _ROUNDING), strict=True)
    _require(all(abs(one - two) <= slack * total for one, two, slack in agree), "the event has other rows")
    _require(list(event.groups) == list(state.groups), "the event has other groups")
    _require(event.classes.parts()[0] == names, "the event has other predicted classes")
    pairs = [(event.classes, state.classes), *zip(event.groups.values(), state.groups.values(), strict=True)]
    for one, other in pairs:
        _check_slices(one, sums, "the event", weighted=weighted)
        (own, own_parts), (their, their_parts) = one.parts(), other.parts()
        same = own == their and (own_parts["rows"] == their_parts["rows"]).all()
        _require(same, "the event has other slices")


def _check_squares(weight: Array, total: Array, squares: Array, what: str) -> None:
    """Raise unless squares are at least what the Cauchy-Schwarz inequality requires."""
    least = np.divide(total**2, weight, out=np.zeros_like(total), where=weight > 0)
    _require(
        (squares >= least * (1 - _ROUNDING) - _ROUNDING * weight).all(), f"squares of {what} are too small"
    )


def _is_squares(squares: float, weight: float, rows: int) -> bool:
    return weight**2 / rows * (1 - _ROUNDING) <= squares <= weight**2 * (1 + _ROUNDING)


def _is_between(total: Array, low: Array, high: Array, weight: Array) -> bool:
    slack = _ROUNDING * weight + _DIFFERENCE * float(weight.sum())
    return bool(((total >= low * weight - slack) & (total <= high * weight + slack)).all())


def _is_close(one: Any, two: Any, scale: Any) -> bool:
    return abs(float(one) - float(two)) <= _ROUNDING * float(scale)


def _are_confidences(values: Any) -> bool:
    return all(_is_number(value) and 0 <= value <= 1 for value in values)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _ends(n: int) -> tuple[Array, Array]:
    return np.arange(n) / n, np.arange(1, n + 1) / n


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise ValueError(message)
