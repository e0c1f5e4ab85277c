"""The final test of `auto`: a candidate is chosen on some rows, and replaces the baseline only if others prefer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any, final

import numpy as np
from scipy.special import stdtr, stdtrit

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.fit_warnings import mean_and_error
from equipoise.calibrators.forms import is_claims
from equipoise.calibrators.loading import KINDS
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.selection import CANDIDATES, picking, refusal
from equipoise.calibrators.zeros import floor_of, with_floor
from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, SplitError
from equipoise.core.names import look_up
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.combine import same_outcomes
from equipoise.core.probabilities import softmax
from equipoise.core.seeds import numpy_generator
from equipoise.core.tables import Table

__all__ = [
    "BASELINE",
    "FEWEST_ROWS",
    "Candidate",
    "FinalTest",
    "choose_and_test",
    "choosing_nll",
    "cross_fitted",
]

#: The calibrator of the baseline, and the one that sources are compared after.
BASELINE = "temperature"
#: Rows that are needed to choose on one half and test on the other.
FEWEST_ROWS = 60
_FOLDS = 5
#: Of the level, what the planned finalist gets; the one that was chosen on half of the rows gets the rest.
_PLANNED_SHARE = 0.8
_HEADS = ("candidate", "NLL", "gain", "+-", "")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One line of everything tried.

    Attributes:
        source: The network or ensemble that predicted.
        calibrator: The calibrator after it.
        nll: Mean over the choosing rows, each after a calibrator that was fitted without it; nan if not tried.
        gain: How much lower that is than the baseline's.
        error: Standard error of the gain.
        note: What became of it.
    """

    source: str
    calibrator: str
    nll: float = nan
    gain: float = nan
    error: float = nan
    note: str = ""

    @property
    def label(self) -> str:
        """The name in tables."""
        return f"{self.source} + {self.calibrator}" if self.source else self.calibrator


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GainTest:
    """The paired test of one finalist against the baseline.

    Attributes:
        finalist: The candidate.
        n_rows: Number of rows; none of them took part in choosing the finalist.
        nll: Mean NLL of the finalist, each row after a calibrator that was fitted without it.
        baseline_nll: The same of the baseline.
        gain: The baseline's NLL less the finalist's.
        interval: Interval of the gain.
        p_value: One-sided, of no gain.
        needed: The p-value below which the finalist is preferred.
    """

    finalist: Candidate
    n_rows: int
    nll: float
    baseline_nll: float
    gain: float
    interval: tuple[float, float]
    p_value: float
    needed: float

    @property
    def is_preferred(self) -> bool:
        """Whether the rows prefer the finalist."""
        return self.p_value <= self.needed

    def describe(self, level: float) -> str:
        """Return the gain with its interval in words."""
        low, high = self.interval
        return (
            f"gain in NLL {self.gain:.4f} ({100 * self.gain / self.baseline_nll:.1f}%), {100 * (2 * level - 1):g}% "
            f"interval {low:.4f} to {high:.4f}, p = {self.p_value:.2g} where at most {self.needed:.2g} is needed"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FinalTest:
    """The answer, and the tests behind it.

    Attributes:
        answer: The candidate to use: a finalist that its test prefers, else the baseline.
        calibrator: The calibrator of the answer, fitted on all held-out rows.
        baseline: The first source after temperature scaling.
        candidates: Everything tried.
        tests: One per finalist.
        level: Level of the tests together.
        n_choosing: Number of rows that candidates were chosen on.
    """

    answer: Candidate
    calibrator: Calibrator
    baseline: Candidate
    candidates: tuple[Candidate, ...]
    tests: tuple[GainTest, ...]
    level: float
    n_choosing: int

    @property
    def is_baseline(self) -> bool:
        """Whether the answer is the baseline."""
        return self.answer == self.baseline

    @property
    def test(self) -> GainTest | None:
        """The test of the answer; that of the likeliest finalist if the answer is the baseline."""
        found = [one for one in self.tests if self.is_baseline or one.finalist == self.answer]
        return min(found, key=lambda one: one.p_value, default=None)

    @property
    def statement(self) -> str:
        """What was chosen, how sure that is, and the gain over the baseline with its interval."""
        base, test = self.baseline.label, self.test
        if test is None:
            return f"Use {base}: no candidate was better on the {self.n_choosing:,} rows that candidates are chosen on."
        rows, measured = f"{test.n_rows:,} held-out rows that did not choose it", test.describe(self.level)
        if self.is_baseline:
            return f"Use {base}. {test.finalist.label} is not shown to be better on {rows}: {measured}."
        return (
            f"Use {self.answer.label}. On {rows}, its NLL is {test.nll:.4f}, and that of {base} is "
            f"{test.baseline_nll:.4f}: {measured}."
        )

    def table(self) -> Table:
        """Return everything tried, best first."""
        order = sorted(self.candidates, key=lambda one: (np.isnan(one.nll), one.nll))
        notes = (
            f"NLL on {self.n_choosing:,} choosing rows, each after a calibrator fitted without it. Gain: over "
            f"{self.baseline.label}, with its standard error.",
        )
        return Table.of(_HEADS, map(_line, order), align="lrrrl", notes=notes)

    def __str__(self) -> str:
        return f"{self.table().to_text()}\n\n{self.statement}"

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the calibrator as plain values."""
        numbers = ("n_rows", "nll", "baseline_nll", "gain", "p_value", "needed", "is_preferred")
        columns = ("label", "source", "calibrator", "nll", "gain", "error", "note")
        return {
            "answer": self.answer.label,
            "source": self.answer.source,
            "calibrator": self.answer.calibrator,
            "baseline": self.baseline.label,
            "is_baseline": self.is_baseline,
            "statement": self.statement,
            "level": 1 - self.level,
            "interval_level": 2 * self.level - 1,
            "n_choosing": self.n_choosing,
            "tests": [
                {
                    "finalist": one.finalist.label,
                    "interval": list(one.interval),
                    **{name: getattr(one, name) for name in numbers},
                }
                for one in self.tests
            ],
            "tried": [{name: getattr(one, name) for name in columns} for one in self.candidates],
        }


def choose_and_test(
    sources: Mapping[str, Predictions],
    *,
    planned: str | None = None,
    calibrators: Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> FinalTest:
    """Choose among sources of predictions and calibrators, and test the choice on rows that took no part in it.

    The first source after temperature scaling is the baseline. There are at most two finalists. One is chosen on half
    of the rows: the source with the lowest NLL after temperature scaling, and then its calibrator by the rule of
    :func:`equipoise.calibrators.choose`; it is tested on the other half. One is the planned source after temperature
    scaling, which no row has chosen; it is tested on all rows. Each test compares the per-row NLL with the baseline's,
    in pairs, every row after calibrators that were fitted without it. The tests share the level as weighted Holm tests:
    the planned finalist has four fifths of it, the chosen one a fifth, and both have all of it once the other is
    preferred. So a finalist that is not better than the baseline is the answer with a probability of at most
    ``1 - level``.

    Args:
        sources: Predictions by name, of the same held-out rows in the same order.
        planned: Name of a source that was fixed before any of these rows was read; None if there is none.
        calibrators: Names of calibrators to try; by default those of :func:`equipoise.calibrators.choose`.
        level: Level of the one-sided tests together.
        seed: Random seed for halves and folds.

    Raises:
        DataError: If rows differ, are too few, or have no scores of every class.
        SplitError: If the rows are from the split ``test``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(size=(800, 3)) * 2
        >>> labels = (logits + rng.gumbel(size=(800, 3))).argmax(1)
        >>> noisy = Predictions(logits=logits + rng.normal(size=(800, 3)), labels=labels)
        >>> found = choose_and_test({"one": noisy, "mean": Predictions(logits=logits, labels=labels)})
        >>> found.answer.label
        'mean + temperature'
    """
    if not 0.5 < level < 1:
        raise ValueError(
            f"choose_and_test: `level` must be between 0.5 and 1, got {level}. Use for example 0.95."
        )
    first = _checked(sources)
    rows = {name: _with_counted_zeros(one) for name, one in sources.items()}
    weights = row_weights(first.weights, len(first))
    half, fold = _halves(first, seed)
    names = CANDIDATES if calibrators is None else calibrators
    table, best = _tried(rows, weights[half], names, half, fold)
    base = (next(iter(rows)), BASELINE)
    # Which rows each finalist is tested on.
    judged = {best: ~half} | ({} if planned is None else {(planned, BASELINE): np.ones(len(half), bool)})
    judged.pop(base, None)
    losses = {
        key: _cross_fitted_losses(rows[key[0]], KINDS[key[1]](), fold)
        for key in dict.fromkeys((base, *judged))
    }
    found = [
        _gain_test(table[key], losses[base][scored], losses[key][scored], weights[scored], level)
        for key, scored in judged.items()
    ]
    planned_share = 0.0 if planned is None else _PLANNED_SHARE
    shares = [planned_share if key == (planned, BASELINE) else 1 - planned_share for key in judged]
    tests = _holm(found, shares, 1 - level)
    # Between two that are preferred, the rows decide that took no part in choosing either.
    preferred = [
        (mean_and_error(losses[key][~half], weights[~half])[0], one.finalist)
        for key, one in zip(judged, tests, strict=True)
        if one.is_preferred
    ]
    answer = min(preferred, key=lambda one: one[0])[1] if preferred else table[base]
    return FinalTest(
        answer=answer,
        calibrator=KINDS[answer.calibrator]().fit(sources[answer.source]),
        baseline=table[base],
        candidates=tuple(table.values()),
        tests=tuple(tests),
        level=level,
        n_choosing=int(half.sum()),
    )


def _gain_test(finalist: Candidate, before: Array, after: Array, weights: Array, level: float) -> GainTest:
    """Return the one-sided paired test of a finalist; which p-value it needs is not known yet."""
    used = int((weights > 0).sum())
    gain, error = mean_and_error(before - after, weights)
    error *= float(np.sqrt(used / (used - 1)))
    reach = float(stdtrit(used - 1, level)) * error
    return GainTest(
        finalist=finalist,
        n_rows=len(before),
        nll=mean_and_error(after, weights)[0],
        baseline_nll=mean_and_error(before, weights)[0],
        gain=gain,
        interval=(gain - reach, gain + reach),
        p_value=float(stdtr(used - 1, -gain / error)) if error else float(gain <= 0),
        needed=0.0,
    )


def _holm(tests: Sequence[GainTest], shares: Sequence[float], level: float) -> list[GainTest]:
    """Return at most two tests with the p-value that each needs, by Holm's procedure with weights.

    Example:
        >>> one = _gain_test(Candidate(source="a", calibrator="b"), np.ones(4), np.zeros(4), np.ones(4), 0.95)
        >>> [test.needed for test in _holm([one, replace(one, p_value=0.03)], [0.2, 0.8], 0.05)]
        [0.05, 0.05]
        >>> two = [replace(one, p_value=0.03), replace(one, p_value=0.2)]
        >>> [round(test.needed, 4) for test in _holm(two, [0.2, 0.8], 0.05)]
        [0.01, 0.04]
    """
    passed = [test.p_value <= share * level for test, share in zip(tests, shares, strict=True)]
    return [
        replace(test, needed=level if any(passed[:place] + passed[place + 1 :]) else share * level)
        for place, (test, share) in enumerate(zip(tests, shares, strict=True))
    ]


def choosing_nll(rows: Predictions, *, seed: int = 0) -> float:
    """Return the NLL after temperature scaling on the choosing half, which never reads the kept half.

    Args:
        rows: Held-out predictions.
        seed: As for :func:`choose_and_test`.

    Example:
        >>> rows = Predictions(logits=[[2.0, 0.0]] * 80, labels=[0, 0, 0, 1] * 20)
        >>> 0.5 < choosing_nll(rows) < 0.7
        True
    """
    half, fold = _halves(_checked({"": rows}), seed)
    losses = _cross_fitted_losses(_with_counted_zeros(rows), KINDS[BASELINE](), np.where(half, fold, -1))[
        half
    ]
    return mean_and_error(losses, row_weights(rows.weights, len(rows))[half])[0]


def _halves(rows: Predictions, seed: int) -> tuple[Array, Array]:
    """Return which rows candidates are chosen on, and the fold of every row; rows with the same id stay together."""
    rng = numpy_generator(seed, "auto")
    unit = np.arange(len(rows))
    if rows.rows.named:
        unit = np.unique(rows.rows.hashes, return_inverse=True)[1]
    half, fold = (rng.permutation(int(unit.max()) + 1) % parts for parts in (2, _FOLDS))
    return half[unit] == 0, fold[unit]


def _tried(
    rows: Mapping[str, Predictions], weights: Array, names: Sequence[str], half: Array, fold: Array
) -> tuple[dict[tuple[str, str], Candidate], tuple[str, str]]:
    """Return the table of candidates, and the best of them: first the source, then its calibrator."""
    fold, size = np.where(half, fold, -1), next(iter(rows.values())).probs.shape[1]
    losses = {
        (name, BASELINE): _cross_fitted_losses(one, KINDS[BASELINE](), fold)[half]
        for name, one in rows.items()
    }
    base = next(iter(losses.values()))
    leader = min(losses, key=lambda key: mean_and_error(losses[key], weights)[0])[0]
    made = {name: look_up(name, KINDS, what="calibrator")() for name in (BASELINE, *names)}
    made.pop("identity", None)  # after temperature scaling contains it
    refused = {
        name: refusal(one, float(weights.sum()), size) for name, one in made.items() if name != BASELINE
    }
    for name, why in refused.items():
        if not why:
            losses[leader, name] = _cross_fitted_losses(rows[leader], made[name], fold)[half]
    own = {name: one for (source, name), one in losses.items() if source == leader}
    parameters = {name: one.n_parameters(size) for name, one in made.items()}
    chosen = picking(float(weights.sum()))(own, weights, parameters)
    table = {key: _candidate(*key, one, base, weights) for key, one in losses.items()}
    for name, why in refused.items():
        if why:
            table[leader, name] = Candidate(source=leader, calibrator=name, note=why)
    return table, (leader, chosen)


def cross_fitted(rows: Predictions, calibrator: Calibrator, *, seed: int = 0) -> Predictions:
    """Return predictions of which each was calibrated without its fold.

    Args:
        rows: Held-out predictions.
        calibrator: Fitted once for each fold.
        seed: As for :func:`choose_and_test`.

    Example:
        >>> rows = Predictions(logits=[[2.0, 0.0]] * 80, labels=[0, 0, 0, 1] * 20)
        >>> cross_fitted(rows, KINDS["temperature"]()).kind
        'probs'
    """
    counted = _with_counted_zeros(rows)
    probs = _cross_fitted_probs(counted, calibrator, _halves(rows, seed)[1])
    return rows.with_scores(probs=probs[:, 1] if rows.one_column else probs)


def _cross_fitted_probs(rows: Predictions, calibrator: Calibrator, fold: Array) -> Array:
    """Return the probabilities of each row after a calibrator that was fitted without its fold.

    Rows of the fold -1 take no part: they are nan, and nothing is fitted on them.
    """
    found = np.full(rows.probs.shape, nan)
    for part in np.unique(fold[fold >= 0]):
        held = fold == part
        fitted = calibrator._fit_rows(rows.take(~held & (fold >= 0)), claims=False)
        scores = fitted._mapped(rows.logits[held].astype(np.float64))
        found[held] = softmax(scores) if fitted.gives == "logits" else scores
    return found


def _cross_fitted_losses(rows: Predictions, calibrator: Calibrator, fold: Array) -> Array:
    """Return the NLL of each row after a calibrator that was fitted without its fold.

    Example:
        >>> rows = Predictions(logits=[[2.0, 0.0]] * 8, labels=[0, 0, 0, 1] * 2)
        >>> _cross_fitted_losses(rows, KINDS["temperature"](), np.arange(8) // 4).mean().round(4).item()
        0.5623
    """
    probs = _cross_fitted_probs(rows, calibrator, fold)
    losses: Array = -np.log(np.maximum(probs[np.arange(len(probs)), rows.labels], 1e-38))
    return losses


def _checked(sources: Mapping[str, Predictions]) -> Predictions:
    """Return the first source; raise unless all are of the same labeled rows, and enough of them."""
    where = "auto"
    first = next(iter(sources.values()))
    if any(one.split == "test" for one in sources.values()):
        raise SplitError(
            f"{where}: the rows are from the split 'test', which is scored once. Choose on 'calib'."
        )
    if not first.has_labels:
        raise DataError(
            f"{where}: expected labeled predictions, got none with labels. Add a column of labels."
        )
    if is_claims(first) or not first.has_scores:
        raise DataError(
            f"{where}: expected the scores of every class, got only confidences. Use `equipoise calibrate`, which "
            "calibrates confidences."
        )
    if len(first) < FEWEST_ROWS:
        raise DataError(
            f"{where}: expected at least {FEWEST_ROWS} held-out rows, half to choose on and half to test on, got "
            f"{len(first)}. Hold out more rows, or use `equipoise calibrate`."
        )
    for name, one in sources.items():
        if not same_outcomes(first, one) or one.n_classes != first.n_classes:
            raise DataError(f"{where}: {name!r} must predict the same rows as {next(iter(sources))!r}.")
    return first


def _with_counted_zeros(rows: Predictions) -> Predictions:
    floor = floor_of(rows).values
    return with_floor(rows, floor) if floor else rows


def _candidate(source: str, calibrator: str, losses: Array, baseline: Array, weights: Array) -> Candidate:
    gain, error = mean_and_error(baseline - losses, weights)
    nll = mean_and_error(losses, weights)[0]
    return Candidate(source=source, calibrator=calibrator, nll=nll, gain=gain, error=error)


def _line(one: Candidate) -> tuple[str, ...]:
    if np.isnan(one.nll):
        return (one.label, "", "", "", one.note)
    return (one.label, f"{one.nll:.4f}", f"{one.gain:.4f}", f"{one.error:.4f}", one.note)
