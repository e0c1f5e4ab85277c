"""A certified threshold in use: accept a prediction, or abstain."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import bdtrc

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.escaping import shown_name
from equipoise.core.predictions import Predictions
from equipoise.core.records import Record, read_record, write_record
from equipoise.core.rows import Rows, check_disjoint
from equipoise.decisions.betting import betting_bound, betting_p_value, mixed_order
from equipoise.decisions.certificate import Certificate, count_text
from equipoise.decisions.exact import exact_interval
from equipoise.decisions.inputs import (
    apply_calibrator,
    as_predictions,
    check_json_name,
    count_rows,
    read_calibrator,
)
from equipoise.decisions.scores import score_rows

__all__ = ["AcceptRule", "PromiseCheck", "replace_calibrator"]

_FORMAT, _VERSION = "equipoise.accept_rule", 1
_MOST_ROWS = 1 << 14
#: Groups that are described one by one, from the smallest p-value on.
_SHOWN = 20


@final
@dataclass(frozen=True)
class PromiseCheck:
    """Whether the promise of a rule was kept on new labelled rows.

    Attributes:
        kept: False if the test shows that the error exceeds the limit.
        n: Number of rows; with weights that are not whole numbers, their sum.
        n_accepted: Number of accepted rows, or the sum of their weights.
        coverage: Share of accepted rows.
        observed_error: Error rate among accepted rows; None without any.
        error_low: Lower end of its 95% interval.
        error_high: Upper end.
        p_value: Probability of so many mistakes if the error is at the limit.
        max_error: The limit that was promised.
        groups: The same by group, if the promise holds in every group. ``kept`` is then that of all groups, each tested
            after correction for their number (Holm).
        is_exact: Whether test and interval are the exact binomial ones; for weights that are not whole numbers, they
            are those of betting.
    """

    kept: bool
    n: float
    n_accepted: float
    coverage: float
    observed_error: float | None
    error_low: float
    error_high: float
    p_value: float
    max_error: float
    groups: Mapping[str, PromiseCheck] = field(default_factory=dict)
    is_exact: bool = True

    def describe(self) -> str:
        """Return the result in one or two sentences, and a line per group."""
        if self.n_accepted == 0:
            return f"None of the {count_text(self.n)} rows is accepted, so nothing can be tested."
        verdict = f"The promise is {'kept' if self.kept else 'broken'}"
        kind = "exact" if self.is_exact else "betting"
        test = f"{kind} test, p = {self.p_value:.2g}"
        if self.groups:
            broken = sum(not one.kept for one in self.groups.values())
            verdict += f" in {broken:,} of {len(self.groups):,} groups" if broken else " in every group"
            least = min(1.0, len(self.groups) * min(one.p_value for one in self.groups.values()))
            test = f"{kind} tests, least p = {least:.2g} after correction for {len(self.groups):,} tests"
        observed = f"{100 * (self.observed_error or 0.0):.3g}% of {count_text(self.n_accepted)}"
        text = (
            f"{verdict}: {observed} accepted predictions are wrong "
            f"[{100 * self.error_low:.3g}, {100 * self.error_high:.3g}], promised at most {100 * self.max_error:.3g}% "
            f"({test})."
        )
        order = sorted(self.groups, key=lambda name: self.groups[name].p_value)
        lines = [f"{shown_name(name)}: {self.groups[name].describe()}" for name in order[:_SHOWN]]
        if len(order) > _SHOWN:
            lines.append(f"{len(order) - _SHOWN:,} other groups have larger p-values.")
        return "\n".join([text, *lines])

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)


@final
class AcceptRule:
    """Accepts predictions whose score reaches a certified threshold.

    Made by :func:`~equipoise.decisions.certify_threshold` or :meth:`load`. A rule that is not certified, or a group
    without a certificate, accepts nothing.

    Args:
        certificate: Record of the certification.
        score: Name of the score; None if scores were given as an array.
        by: Name of the column of groups, if there are groups.
        calibrator: Fitted calibrator that is applied first.
        rows: Rows that the threshold was certified on.
        n_classes: Number of classes of these rows; None if it is not known, as with confidences only.

    Example:
        >>> from equipoise.decisions import certify_threshold
        >>> probs = np.linspace(0.6, 1, 300)
        >>> rows = Predictions(probs=probs, labels=(probs > 0.7).astype(int))
        >>> rule = certify_threshold(rows, max_error=0.05, confidence=0.95)
        >>> rule(Predictions(probs=[0.55, 0.99]))
        array([False,  True])
    """

    def __init__(
        self,
        *,
        certificate: Certificate,
        score: str | None,
        by: str | None = None,
        calibrator: Any = None,
        rows: Rows | None = None,
        n_classes: int | None = None,
    ) -> None:
        self.certificate, self.score, self.by = certificate, score, by
        self.calibrator, self.rows, self.n_classes = calibrator, rows, n_classes

    def __repr__(self) -> str:
        one = self.certificate
        what = f"threshold={one.threshold}" if one.threshold is not None else f"groups={len(one.groups)}"
        return f"AcceptRule(certified={one.certified}, {what}, score={self.score!r})"

    def __call__(self, predictions: Any, *, score: Any = None) -> Array:
        """Return which predictions are accepted, ``(n,)`` bool.

        Args:
            predictions: Predictions, with or without labels; or probabilities ``(n, k)`` or ``(n,)``.
            score: Scores ``(n,)``, if the rule was certified on scores of your own.
        """
        predictions = as_predictions(predictions, where="AcceptRule")
        if None not in (self.n_classes, predictions.n_classes) and self.n_classes != predictions.n_classes:
            raise DataError(
                f"AcceptRule: the predictions must have {self.n_classes} classes, as where the threshold was "
                f"certified, got {predictions.n_classes}. Pass predictions of this model."
            )
        predictions = apply_calibrator(self.calibrator, predictions, where="AcceptRule")
        if self.score is None and score is None:
            raise TypeError(
                "AcceptRule: the rule was certified on scores of your own, got none. Pass them as `score`."
            )
        if self.score is not None and score is not None:
            raise TypeError(
                f"AcceptRule: the rule was certified on {self.score!r}, got `score` too. Leave it out."
            )
        values = score_rows(predictions, score if self.score is None else self.score, where="AcceptRule")
        accepted: Array = values >= self._thresholds(predictions)
        return accepted

    def has_threshold(self, predictions: Predictions) -> Array:
        """Return which rows have a certified threshold ``(n,)`` bool; rows of other groups are never accepted."""
        result: Array = np.isfinite(self._thresholds(predictions))
        return result

    def _thresholds(self, predictions: Predictions) -> Array:
        """Return the threshold of every row; infinity where nothing is certified."""
        one = self.certificate
        if self.by is None or one.threshold is not None:
            return np.full(len(predictions), np.inf if one.threshold is None else one.threshold)
        if self.by not in predictions.groups:
            raise DataError(
                f"AcceptRule: the rule has one threshold per {self.by!r}, and the predictions have no such column. "
                "Give it in `groups`."
            )
        names, codes = np.unique(predictions.groups[self.by].astype(np.str_), return_inverse=True)
        found = [one.groups[name].threshold if name in one.groups else None for name in names.tolist()]
        return np.array([np.inf if value is None else value for value in found])[codes]

    def check(
        self, predictions: Any, labels: Any = None, *, score: Any = None, level: float = 0.05
    ) -> PromiseCheck:
        """Test on new labelled rows whether the promised limit is exceeded.

        The test is the exact binomial one. Weights that are whole numbers count rows; for other weights, the weighted
        error is tested by betting, and the largest weight is taken for the largest possible one.

        Args:
            predictions: Labelled predictions of other rows than those of the certification; or probabilities with
            labels: true classes ``(n,)``.
            score: Scores ``(n,)``, if the rule was certified on scores of your own.
            level: Probability of a false alarm if the error is at the limit.

        Raises:
            SplitError: If the rows were used to certify the threshold or to fit the calibrator.
        """
        where = "AcceptRule.check"
        predictions = as_predictions(predictions, labels, where=where)
        self.check_disjoint(predictions, where=where)
        accepted = self(predictions, score=score)
        # The calibrator may change the predicted class.
        judged = apply_calibrator(self.calibrator, predictions, where=where)
        if judged.fitted_on is not None:
            check_disjoint(judged.rows, judged.fitted_on, where=where)
        weights = np.ones(len(accepted)) if predictions.weights is None else count_rows(predictions.weights)
        rows = _JudgedRows(accepted, ~judged.correct, weights)
        limit = self.certificate.promised_error
        if limit is None:
            raise DataError(
                f"{where}: the rule promises nothing, since no threshold was certified. Certify one on more rows."
            )
        whole = _promise_check(rows, limit, level)
        if self.by is None or self.by not in predictions.groups:
            return whole
        column = predictions.groups[self.by].astype(np.str_)
        limits = {name: one.promised_error for name, one in self.certificate.groups.items() if one.certified}
        found = {
            name: _promise_check(rows.take(column == name), bound, level)
            for name, bound in limits.items()
            if bound is not None and rows.weight[column == name].any()
        }
        found = _correct_for_groups(found, level)
        return replace(whole, kept=all(one.kept for one in found.values()), groups=found)

    def check_disjoint(self, predictions: Predictions, *, where: str = "AcceptRule") -> None:
        """Raise if rows were used to certify the threshold.

        Raises:
            SplitError: With the number of shared rows.
        """
        if self.rows is None:
            return
        problem = "rows were used to certify the threshold, so they cannot judge it. Pass other rows."
        check_disjoint(predictions.rows, self.rows, where=where, problem=problem)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rule as JSON with a checksum; the rows of the certification as hashes, the calibrator in full."""
        check_json_name(path, where="AcceptRule.save")
        write_record(path, _FORMAT, _VERSION, Record(self.as_dict(), {}))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values; :meth:`from_dict` reads it."""
        return {
            "certificate": self.certificate.as_dict(),
            "score": self.score,
            "by": self.by,
            "calibrator": None if self.calibrator is None else self.calibrator.to_artifact(),
            "rows": None if self.rows is None else self.rows.sketch(_MOST_ROWS).packed(),
            "n_classes": self.n_classes,
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AcceptRule:
        """Read a rule that :meth:`save` wrote.

        Raises:
            DataError: If the file is not a saved rule, is from a newer version, or was changed.
        """
        return cls.from_dict(read_record(path, _FORMAT, _VERSION).plain, where=f"AcceptRule.load: {path}")

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, where: str = "AcceptRule.from_dict") -> AcceptRule:
        """Rebuild a rule from what :meth:`as_dict` gave.

        Raises:
            DataError: If a part is missing or has the wrong type.
        """
        try:
            certificate = _certificate_from(content["certificate"])
            score, by, rows, saved = (content[name] for name in ("score", "by", "rows", "calibrator"))
            n_classes = content.get("n_classes")
            if not isinstance(score, str | None) or not isinstance(by, str | None):
                raise TypeError("`score` and `by` must be text")
            if n_classes is not None and type(n_classes) is not int:
                raise TypeError("`n_classes` must be a whole number")
            unpacked = None if rows is None else Rows.unpacked(rows)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{where} is damaged ({error}). Certify and save the rule again.") from None
        calibrator = read_calibrator(saved)
        return cls(
            certificate=certificate,
            score=score,
            by=by,
            calibrator=calibrator,
            rows=unpacked,
            n_classes=n_classes,
        )


def replace_calibrator(rule: AcceptRule, calibrator: Any) -> AcceptRule:
    """Return a rule for predictions to which another calibrator, or none, is still to be applied."""
    return AcceptRule(
        certificate=rule.certificate,
        score=rule.score,
        by=rule.by,
        calibrator=calibrator,
        rows=rule.rows,
        n_classes=rule.n_classes,
    )


class _JudgedRows(NamedTuple):
    """What a rule did with labelled rows.

    Attributes:
        accepted: Whether each row is accepted ``(n,)``.
        wrong: Whether its prediction is wrong.
        weight: How many rows it counts for.
    """

    accepted: Array
    wrong: Array
    weight: Array

    def take(self, kept: Array) -> _JudgedRows:
        return _JudgedRows(*(column[kept] for column in self))


def _promise_check(rows: _JudgedRows, limit: float, level: float) -> PromiseCheck:
    weight, wrong = rows.weight[rows.accepted], rows.wrong[rows.accepted]
    n, n_accepted, n_wrong = (float(one.sum()) for one in (rows.weight, weight, weight * wrong))
    counts = bool((rows.weight == np.floor(rows.weight)).all())
    if counts:
        p_value = 1.0 if n_wrong == 0 else float(bdtrc(int(n_wrong) - 1, int(n_accepted), limit))
        low, high = exact_interval(n_wrong, n_accepted, 0.95) if n_accepted else (0.0, 1.0)
    else:
        p_value, low, high = _betting_check(rows, limit, level)
    return PromiseCheck(
        kept=p_value > level,
        n=int(n) if counts else n,
        n_accepted=int(n_accepted) if counts else n_accepted,
        coverage=n_accepted / n,
        observed_error=n_wrong / n_accepted if n_accepted else None,
        error_low=low,
        error_high=high,
        p_value=p_value,
        max_error=limit,
        is_exact=counts,
    )


def _betting_check(rows: _JudgedRows, limit: float, level: float) -> tuple[float, float, float]:
    """Return a p-value of "the weighted error is at most the limit", and a 95% interval of the error."""
    mixed = rows.take(mixed_order(len(rows.weight)))
    weight, wrong = mixed.weight[mixed.accepted], mixed.wrong[mixed.accepted]
    heaviest = float(rows.weight.max())
    # Errors are too frequent if rows without one are too rare.
    p_value = betting_p_value(weight, ~wrong, 1 - limit, heaviest, risk=level)
    low = 1 - betting_bound(weight, ~wrong, heaviest, risk=0.025)
    return p_value, low, betting_bound(weight, wrong, heaviest, risk=0.025)


def _correct_for_groups(found: Mapping[str, PromiseCheck], level: float) -> dict[str, PromiseCheck]:
    """Return tests of groups with verdicts that are corrected for their number (Holm)."""
    p_values = np.array([one.p_value for one in found.values()])
    order = np.argsort(p_values)
    broken = np.zeros(len(order), bool)
    broken[order] = np.logical_and.accumulate(p_values[order] <= level / np.arange(len(order), 0, -1))
    return {
        name: replace(one, kept=not is_broken)
        for (name, one), is_broken in zip(found.items(), broken.tolist(), strict=True)
    }


_OPTIONAL = ("threshold", "observed_error", "error_bound", "max_error")


def _certificate_from(content: Any) -> Certificate:
    names = [one.name for one in fields(Certificate) if one.name not in ("groups", "shortfall")]
    if not isinstance(content, Mapping) or set(content) != {*names, "groups"}:
        raise TypeError("`certificate` must have the fields of a certificate")
    for name in names:
        value = content[name]
        kinds = (bool,) if name == "certified" else (int, float)
        if type(value) not in kinds and not (value is None and name in _OPTIONAL):
            raise TypeError(f"`{name}` must be {kinds[-1].__name__}, got {value!r}")
    if content["certified"] and not content["groups"] and content["threshold"] is None:
        raise TypeError("a certified rule must have a threshold")
    groups = {str(name): _certificate_from(one) for name, one in content["groups"].items()}
    return Certificate(**{name: content[name] for name in names}, groups=groups)
