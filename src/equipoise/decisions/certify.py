"""Thresholds on a score above which few predictions are wrong, with a guarantee."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, SplitError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import check_disjoint
from equipoise.decisions.accept_rule import AcceptRule
from equipoise.decisions.betting import betting_bound, betting_p_value, mixed_order
from equipoise.decisions.certificate import Certificate, Shortfall
from equipoise.decisions.exact import exact_interval
from equipoise.decisions.fallback import RankShares, last_by_fallback, start_ranks
from equipoise.decisions.inputs import apply_calibrator, as_predictions, check_share, count_rows
from equipoise.decisions.scores import SCORES, score_rows
from equipoise.decisions.threshold_tests import (
    choose_ranks,
    error_upper_bound,
    fewest_rows,
    last_certified,
    plan_tests,
    rank_p_values,
)

__all__ = ["certify_threshold"]

#: Error limits that are tried where the requested one cannot be certified.
_BOUNDS = np.geomspace(1e-3, 0.999, 400)

_WHERE = "certify_threshold"


def certify_threshold(
    predictions: Any,
    labels: Any = None,
    *,
    max_error: float | None = None,
    min_coverage: float | None = None,
    confidence: float = 0.95,
    score: Any = "confidence",
    by: str | None = None,
    shared: bool = False,
    calibrator: Any = None,
) -> AcceptRule:
    """Find the most lenient threshold whose accepted predictions are wrong at most as often as allowed.

    The promise: over the draw of the labelled rows, the probability that the true error rate among accepted predictions
    exceeds ``max_error`` is at most ``1 - confidence``. It holds for any error curve and requires rows that are drawn
    independently from the same source as the rows to come. Rows of equal score are accepted or rejected together.

    Args:
        predictions: Labelled predictions, or probabilities ``(n, k)`` or ``(n,)`` with ``labels``. Weights that are
            whole numbers count rows; for other weights the promise is about the weighted error rate, and the largest
            weight is taken for the largest possible one.
        labels: True classes ``(n,)``, with probabilities only.
        max_error: Error limit, above 0 and below 1; or
        min_coverage: share of rows that must be accepted; the least error that can be promised is returned.
        confidence: Probability with which the promise must hold.
        score: ``"confidence"``, ``"margin"``, ``"entropy"``, the name of a numeric column of ``groups``, or an array.
        by: Name of a column of ``groups``; the promise then holds in every group at once.
        shared: One threshold for all groups instead of one for each.
        calibrator: Fitted calibrator, applied first and kept in the rule. Its rows must be other rows.

    Returns:
        The rule, certified or not; its record is in ``certificate``. A rule that is not certified accepts nothing.

    Raises:
        SplitError: If the rows were used to train or to fit the calibrator.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> confidence = rng.uniform(0.5, 1, 2000)
        >>> rows = Predictions(probs=confidence, labels=(rng.random(2000) < confidence).astype(int))
        >>> rule = certify_threshold(rows, max_error=0.1, confidence=0.95)
        >>> rule.certificate.certified, round(rule.certificate.coverage, 2)
        (True, 0.33)
    """
    _check_arguments(max_error, min_coverage, confidence, by, shared)
    predictions = as_predictions(predictions, labels, where=_WHERE)
    predictions = apply_calibrator(calibrator, predictions, where=_WHERE)
    if predictions.split == "train":
        raise SplitError(
            f"{_WHERE}: the predictions are from the split 'train', which fitted the model. Use 'calib' or 'test'."
        )
    if predictions.fitted_on is not None:
        check_disjoint(predictions.rows, predictions.fitted_on, where=_WHERE)
    if not len(predictions):
        raise DataError(f"{_WHERE}: the predictions have no rows. Pass labelled rows.")
    rows = _rows_of(predictions, score)
    risk = 1 - confidence
    if by is None:
        found = _certify(rows, max_error, min_coverage, risk)
    else:
        codes, names = _group_codes(predictions, by)
        parts = {name: rows.take(codes == code) for code, name in enumerate(names)}
        if shared:
            found = _certify_shared(rows, parts, max_error, min_coverage, risk)
        else:
            found = _certify_groups(rows, parts, max_error, min_coverage, risk)
    if isinstance(score, str) and score in SCORES:
        found = _without_threshold(found)
    return AcceptRule(
        certificate=found,
        score=score if isinstance(score, str) else None,
        by=by,
        calibrator=calibrator,
        rows=predictions.rows,
        n_classes=predictions.n_classes,
    )


class _Rows(NamedTuple):
    """Scores, mistakes and weights of labelled rows; weights are None where every row counts once."""

    score: Array
    wrong: Array
    weight: Array | None

    def take(self, kept: Array) -> _Rows:
        return _Rows(*(None if column is None else column[kept] for column in self))  # type: ignore[arg-type]

    @property
    def counts(self) -> bool:
        """Whether weights are whole numbers, which count rows."""
        return self.weight is None or bool((self.weight == np.floor(self.weight)).all())

    @property
    def total(self) -> float:
        return float(len(self.score) if self.weight is None else self.weight.sum())

    def coverage(self, accepted: float) -> tuple[float, float, float]:
        """Return the share of an accepted weight, and its 95% interval for the effective number of rows."""
        share, n = accepted / self.total, self.total
        share = 1.0 if share > 1 - 1e-12 else share
        if not self.counts:
            n = self.total**2 / float((np.asarray(self.weight) ** 2).sum())
        low, high = exact_interval(share * n, n, 0.95)
        return share, low, high


class _Levels(NamedTuple):
    """All thresholds of some rows, from the strictest on.

    Attributes:
        threshold: Distinct scores, descending.
        rows: Number of rows at or above each.
        wrong: Number of mistakes among them.
    """

    threshold: Array
    rows: Array
    wrong: Array


def _rows_of(predictions: Predictions, score: Any) -> _Rows:
    values = score_rows(predictions, score, where=_WHERE)
    rows = _Rows(values, ~predictions.correct, predictions.weights)
    if predictions.weights is not None and not predictions.weights.all():
        rows = rows.take(predictions.weights > 0)
    return rows if rows.weight is None else rows._replace(weight=count_rows(rows.weight))


def _levels(rows: _Rows) -> _Levels:
    order = np.argsort(-rows.score, kind="stable")
    values = rows.score[order]
    last = np.flatnonzero(np.concatenate([values[1:] != values[:-1], [True]]))
    weight = np.ones(len(values)) if rows.weight is None else rows.weight[order]
    wrong = np.cumsum(weight * rows.wrong[order])
    return _Levels(values[last], np.cumsum(weight)[last], wrong[last])


def _certify(rows: _Rows, max_error: float | None, min_coverage: float | None, risk: float) -> Certificate:
    if min_coverage is not None:
        return _certify_coverage(rows, min_coverage, risk)
    assert max_error is not None
    levels, level = _levels(rows), _most_lenient(rows, max_error, risk)
    if level is not None:
        return _certificate(rows, levels, level, risk, max_error, error_bound=max_error)
    bound, where = _best_bound(rows, levels, max_error, risk)
    needed = _rows_needed(levels, max_error, risk) if rows.counts else None
    short = Shortfall(where, needed, fewest_rows(max_error, risk), is_weighted=not rows.counts)
    return _nothing(rows, max_error, risk, bound, short)


def _most_lenient(rows: _Rows, max_error: float, risk: float) -> int | None:
    """Return which threshold is certified, among all distinct ones."""
    levels = _levels(rows)
    if not rows.counts:
        return _most_lenient_weighted(rows, levels, max_error, risk)
    n_rows = int(rows.total)
    wanted = choose_ranks(n_rows, max_error, risk)
    # Rows of equal score are accepted together: a rank is rounded down to the end of a group of equal scores.
    places = np.unique(np.searchsorted(levels.rows, wanted, side="right") - 1)
    places = places[places >= 0]
    plan = plan_tests(levels.rows[places], n_rows, max_error, risk)
    places = places[len(places) - len(plan.ranks) :]
    found = int(last_certified(levels.wrong[places], plan))
    return None if found < 0 else int(places[found])


def _most_lenient_weighted(rows: _Rows, levels: _Levels, max_error: float, risk: float) -> int | None:
    rows = rows.take(mixed_order(len(rows.score)))
    tested, shares = _placed(
        start_ranks(len(rows.score), max_error, risk), _levels(rows._replace(weight=None)).rows
    )
    weight = np.asarray(rows.weight)
    heaviest, stake_risk = float(weight.max()), risk * float(shares.max(initial=0.0))
    accepted = [rows.score >= levels.threshold[level] for level in tested]
    p_values = np.array(
        [
            betting_p_value(weight[one], rows.wrong[one], max_error, heaviest, risk=stake_risk)
            for one in accepted
        ]
    )
    found = last_by_fallback(p_values, shares, risk)
    return None if found < 0 else int(tested[found])


def _placed(plan: RankShares, rows: Array) -> tuple[Array, Array]:
    """Return which thresholds stand for the planned ranks, and the shares of the risk at them.

    A rank is rounded down to the last row of a group of equal scores. A start is rounded up, since fewer rows could not
    pass its test.
    """
    if len(plan.ranks) == 0:
        return np.zeros(0, np.int64), np.zeros(0)
    tested = np.searchsorted(rows, plan.ranks, side="right") - 1
    at = np.flatnonzero(plan.shares)
    starts = np.searchsorted(rows, plan.ranks[at])
    levels = np.unique(np.concatenate([tested[tested >= 0], starts]))
    levels = levels[levels >= min(starts)]
    shares = np.zeros(len(levels))
    np.add.at(shares, np.searchsorted(levels, starts), plan.shares[at])
    return levels.astype(np.int64), shares


def _certify_coverage(rows: _Rows, min_coverage: float, risk: float) -> Certificate:
    levels = _levels(rows)
    level = int(np.argmax(levels.rows >= min_coverage * rows.total * (1 - 1e-12)))
    if not rows.counts:
        mixed = rows.take(mixed_order(len(rows.score)))
        kept = mixed.take(mixed.score >= levels.threshold[level])
        weight = np.asarray(kept.weight)
        bound = betting_bound(weight, kept.wrong, float(np.asarray(rows.weight).max()), risk=risk)
    else:
        # Given the lowest accepted score, the other accepted rows are independent: one row is left out.
        count = max(int(levels.rows[level]) - 1, 1)
        bound = error_upper_bound(min(int(levels.wrong[level]), count), count, risk)
    if bound >= 1:
        return _nothing(rows, None, risk, None, None)
    return _certificate(rows, levels, level, risk, None, error_bound=bound)


def _certify_groups(
    rows: _Rows, parts: dict[str, _Rows], max_error: float | None, min_coverage: float | None, risk: float
) -> Certificate:
    """Certify every group at its part of the risk; a group that accepts all its rows passes its part on (Holm)."""
    found: dict[str, Certificate] = {}
    open_groups = list(parts)
    while open_groups:
        found |= {
            name: _certify(parts[name], max_error, min_coverage, risk / len(open_groups))
            for name in open_groups
        }
        left = [name for name in open_groups if not (found[name].certified and found[name].coverage == 1)]
        if min_coverage is not None or len(left) == len(open_groups):
            break
        open_groups = left
    found = {name: replace(found[name], confidence=1 - risk) for name in parts}
    n_accepted = sum(one.n_accepted for one in found.values())
    wrong = sum(one.n_accepted * (one.observed_error or 0.0) for one in found.values())
    coverage, low, high = rows.coverage(n_accepted)
    bounds = [one.error_bound for one in found.values() if one.certified and one.error_bound is not None]
    return Certificate(
        certified=all(one.certified for one in found.values()),
        threshold=None,
        coverage=coverage,
        coverage_low=low,
        coverage_high=high,
        observed_error=wrong / n_accepted if n_accepted else None,
        error_bound=max(bounds, default=None),
        n=_number(rows.total),
        n_accepted=_number(n_accepted),
        max_error=max_error,
        confidence=1 - risk,
        groups=found,
    )


def _certify_shared(
    rows: _Rows, parts: dict[str, _Rows], max_error: float | None, min_coverage: float | None, risk: float
) -> Certificate:
    """Certify one threshold that holds in every group: the largest p-value of the groups decides."""
    if max_error is None:
        raise ValueError(
            f"{_WHERE}: `shared` must be used with `max_error`, got `min_coverage` {min_coverage}. Leave `shared` out."
        )
    if not rows.counts:
        raise DataError(
            f"{_WHERE}: `shared` requires weights that are whole numbers, got other weights. Certify each group."
        )
    levels = _levels(rows)
    each = [_levels(part) for part in parts.values()]
    place = [np.searchsorted(-one.threshold, -levels.threshold, side="right") - 1 for one in each]
    count = np.array([np.where(at >= 0, one.rows[at], 0) for one, at in zip(each, place, strict=True)])
    wrong = np.array([np.where(at >= 0, one.wrong[at], 0) for one, at in zip(each, place, strict=True)])
    smallest = count.min(axis=0)
    tested, shares = _placed(start_ranks(int(smallest[-1]), max_error, risk), smallest)
    p_values = rank_p_values(wrong[:, tested], np.maximum(count[:, tested], 1), max_error)
    p_values = np.where(count[:, tested] > 0, p_values, 1.0).max(axis=0)
    found = last_by_fallback(p_values, shares, risk)
    if found < 0:
        alone = {name: _certify(part, max_error, None, risk) for name, part in parts.items()}
        groups = {
            name: _nothing(parts[name], max_error, risk, one.error_bound, one.shortfall)
            if one.shortfall is not None
            else _nothing(parts[name], max_error, risk, None, None)
            for name, one in alone.items()
        }
        short = Shortfall(None, None, fewest_rows(max_error, risk))
        return replace(_nothing(rows, max_error, risk, None, short), groups=groups)
    level = int(tested[found])
    threshold = float(levels.threshold[level])
    groups = {
        name: _certificate(part, one, int(at[level]), risk, max_error, error_bound=max_error)
        for (name, part), one, at in zip(parts.items(), each, place, strict=True)
    }
    groups = {name: replace(one, threshold=threshold) for name, one in groups.items()}
    found_all = _certificate(rows, levels, level, risk, max_error, error_bound=max_error)
    return replace(found_all, groups=groups)


def _without_threshold(found: Certificate) -> Certificate:
    """Accept every score where all rows are accepted: they were tested together, so the least score means nothing."""
    if found.threshold is not None and found.coverage < 1:
        return found
    groups = {
        name: replace(one, threshold=0.0) if one.certified and one.coverage == 1 else one
        for name, one in found.groups.items()
    }
    return replace(found, threshold=None if found.threshold is None else 0.0, groups=groups)


def _certificate(
    rows: _Rows, levels: _Levels, level: int, risk: float, max_error: float | None, *, error_bound: float
) -> Certificate:
    accepted, wrong = float(levels.rows[level]), float(levels.wrong[level])
    coverage, low, high = rows.coverage(accepted)
    return Certificate(
        certified=True,
        threshold=float(levels.threshold[level]),
        coverage=coverage,
        coverage_low=low,
        coverage_high=high,
        observed_error=wrong / accepted,
        error_bound=error_bound,
        n=_number(rows.total),
        n_accepted=_number(accepted),
        max_error=max_error,
        confidence=1 - risk,
    )


def _nothing(
    rows: _Rows, max_error: float | None, risk: float, bound: float | None, short: Shortfall | None
) -> Certificate:
    return Certificate(
        certified=False,
        threshold=None,
        coverage=0.0,
        coverage_low=0.0,
        coverage_high=0.0,
        observed_error=None,
        error_bound=bound,
        n=_number(rows.total),
        n_accepted=0,
        max_error=max_error,
        confidence=1 - risk,
        shortfall=short,
    )


def _best_bound(
    rows: _Rows, levels: _Levels, max_error: float, risk: float
) -> tuple[float | None, float | None]:
    """Return the smallest error limit of a grid that these rows could certify, and at which threshold."""
    # The grid is the same for all limits, so that several limits on the same rows share their plans.
    low, high, where = -1, len(_BOUNDS) - 1, None
    while high - low > 1:
        middle = (low + high) // 2
        level = _most_lenient(rows, float(_BOUNDS[middle]), risk) if _BOUNDS[middle] > max_error else None
        if level is None:
            low = middle
        else:
            high, where = middle, float(levels.threshold[level])
    return (None, None) if where is None else (float(_BOUNDS[high]), where)


def _rows_needed(levels: _Levels, max_error: float, risk: float) -> int | None:
    """Return how many labelled rows might certify a threshold whose observed error is its true one."""
    total = float(levels.rows[-1])
    best: int | None = None
    some = np.unique(np.searchsorted(levels.rows, np.geomspace(max(levels.rows[0], 1.0), total, 40)))
    for level in some[some < len(levels.rows)]:
        accepted, wrong = float(levels.rows[level]), float(levels.wrong[level])
        # Half a mistake more: a threshold without a mistake is not free of errors.
        rate = (wrong + 0.5) / (accepted + 1)
        if rate >= max_error:
            continue
        kept = _accepted_needed(rate, max_error, risk / 5)
        needed = max(math.ceil(kept * total / accepted), int(total) + 1)
        best = needed if best is None else min(best, needed)
    return best


def _accepted_needed(rate: float, max_error: float, risk: float) -> int:
    """Return the number of accepted rows at which the expected number of mistakes passes the test."""
    low, high = 1, 2
    while high < 1e9 and rank_p_values(np.ceil(rate * high), np.float64(high), max_error) > risk:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        passed = rank_p_values(np.ceil(rate * middle), np.float64(middle), max_error) <= risk
        low, high = (low, middle) if passed else (middle + 1, high)
    return high


def _number(value: float) -> float:
    whole = round(value)
    return whole if abs(value - whole) < 1e-6 else value


def _group_codes(predictions: Predictions, by: str) -> tuple[Array, list[str]]:
    if by not in predictions.groups:
        known = ", ".join(predictions.groups) or "none"
        raise DataError(f"{_WHERE}: `by` must name a column of groups, got {by!r}. Columns: {known}.")
    column = predictions.groups[by]
    weights = predictions.weights
    kept = column if weights is None or weights.all() else column[weights > 0]
    names, codes = np.unique(kept, return_inverse=True)
    return codes, [str(name) for name in names]


def _check_arguments(
    max_error: float | None, min_coverage: float | None, confidence: float, by: str | None, shared: bool
) -> None:
    if (max_error is None) == (min_coverage is None):
        raise TypeError(f"{_WHERE}: give `max_error` or `min_coverage`, and not both.")
    if max_error == 0:
        raise ValueError(
            f"{_WHERE}: `max_error` must be above 0, got 0. No number of rows shows that a model is never wrong; "
            "0.01 needs about 300 accepted rows without a mistake."
        )
    if max_error is not None:
        check_share(max_error, where=_WHERE, name="max_error", example="5% is 0.05")
    if min_coverage is not None:
        check_share(min_coverage, where=_WHERE, name="min_coverage", example="80% is 0.8", may_be_one=True)
    check_share(confidence, where=_WHERE, name="confidence", example="95% is 0.95")
    if by is not None and not isinstance(by, str):
        raise TypeError(f"{_WHERE}: `by` must be the name of one column of groups, got {by!r}.")
    if shared and by is None:
        raise TypeError(f"{_WHERE}: `shared` requires `by`. Name the column of groups.")
