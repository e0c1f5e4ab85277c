"""Prior shift: calibrated probabilities for other class frequencies than those that they were calibrated for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy.special import chdtri, expit, logit, ndtri

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.identity import Identity
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, log_softmax, softmax
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.errors import DataError, NotFittedError
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator

__all__ = ["PriorShift", "estimate_priors"]

_TOLERANCE = 1e-9
_MOST_STEPS = 5000
# Labels contradict the assumption if chance explains them in one of so many files.
_LEVEL = 0.001
# Frequencies stay as they were unless a likelihood-ratio test at this level shows that they changed.
_NO_SHIFT_LEVEL = 0.05
# Each end of an interval leaves out so much.
_TAIL = 0.025
# Changes of log-odds that are looked at, and how often a range is halved to find a value in it.
_MOST_TILT, _N_TILTS, _HALVINGS = 40.0, 25, 25
# Every row can be of every class, with so much probability.
_LEAST_SHARE = 1e-12
# Intervals were simulated with so many reference rows of every class.
_FEW_ROWS = 40
_EXACT = (
    "the interval treats the calibrator as exact, so it is too narrow; labeled reference rows add its error"
)
_INNER = "before_"
# Calibrators such as isotonic regression answer exactly 0, which has no finite logit.
_IMPOSSIBLE = 1e-38


def estimate_priors(probs: Array, trained_priors: Array, weights: Array | None = None) -> Array:
    r"""Estimate the class frequencies of unlabeled rows from calibrated probabilities, by maximum likelihood.

    .. math:: \pi' \leftarrow \operatorname{mean}_i p'_i, \qquad p'_{ik} \propto p_{ik} \pi'_k / \pi_k

    The likelihood is concave, so that the iteration has one end.

    Args:
        probs: ``(n, k)``, calibrated for rows with the frequencies ``trained_priors``.
        trained_priors: ``(k,)``, above 0, summing to 1.
        weights: ``(n,)``, or ``(n, b)`` for b estimates at once.

    Returns:
        ``(k,)`` or ``(k, b)``.

    Example:
        >>> probs = np.array([[0.9, 0.1]] * 9 + [[0.1, 0.9]])  # frequencies were even, and one row in ten is of class 1
        >>> estimate_priors(probs, np.array([0.5, 0.5])).round(3)
        array([1., 0.])

    Reference:
        Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a classifier to new a priori probabilities.
    """
    relative = probs / trained_priors
    share = np.ones((len(probs), 1)) if weights is None else weights.reshape(len(probs), -1)
    share = share / share.sum(axis=0)
    priors = np.repeat(trained_priors[:, None], share.shape[1], axis=1)
    for _ in range(_MOST_STEPS):
        fresh = priors * (relative.T @ (share / np.maximum(relative @ priors, 1e-300)))
        change = np.abs(fresh - priors).max()
        priors = fresh / fresh.sum(axis=0)
        if change < _TOLERANCE:
            break
    return priors if weights is not None and weights.ndim == 2 else priors[:, 0]


@final
@dataclass(kw_only=True, eq=False)
class PriorShift(Calibrator):
    r"""Adapt calibrated probabilities to other class frequencies; composes after another calibrator.

    .. math:: p'_k \propto p_k \, \pi'_k / \pi_k

    It assumes that within each class the inputs are distributed as before: only frequencies changed, by a different
    population, or because training resampled or weighted classes. Known frequencies are set by :meth:`set_priors`,
    unknown ones are estimated from unlabeled rows by :meth:`fit_unlabeled`, with an interval. ``fit`` takes the
    frequencies of the labels.

    Args:
        before: The fitted calibrator that is applied first. Probabilities must be calibrated for the old frequencies.
        trained_priors: The old frequencies, ``(k,)``: those of the rows that ``before`` was fitted on by default; of
            the training rows as the loss counted them, if nothing was calibrated since.

    Example:
        >>> from equipoise.calibrators import TemperatureScaling
        >>> before = TemperatureScaling().fit([[2.0, 0.0]] * 4 + [[0.0, 2.0]] * 4, [0, 0, 0, 1, 1, 1, 1, 0])
        >>> adapted = PriorShift(before=before).set_priors([0.9, 0.1])
        >>> softmax(adapted([[2.0, 0.0]])).round(3)  # odds of 3, times 0.9 / 0.5, by 0.1 / 0.5
        array([[0.964, 0.036]])

    Reference:
        Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a classifier to new a priori probabilities;
        Alexandari, Kundaje, Shrikumar (2020), Maximum likelihood with bias-corrected calibration is hard-to-beat at
        label shift adaptation.

    Differs from the authors' code:
        With labeled reference rows, offsets of the classes are fitted on them first, the estimate of EM is averaged
        with one that is corrected by class means over them, and the interval contains their error, too. Probabilities
        are adapted only as far as a likelihood-ratio test shows a change. Labels at hand are compared with the result.
        Frequencies that are estimated as 0 are set to half a row.
    """

    before: Calibrator | None = None
    trained_priors: Sequence[float] | None = None

    kind = "prior_shift"

    def __post_init__(self) -> None:
        if self.before is not None and not self.before.fitted:
            raise NotFittedError("PriorShift: `before` must be fitted. Call fit(predictions) on it first.")
        if self.trained_priors is not None:
            self.trained_priors = tuple(_checked(self.trained_priors, name="trained_priors").tolist())

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's parameters; the calibrator before as its artifact."""
        before = None if self.before is None else self.before.to_artifact()
        return {"before": before, "trained_priors": self.trained_priors}

    @property
    def priors(self) -> Array:
        """The new class frequencies, ``(k,)``, as they were given or estimated."""
        return self.result.parameters["priors"]

    @property
    def interval(self) -> Array:
        """Lower and upper ends of the 95% interval of each new frequency, ``(k, 2)``; equal to it if it was given."""
        return np.stack([self.result.parameters["lower"], self.result.parameters["upper"]], axis=1)

    def n_parameters(self, n_classes: int) -> int:
        """Count the parameters: the frequencies."""
        return n_classes - 1

    def set_priors(self, priors: Sequence[float] | Array) -> Self:
        """Adapt to known class frequencies.

        Args:
            priors: ``(k,)``, above 0; they are divided by their sum.

        Returns:
            The calibrator itself.
        """
        new = _checked(priors, name="priors")
        old = self._old_priors(len(new))
        return self._set(_found(new, old, "to known class frequencies"))

    def fit_unlabeled(
        self,
        predictions: Predictions,
        *,
        reference: Predictions | None = None,
        calibrated: bool = False,
        n_resamples: int = 200,
        seed: int = 0,
    ) -> Self:
        """Estimate the new class frequencies from rows without labels, and adapt to them.

        Args:
            predictions: Uncalibrated predictions, which ``before`` calibrates. Labels, where there are some, only test
                the result.
            reference: Labeled predictions with the old frequencies, uncalibrated too: the rows that ``before`` was
                fitted on, or others. They correct the estimate, and the interval contains their error. Without them,
                the interval treats ``before`` as exact, which makes it too narrow.
            calibrated: Whether the probabilities are calibrated already, so that no ``before`` is needed.
            n_resamples: Bootstrap resamples for the interval, without ``reference``.
            seed: Random seed for the bootstrap.

        Returns:
            The calibrator itself.

        Raises:
            DataError: If nothing calibrates the probabilities, labels contradict the adapted probabilities, or a class
                has fewer than two reference rows.
        """
        if (self.before is None or isinstance(self.before, Identity)) and not calibrated:
            raise DataError(
                "PriorShift.fit_unlabeled: the probabilities are not calibrated, so frequencies cannot be estimated "
                "from them. Pass before=, a fitted calibrator, or calibrated=True if they are."
            )
        log_probs = self._calibrated(predictions)
        weights = row_weights(predictions.weights, len(log_probs))
        offset: Array | float
        if reference is None:
            old, offset, n_source = self._old_priors(log_probs.shape[1]), 0.0, self._n_source()
        else:
            labeled = self._labeled(reference, log_probs.shape[1])
            old, offset, n_source = labeled.frequencies, labeled.offset, _effective(labeled.weights)
        probs = softmax(log_probs + offset)
        n_rows = _effective(weights)
        new = _with_mass(estimate_priors(probs, old, weights), n_rows)
        shift = _shown_shift(probs @ (new / old), weights, n_source, len(old))
        warnings: tuple[str, ...]
        level = _LEVEL / 2 / len(old)
        if reference is None:
            interval, warnings = _bootstrap(probs, old, weights, n_resamples, seed), (_EXACT,)
            allowed = _allowed(probs * (new / old), weights, interval, level)
        else:
            corrected, interval = _corrected(probs, weights, labeled, new)
            _, allowed = _corrected(probs, weights, labeled, new, tail=level)
            # EM has less variance and the correction less bias: the mean of both has a lower log-loss than either.
            new = _with_mass(np.clip((new + corrected) / 2, *interval), n_rows)
            warnings = _few_rows(labeled)
        if predictions.has_labels:
            _check_against_labels(predictions, weights, allowed)
        found = _found(
            new, old, "to unlabeled rows", interval=interval, offset=offset, shift=shift, warnings=warnings
        )
        return self._set(found)

    def _calibrated(self, predictions: Predictions) -> Array:
        scores = predictions.logits.astype(np.float64, copy=False)
        if self.before is not None:
            scores = self.before._mapped(scores)
            if self.before.gives == "probs":
                scores = np.log(np.maximum(scores, _IMPOSSIBLE))
        log_probs: Array = log_softmax(scores)
        return log_probs

    def _labeled(self, reference: Predictions, n_classes: int) -> _Labeled:
        if self.trained_priors is not None:
            raise DataError(
                "PriorShift.fit_unlabeled: expected either `trained_priors` or `reference`, which has the old "
                "frequencies, got both. Leave out one of them."
            )
        log_probs = self._calibrated(reference)
        if log_probs.shape[1] != n_classes:
            raise DataError(
                f"PriorShift.fit_unlabeled: `reference` must have {n_classes} classes, got {log_probs.shape[1]}."
            )
        weights = row_weights(reference.weights, len(log_probs))
        hits = np.equal(reference.labels[:, None], np.arange(n_classes)) * weights[:, None]
        fewest = int(np.argmin(np.count_nonzero(hits, axis=0)))
        if np.count_nonzero(hits[:, fewest]) < 2:
            raise DataError(
                f"PriorShift.fit_unlabeled: `reference` must have at least two rows of every class, got "
                f"{np.count_nonzero(hits[:, fewest])} of class {fewest}. Give more labeled rows."
            )
        frequencies = hits.sum(axis=0) / hits.sum()
        offset = np.zeros(n_classes)
        for _ in range(
            _MOST_STEPS
        ):  # at the maximum of the likelihood, probabilities have the labels' frequencies
            step = np.log(frequencies / np.average(softmax(log_probs + offset), axis=0, weights=weights))
            offset += step
            if np.abs(step).max() < _TOLERANCE:
                break
        probs = softmax(log_probs + offset)
        return _Labeled(probs, weights, hits / hits.sum(axis=0), frequencies, offset)

    def _n_source(self) -> float:
        """Return how many rows the old frequencies are known from; without limit if they were given."""
        rows = None if self.before is None or self.trained_priors is not None else self.before._rows
        return np.inf if rows is None else max(1.0, len(rows.hashes) * 2.0**64 / rows.below)

    def _old_priors(self, n_classes: int) -> Array:
        if self.trained_priors is not None:
            old = np.asarray(self.trained_priors)
        else:
            known = None if self.before is None else self.before.class_frequencies
            if known is None:
                raise DataError(
                    "PriorShift: the class frequencies that the probabilities were calibrated for are not known. Pass "
                    "trained_priors=, one number per class (--trained-priors)."
                )
            old = _checked(known, name="trained_priors")
        if len(old) != n_classes:
            raise DataError(f"PriorShift: `trained_priors` must have {n_classes} numbers, got {len(old)}.")
        return old

    def _set(self, found: FitResult) -> Self:
        self._result = found
        self._n_classes = len(found.parameters["priors"])
        self._frequencies = found.parameters["priors"]
        self._rows = None if self.before is None else self.before._rows
        self._fingerprint = None if self.before is None else self.before.fingerprint
        return self

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return dict.fromkeys(("log_ratio", "priors", "lower", "upper"), (n_classes,))

    def _learn(self, predictions: Predictions) -> FitResult:
        weights = row_weights(predictions.weights, len(predictions))
        counts = np.bincount(predictions.labels, weights, predictions.logits.shape[1])
        new = _with_mass(counts / counts.sum(), float(weights.sum()))
        return _found(new, self._old_priors(len(new)), "to the frequencies of labels")

    def _parameters(self) -> Mapping[str, Array]:
        inner = {} if self.before is None else self.before._parameters()
        return {**self.result.parameters, **{_INNER + name: value for name, value in inner.items()}}

    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        if self.before is None:
            return logits + parameters["log_ratio"]
        inner = {
            name.removeprefix(_INNER): value for name, value in parameters.items() if name.startswith(_INNER)
        }
        xp = array_namespace(logits)
        if len(inner) < len(
            self.before._parameters()
        ):  # while it is fitted, only the new parameters are passed
            inner = dict(self.before._parameters())
        scores = self.before._function()(logits, inner)
        if self.before.gives == "probs":
            return xp.log(xp.clip(scores, _IMPOSSIBLE, None)) + parameters["log_ratio"]
        return log_softmax(scores) + parameters["log_ratio"]


class _Labeled(NamedTuple):
    """Labeled rows with the old frequencies.

    Attributes:
        probs: Calibrated probabilities with the offsets, ``(n, k)``.
        weights: Row weights, ``(n,)``.
        shares: Share of each row in its class, ``(n, k)``; columns sum to 1.
        frequencies: Frequencies of the labels, ``(k,)``.
        offset: What the log-probabilities lack to have these frequencies, ``(k,)``.
    """

    probs: Array
    weights: Array
    shares: Array
    frequencies: Array
    offset: Array

    @property
    def n_rows(self) -> Array:
        """Effective number of rows of each class."""
        counts: Array = 1.0 / (self.shares**2).sum(axis=0)
        return counts


def _found(
    new: Array,
    old: Array,
    how: str,
    *,
    interval: Array | None = None,
    offset: Array | float = 0.0,
    shift: float = 1.0,
    warnings: tuple[str, ...] = (),
) -> FitResult:
    """Return the result: log-odds change by ``shift`` times the ratio of frequencies, from 0 (not at all) to 1."""
    lower, upper = (new, new) if interval is None else interval
    largest = int(np.argmax(np.abs(np.log(new / old))))
    change = f"class {largest} changes most, from {100 * old[largest]:.3g}% to {100 * new[largest]:.3g}%"
    return FitResult(
        parameters={
            "log_ratio": shift * (offset + np.log(new / old)),
            "priors": new,
            "lower": lower,
            "upper": upper,
        },
        words=f"adapts {how}: {change if shift > 0 else 'no change is shown, so probabilities stay as they are'}",
        warnings=warnings,
        nll_before=0.0,
        nll_after=0.0,
    )


def _effective(weights: Array) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def _shown_shift(ratio: Array, weights: Array, n_source: float, n_classes: int) -> float:
    """Return how far to adapt, from 0 to 1, given the likelihood ratio of every row.

    Below the limit of the test chance explains the difference, and adapting to chance would cost log-loss. Above it the
    answer rises quickly to 1. The statistic is scaled down because the old frequencies are known from a sample, too.
    """
    n_rows = _effective(weights)
    statistic = 2 * n_rows * float(np.average(np.log(ratio), weights=weights)) / (1 + n_rows / n_source)
    limit = float(chdtri(n_classes - 1, _NO_SHIFT_LEVEL))
    return 0.0 if statistic <= limit else 1.0 - (limit / statistic) ** 2


def _bootstrap(probs: Array, old: Array, weights: Array, n_resamples: int, seed: int) -> Array:
    draws = numpy_generator(seed, "prior_shift").multinomial(
        len(probs), weights / weights.sum(), size=n_resamples
    )
    resampled = estimate_priors(probs, old, draws.T.astype(np.float64))
    return np.quantile(resampled, [0.025, 0.975], axis=1)


def _corrected(
    probs: Array, weights: Array, labeled: _Labeled, start: Array, *, tail: float = _TAIL
) -> tuple[Array, Array]:
    r"""Correct an estimate by labeled rows, and return it with its interval.

    Let :math:`h_k = (p_k / \pi_k) / \sum_j p_j \pi'_j / \pi_j`, the derivative of the log-likelihood at EM's estimate.
    Whatever the calibrator is worth, its mean over new rows is :math:`H \pi'`, where column :math:`y` of :math:`H` is
    the mean over labeled rows of class :math:`y`. So :math:`\psi = H^{-1} h` has the mean :math:`\pi'`, and mean 1 or 0
    within each class. The interval has all frequencies whose distance from the estimate is at most the normal quantile
    times the standard error *that they would have* (as Wilson's interval for a proportion, which it is for a perfect
    classifier).
    """
    old, n_rows = labeled.frequencies, _effective(weights)
    # One row more of each class: where EM finds none, the first would count too much.
    start = (n_rows * start + 1) / (n_rows + len(start))
    new_h, old_h = (one / old / (one @ (start / old))[:, None] for one in (probs, labeled.probs))
    inverse = np.linalg.pinv(labeled.shares.T @ old_h)
    new_psi, share = new_h @ inverse, weights / weights.sum()
    estimate = share @ new_psi
    held, scatter = _scatter(new_h * start, new_psi, share, n_rows, old_h @ inverse, labeled)
    return np.clip(estimate, 0, 1), _ends(estimate, held, scatter, n_rows, tail)


def _scatter(
    adapted: Array, psi: Array, share: Array, n_rows: float, old_psi: Array, labeled: _Labeled
) -> tuple[Array, Array]:
    r"""Return the variance of the estimates from the scatter of :math:`\psi` within classes.

    Labeled rows alone know little about this scatter. If 2 of 50 rows look like another class, 5 could have as well:
    then the estimate for that class is too large just where its variance is too small. So new rows count, too. They are
    shared among the classes by their adapted probabilities, whose log-odds for one class are tilted, from rows of this
    class being rare among the new ones to their being frequent.

    Returns:
        For each tilt (rows) and class: its share of the new rows, and the variance.
    """
    adapted = adapted + _LEAST_SHARE
    adapted /= adapted.sum(axis=1, keepdims=True)
    log_odds, share = logit(adapted), share[:, None]
    few = 0.5 / n_rows
    middle = _tilt(log_odds, share, np.clip(share[:, 0] @ psi, few, 1 - few))
    n_labeled = labeled.n_rows[:, None]
    old_first, old_square = (labeled.shares.T @ old_psi**power for power in (1, 2))
    held, scatter = [], []
    for tilt in np.sinh(np.linspace(-1, 1, _N_TILTS) * np.arcsinh(_MOST_TILT)):
        own = share * expit(log_odds + middle + tilt)
        others = (share - own) / (1 - adapted)
        sums = []  # by class that has the rows, and class that is tilted
        for values in (np.ones_like(psi), psi, psi**2):
            found = adapted.T @ (others * values)
            np.fill_diagonal(found, (own * values).sum(axis=0))
            sums.append(found)
        frequency, first, square = sums
        count = n_labeled + n_rows * frequency
        mean = (n_labeled * old_first + n_rows * first) / count
        variance = (n_labeled * old_square + n_rows * square) / count - mean**2
        variance = np.maximum(variance, 0) * count / (count - 1)
        held.append(np.diag(frequency))
        scatter.append((variance * (frequency / n_rows + frequency**2 / n_labeled)).sum(axis=0))
    return np.stack(held), np.stack(scatter)


def _tilt(log_odds: Array, share: Array, frequency: Array) -> Array:
    """Return what the log-odds of each class lack to have a frequency."""
    low, high = np.full(len(frequency), -_MOST_TILT), np.full(len(frequency), _MOST_TILT)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = (share * expit(log_odds + middle)).sum(axis=0) < frequency
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: Array = (low + high) / 2
    return found


def _ends(estimate: Array, held: Array, scatter: Array, n_rows: float, tail: float) -> Array:
    """Return the lowest and the highest frequency that the estimates allow, ``(2, k)``."""
    quantile, columns = ndtri(tail) ** 2, np.arange(len(estimate))

    def allowed(frequency: Array) -> Array:
        drawn = frequency * (1 - frequency) / n_rows
        low, high = np.zeros(len(estimate)), np.full(len(estimate), len(held) - 1.0)
        for _ in range(_HALVINGS):
            position = (low + high) / 2
            before = np.minimum(position.astype(np.int64), len(held) - 2)
            part = position - before
            own, within = (
                one[before, columns] * (1 - part) + one[before + 1, columns] * part for one in (held, scatter)
            )
            # If so, so much of the difference is expected from the draw of rows, and the rest from scatter.
            expected = frequency + (estimate - frequency) * drawn / np.maximum(drawn + within, 1e-300)
            low, high = np.where(own < expected, position, low), np.where(own < expected, high, position)
        near: Array = (estimate - frequency) ** 2 <= quantile * (drawn + within)
        return near

    ends = []
    for bound in (np.zeros(len(estimate)), np.ones(len(estimate))):
        inside, outside = np.clip(estimate, 0, 1), bound
        reached = allowed(bound)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            kept = allowed(middle)
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        ends.append(np.where(reached, bound, inside))
    return np.stack(ends)


def _few_rows(labeled: _Labeled) -> tuple[str, ...]:
    """Return a warning if a class has too few labeled rows for the interval to be relied on."""
    fewest = int(np.argmin(labeled.n_rows))
    if labeled.n_rows[fewest] >= _FEW_ROWS:
        return ()
    return (
        f"class {fewest} has {labeled.n_rows[fewest]:.0f} reference rows; with fewer than {_FEW_ROWS} of every class "
        "the intervals may be too narrow",
    )


def _checked(priors: Sequence[float] | Array, *, name: str) -> Array:
    """Return frequencies that sum to 1; a class without mass is an error."""
    values = np.asarray(priors, np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise DataError(f"PriorShift: `{name}` must be one number per class, at least two, got {priors!r}.")
    if not (values > 0).all():
        raise DataError(
            f"PriorShift: `{name}` must be above 0, got {values.min():g} for class {int(values.argmin())}. A class "
            "without rows cannot be adapted; give it a small frequency, such as 1e-4."
        )
    frequencies: Array = values / values.sum()
    return frequencies


def _with_mass(priors: Array, n_rows: float) -> Array:
    """Return frequencies of which none is below half a row."""
    raised = np.maximum(priors, 0.5 / max(n_rows, 1.0))
    frequencies: Array = raised / raised.sum()
    return frequencies


def _allowed(adapted: Array, weights: Array, interval: Array, level: float) -> Array:
    """Return between which ends the shares of labels agree with adapted probabilities, ``(2, k)``."""
    probs = adapted / adapted.sum(axis=1, keepdims=True)
    share = weights / weights.sum()
    expected = share @ probs
    # Labels differ from frequencies by chance, and estimates of these by what the interval says.
    error = np.sqrt(
        share**2 @ (probs * (1 - probs)) + ((interval[1] - interval[0]) / 2 / ndtri(1 - _TAIL)) ** 2
    )
    half = ndtri(1 - level) * error
    return np.stack([expected - half, expected + half])


def _check_against_labels(predictions: Predictions, weights: Array, allowed: Array) -> None:
    """Raise if a class is more or less frequent among labels than the estimate allows by chance."""
    hits = np.equal(predictions.labels[:, None], np.arange(allowed.shape[1]))
    found = np.average(hits, axis=0, weights=weights)
    beyond = np.maximum(allowed[0] - found, found - allowed[1])
    worst = int(beyond.argmax())
    if beyond[worst] > 0:
        low, high = 100 * np.clip(allowed[:, worst], 0, 1)
        raise DataError(
            f"PriorShift.fit_unlabeled: labels contradict the adapted probabilities: class {worst} is "
            f"{100 * found[worst]:.3g}% of the labels, where {low:.3g}% to {high:.3g}% are expected. More than class "
            "frequencies has changed: fit a new calibrator on these rows."
        )
