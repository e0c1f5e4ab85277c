"""The advisor: which calibrator, by cross-validated log-loss, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan
from typing import final

import numpy as np

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.binning import bin_sums, equal_width_edges
from equipoise.calibrators.fit_warnings import mean_and_error
from equipoise.calibrators.forms import as_claims, is_claims
from equipoise.calibrators.identity import Identity
from equipoise.calibrators.loading import KINDS
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.zeros import floor_of, with_floor
from equipoise.core.arrays import Array
from equipoise.core.bins import expected_error
from equipoise.core.choices import RULES, Rule
from equipoise.core.errors import SplitError
from equipoise.core.names import check_choice, look_up
from equipoise.core.predictions import Predictions
from equipoise.core.probabilities import softmax
from equipoise.core.seeds import numpy_generator
from equipoise.core.tables import Table

__all__ = [
    "CANDIDATES",
    "CLAIM_CANDIDATES",
    "GROUP_CANDIDATES",
    "Advisor",
    "Choice",
    "Pick",
    "Trial",
    "choose",
    "picking",
    "refusal",
]

#: What is tried unless the caller says otherwise, simple maps first.
CANDIDATES = ("identity", "temperature", "ets", "platt", "svs", "vector", "beta", "isotonic", "sms")
#: The same for top-1 predictions, of which only the confidence of the answer is known.
CLAIM_CANDIDATES = ("identity", "platt", "beta", "spline", "isotonic", "histogram")
#: Those that :class:`CalibrationByGroup` takes as its base: their number of parameters is fixed.
GROUP_CANDIDATES = ("identity", "temperature", "ets", "platt", "svs", "vector", "beta", "sms")
_ROWS_PER_PARAMETER = 10
_FEWEST_ROWS = 20
#: With fewer rows the best candidate must beat the simple ones by more than a standard error, and curves of one
#: confidence, which answer exactly 0 or 1, are no candidates; docs/choose-a-calibrator.md shows the measurements.
_ROWS_FOR_BEST = 2000
_CURVES = ("isotonic", "histogram", "spline")
#: What a cautious user takes without looking: for scores of every class, and for one confidence.
_SIMPLE, _SIMPLE_CLAIMS = ("identity", "temperature"), ("identity", "platt")

_HEADS = ("calibrator", "parameters", "log-loss", "gain", "+-", "ECE", "")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One line of the comparison.

    Attributes:
        name: The calibrator.
        n_parameters: How many numbers it learns.
        log_loss: Mean over held-out rows; nan if left out.
        improvement: How much lower that is than without calibration.
        error: Standard error of the improvement.
        ece: 15-bin ECE of the held-out confidences; reported, never the criterion.
        note: "chosen", or why it was left out.
    """

    name: str
    n_parameters: int
    log_loss: float = nan
    improvement: float = nan
    error: float = nan
    ece: float = nan
    note: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the advisor recommends, and why.

    Attributes:
        calibrator: The recommended calibrator, fitted on all rows.
        trials: Every candidate's line.
        reason: The recommendation as a sentence.
        improvement: What choosing and fitting in this way gains in log-loss on rows that took no part in either.
        interval: 95% interval of the improvement.
    """

    calibrator: Calibrator
    trials: tuple[Trial, ...]
    reason: str
    improvement: float
    interval: tuple[float, float]

    def _repr_html_(self) -> str:
        return self._table(caption=self.reason, notes=(self._gain,)).to_html()

    @property
    def _gain(self) -> str:
        low, high = self.interval
        return f"expected gain in log-loss {self.improvement:.4f} (95% interval {low:.4f} to {high:.4f})"

    def __str__(self) -> str:
        return "\n".join([self._table().to_text(), "", self.reason, self._gain])

    def _table(self, *, caption: str = "", notes: tuple[str, ...] = ()) -> Table:
        return Table.of(_HEADS, map(_line, self.trials), align="lrrrrrl", caption=caption, notes=notes)


def choose(
    predictions: Predictions,
    *,
    candidates: Sequence[str | Calibrator] | None = None,
    rule: Rule | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Choice:
    """Pick a calibrator by cross-validated log-loss, or recommend to leave the predictions alone.

    The candidate with the lowest log-loss wins. With fewer than 2,000 rows it must beat temperature scaling and no
    calibration (Platt scaling for top-1 predictions) by more than one standard error; otherwise the better of these two
    is taken. No calibration is always a candidate. Calibrators with more than one parameter per ten rows are
    left out unless they are regularized. The choice itself is cross-validated
    once more (nested), so that the expected gain is not that of the luckiest candidate.

    Args:
        predictions: Held-out predictions, of the split ``calib``.
        candidates: Names of calibrators, or calibrators with settings of their own; by default :data:`CANDIDATES`, and
            :data:`CLAIM_CANDIDATES` for top-1 predictions, where the log-loss is that of the answer being right.
        rule: ``"one_standard_error"`` takes the simplest that is worse than the best by no more than one standard
            error of their difference; ``"best"`` takes the best. By default the best from 2,000 rows on, and with
            fewer rows the best only if it beats the simple ones by more than one standard error.
        folds: Parts of the cross-validation.
        seed: Decides which row is in which part.

    Returns:
        The fitted calibrator, and a table to print.

    Raises:
        SplitError: If the predictions are from the split ``test``.
        ValueError: If there is no such rule.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(size=(400, 3)) * 2
        >>> labels = (logits + rng.gumbel(size=(400, 3))).argmax(1)
        >>> choice = choose(Predictions(logits=3 * logits, labels=labels), candidates=["temperature", "vector"])
        >>> choice.calibrator.kind
        'temperature'
        >>> choice = choose(Predictions(logits=logits, labels=labels), candidates=["temperature", "vector"])
        >>> choice.calibrator.kind
        'identity'
    """
    if predictions.split == "test":
        raise SplitError(
            "choose: the predictions are from the split 'test', which only judges. Choose on 'calib'."
        )
    weights = row_weights(predictions.weights, len(predictions))
    if rule is not None:
        check_choice(rule, RULES, where="choose", name="rule")
    claims = is_claims(predictions)
    pick = picking(float(weights.sum()), rule, claims=claims)
    if candidates is None:
        candidates = CLAIM_CANDIDATES if claims else CANDIDATES
    named = _named(candidates)
    data = as_claims(predictions) if claims else predictions
    floor = floor_of(data).values
    # Zeros count the same for every candidate and for no calibration, so that they alone do not decide.
    data = with_floor(data, floor) if floor else data
    n_classes = data.logits.shape[1]
    left_out = {
        name: refusal(one, float(weights.sum()), n_classes, claims=claims) for name, one in named.items()
    }
    tried = {name: one for name, one in named.items() if not left_out[name]}
    size = {name: one.n_parameters(n_classes) for name, one in named.items()}
    folds = min(folds, len(predictions))
    if len(predictions) < _FEWEST_ROWS or folds < 3:
        return _too_few(predictions, len(predictions))
    outcome = _cross_validate(data, tried, folds, numpy_generator(seed, "choose"), claims=claims)
    chosen = pick(outcome.losses, weights, size)
    gain, error = mean_and_error(outcome.losses["identity"] - outcome.nested(weights, size, pick), weights)
    return Choice(
        calibrator=named[chosen].fit(predictions),
        trials=tuple(
            _trial(name, size[name], outcome, weights, note=left_out[name] or "chosen" * (name == chosen))
            for name in named
        ),
        reason=_reason(chosen, outcome.losses, weights, rule),
        improvement=gain,
        interval=(gain - 1.96 * error, gain + 1.96 * error),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Advisor:
    """The advisor in the place of a calibrator: its fit is the calibrator that :func:`choose` recommends.

    Args:
        candidates: Names of calibrators to try; by default those of :func:`choose`.
        rule: ``"one_standard_error"`` or ``"best"``; by default as in :func:`choose`.
        folds: Parts of the cross-validation.
        seed: Decides which row is in which part.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(size=(400, 3)) * 2
        >>> labels = (logits + rng.gumbel(size=(400, 3))).argmax(1)
        >>> Advisor(candidates=["temperature"]).fit(Predictions(logits=3 * logits, labels=labels)).kind
        'temperature'
    """

    candidates: Sequence[str] | None = None
    rule: Rule | None = None
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rule is not None:
            check_choice(self.rule, RULES, where="auto", name="rule")
        _named(self.candidates or ())

    def fit(self, predictions: Predictions) -> Calibrator:
        """Return the recommended calibrator, fitted on all rows; it may be the identity."""
        return choose(
            predictions, candidates=self.candidates, rule=self.rule, folds=self.folds, seed=self.seed
        ).calibrator


def _named(candidates: Sequence[str | Calibrator]) -> dict[str, Calibrator]:
    named: dict[str, Calibrator] = {"identity": Identity()}
    for one in candidates:
        made = look_up(one, KINDS, what="calibrator")() if isinstance(one, str) else one
        name = made.kind if isinstance(one, str) else repr(one)
        named.setdefault(name, made)
    return named


def picking(rows: float, rule: Rule | None = None, *, claims: bool = False) -> Pick:
    """Return how a candidate is picked among so many rows.

    Args:
        rows: Number of rows, or the sum of their weights.
        rule: ``"one_standard_error"`` or ``"best"``; by default as in :func:`choose`.
        claims: Whether the rows are confidences of being right.

    Example:
        >>> losses = {"temperature": np.array([0.2, 0.9]), "vector": np.array([0.3, 0.6])}
        >>> picking(2, "best")(losses, np.ones(2), {"temperature": 1, "vector": 6})
        'vector'
    """
    if rule is None and rows >= _ROWS_FOR_BEST:
        rule = "best"
    return Pick(rule, _SIMPLE_CLAIMS if claims else _SIMPLE)


def refusal(calibrator: Calibrator, rows: float, n_classes: int, *, claims: bool = False) -> str:
    """Return why a calibrator is not tried on so many rows; empty if it is.

    Example:
        >>> refusal(KINDS["vector"](), 50, 10)
        'left out: 20 parameters ...'
    """
    if claims and not calibrator.takes_claims:
        return "left out: it needs the scores of every class"
    if claims and calibrator.kind in _CURVES and rows < _ROWS_FOR_BEST:
        return f"left out: a curve of one confidence requires {_ROWS_FOR_BEST:,} rows, there are {rows:,.0f}"
    size = calibrator.n_parameters(n_classes)
    if calibrator.penalized:
        return f"left out: fewer rows than classes ({n_classes})" if rows < n_classes else ""
    needed = _ROWS_PER_PARAMETER * size
    return f"left out: {size} parameters need {needed:,} rows, there are {rows:,.0f}" if rows < needed else ""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Out-of-fold losses.

    Attributes:
        fold: Which part each row is in.
        losses: By candidate, the loss of each row under a calibrator fitted without its part.
        inner: By part left out, then candidate: the same, from maps fitted without that part either.
        tops: By candidate, held-out confidence and correctness.
    """

    fold: Array
    losses: Mapping[str, Array]
    inner: Sequence[Mapping[str, Array]]
    tops: Mapping[str, tuple[Array, Array]]

    def nested(self, weights: Array, size: Mapping[str, int], pick: Pick) -> Array:
        """Return each row's loss under the candidate chosen, and fitted, without its part."""
        result = np.empty(len(self.fold))
        for part, losses in enumerate(self.inner):
            inside = self.fold == part
            seen = {name: values[~inside] for name, values in losses.items()}
            result[inside] = self.losses[pick(seen, weights[~inside], size)][inside]
        return result


def _cross_validate(
    predictions: Predictions,
    tried: Mapping[str, Calibrator],
    folds: int,
    rng: np.random.Generator,
    *,
    claims: bool,
) -> _Outcome:
    n_rows = len(predictions)
    fold = rng.permutation(n_rows) % folds
    losses = {name: np.empty(n_rows) for name in tried}
    tops = {name: (np.empty(n_rows), np.empty(n_rows)) for name in tried}
    inner = [{name: np.empty(n_rows) for name in tried} for _ in range(folds)]
    for left_out in [*combinations(range(folds), 1), *combinations(range(folds), 2)]:
        rows = predictions.take(~np.isin(fold, left_out))
        for name, calibrator in tried.items():
            fitted = calibrator._fit_rows(rows, claims=claims)
            for part in left_out:
                held = fold == part
                probs = _probs(fitted, predictions.take(held))
                loss = -np.log(np.maximum(probs[np.arange(len(probs)), predictions.labels[held]], 1e-38))
                if len(left_out) == 1:
                    losses[name][held] = loss
                    top = np.ones(len(probs), int) if claims else probs.argmax(1)
                    tops[name][0][held] = probs[np.arange(len(probs)), top]
                    tops[name][1][held] = top == predictions.labels[held]
                else:
                    other = left_out[0] if part == left_out[1] else left_out[1]
                    inner[other][name][held] = loss
    return _Outcome(fold, losses, inner, tops)


def _probs(calibrator: Calibrator, rows: Predictions) -> Array:
    scores = calibrator._mapped_rows(rows.logits.astype(np.float64), rows)
    probs: Array = softmax(scores) if calibrator.gives == "logits" else scores
    return probs


@dataclass(frozen=True, slots=True)
class Pick:
    """The rule that picks a candidate by its losses; without a name, the best if it clearly beats the simple ones."""

    rule: Rule | None
    simple: tuple[str, ...]

    def __call__(self, losses: Mapping[str, Array], weights: Array, size: Mapping[str, int]) -> str:
        """Return the candidate, by held-out losses of each row, weights of rows and numbers of parameters."""
        means = {name: mean_and_error(values, weights)[0] for name, values in losses.items()}
        best = min(means, key=means.__getitem__)
        if self.rule == "best":
            return best
        near = []
        for name in losses:
            excess, error = mean_and_error(losses[name] - losses[best], weights)
            if excess <= error:
                near.append(name)
        if self.rule == "one_standard_error":
            return min(near, key=lambda name: size[name])
        simple = min((name for name in self.simple if name in means), key=means.__getitem__)
        return simple if simple in near else best


def _ece(confidence: Array, correct: Array, weights: Array) -> float:
    _, gaps = bin_sums(confidence, confidence - correct, weights, equal_width_edges(15))
    return float(expected_error(gaps, weights.sum()))


def _trial(name: str, size: int, outcome: _Outcome, weights: Array, *, note: str) -> Trial:
    if name not in outcome.losses:
        return Trial(name=name, n_parameters=size, note=note)
    gain, error = mean_and_error(outcome.losses["identity"] - outcome.losses[name], weights)
    return Trial(
        name=name,
        n_parameters=size,
        log_loss=mean_and_error(outcome.losses[name], weights)[0],
        improvement=gain,
        error=error,
        ece=_ece(*outcome.tops[name], weights),
        note=note,
    )


def _reason(chosen: str, losses: Mapping[str, Array], weights: Array, rule: Rule | None) -> str:
    best = min(losses, key=lambda name: mean_and_error(losses[name], weights)[0])
    if chosen == "identity":
        if best == "identity":
            return "Leave it alone: no calibrator lowers the held-out log-loss."
        return "Leave it alone: no calibrator lowers the held-out log-loss by more than its standard error."
    if chosen == best:
        return f"Use {chosen}: it has the lowest held-out log-loss."
    if rule == "one_standard_error":
        return f"Use {chosen}: the simplest calibrator within one standard error of the best, {best}."
    return f"Use {chosen}: {best} has a lower held-out log-loss, but not by more than a standard error."


def _too_few(predictions: Predictions, rows: int) -> Choice:
    return Choice(
        calibrator=Identity().fit(predictions),
        trials=(Trial(name="identity", n_parameters=0, note="chosen"),),
        reason=f"Leave it alone: {rows} rows are too few to compare calibrators; at least {_FEWEST_ROWS} are needed.",
        improvement=0.0,
        interval=(0.0, 0.0),
    )


def _line(trial: Trial) -> tuple[str, ...]:
    if np.isnan(trial.log_loss):
        return (trial.name, str(trial.n_parameters), "", "", "", "", trial.note)
    numbers = (trial.log_loss, trial.improvement, trial.error, trial.ece)
    return (trial.name, str(trial.n_parameters), *(f"{number:.4f}" for number in numbers), trial.note)
