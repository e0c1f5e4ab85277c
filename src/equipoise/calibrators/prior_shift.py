"""Prior shift: calibrated probabilities for other class frequencies than those that they were calibrated for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, final

import numpy as np
from scipy.special import chdtri, ndtri

from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.identity import Identity
from equipoise.calibrators.one_vs_rest import row_weights
from equipoise.calibrators.prior_estimates import (
    TAIL,
    LabeledRows,
    adapt_by_class,
    bootstrap_interval,
    class_text,
    correct_by_labels,
    effective_rows,
    estimate_priors,
    warn_of_few_rows,
    with_mass,
)
from equipoise.calibrators.result import FitResult
from equipoise.core.array_functions import AnyArray, log_softmax, softmax
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.errors import DataError, NotFittedError
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.combine import order_classes
from equipoise.core.rows import check_disjoint

__all__ = ["PriorShift", "estimate_priors"]

_WHERE = "PriorShift.fit_unlabeled"
# Shares may differ from a sum of 1 by so much.
_MOST_ROUNDING = 0.03
# Labels contradict the assumption if chance explains them in one of so many files.
_LEVEL = 0.001
# Frequencies stay as they were unless a likelihood-ratio test at this level shows that they changed.
_NO_SHIFT_LEVEL = 0.05
_EXACT = (
    "the interval treats the calibrator as exact, so it is too narrow; labeled reference rows add its error"
)
_INNER = "before_"
# Calibrators such as isotonic regression answer exactly 0, which has no finite logit.
_IMPOSSIBLE = 1e-38


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
            priors: Shares or counts ``(k,)``, above 0; they are divided by their sum.

        Returns:
            The calibrator itself.
        """
        new = _checked(priors, name="priors")
        old = self._old_priors(len(new), given="`priors`")
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
            DataError: If nothing calibrates the probabilities, they were calibrated before, labels contradict the
                assumption, or a class has fewer than two reference rows.
            SplitError: If rows are among the reference rows, too.
        """
        if n_resamples < 1:
            raise ValueError(f"{_WHERE}: `n_resamples` must be 1 or more, got {n_resamples}.")
        if (self.before is None or isinstance(self.before, Identity)) and not calibrated:
            raise DataError(
                f"{_WHERE}: the probabilities are not calibrated, so frequencies cannot be estimated "
                "from them. Fit a calibrator (before=) first. If they are calibrated, say so: calibrated=True or "
                "--calibrated."
            )
        if reference is not None:
            problem = "rows are among the reference rows, too. Leave them out of one of the two."
            new_rows, old_rows = predictions.rows_without_outcomes, reference.rows_without_outcomes
            check_disjoint(new_rows, old_rows, where=_WHERE, problem=problem)
            reference, predictions = order_classes(reference, predictions, where=_WHERE)
        log_probs = self._calibrated(predictions)
        weights = row_weights(predictions.weights, len(log_probs))
        offset: Array | float
        if reference is None:
            old, offset, n_source = self._old_priors(log_probs.shape[1]), 0.0, self._n_source()
        else:
            labeled = self._labeled(reference, log_probs.shape[1])
            old, offset, n_source = labeled.frequencies, labeled.offset, effective_rows(labeled.weights)
        probs = softmax(log_probs + offset)
        n_rows = effective_rows(weights)
        new = with_mass(estimate_priors(probs, old, weights), n_rows)
        shift = _shown_shift(probs @ (new / old), weights, n_source, len(old))
        warnings: tuple[str, ...]
        allowed: Callable[[float], Array]
        if reference is None:
            interval, warnings = bootstrap_interval(probs, old, weights, n_resamples, seed), (_EXACT,)
            allowed = partial(_allowed, probs * (new / old), weights, interval)
        else:
            adapted = adapt_by_class(log_probs, weights, labeled)
            corrected, allowed = correct_by_labels(probs, adapted, weights, labeled, new)
            interval = allowed(TAIL)
            # EM has less variance and the correction less bias: the mean of both has a lower log-loss than either.
            new = with_mass(np.clip((new + corrected) / 2, *interval), n_rows)
            warnings = warn_of_few_rows(labeled, predictions.class_names)
        if predictions.has_labels:
            _check_against_labels(predictions, weights, allowed(_LEVEL / 2 / len(old)))
            if reference is not None:
                _check_recognition(predictions, reference)
        found = _found(
            new,
            old,
            "to unlabeled rows",
            interval=interval,
            offset=offset,
            shift=shift,
            warnings=warnings,
            class_names=predictions.class_names,
        )
        return self._set(found)

    def _calibrated(self, predictions: Predictions) -> Array:
        if self.before is not None and predictions.fitted_on is not None:
            raise DataError(
                f"{_WHERE}: a calibrator was applied to these predictions already, and `before` would be the second. "
                "Pass the raw predictions."
            )
        scores = predictions.logits.astype(np.float64, copy=False)
        if self.before is not None:
            scores = self.before._mapped(scores)
            if self.before.gives == "probs":
                scores = np.log(np.maximum(scores, _IMPOSSIBLE))
        log_probs: Array = log_softmax(scores)
        return log_probs

    def _labeled(self, reference: Predictions, n_classes: int) -> LabeledRows:
        if self.trained_priors is not None:
            raise DataError(
                f"{_WHERE}: expected either `trained_priors` or `reference`, which has the old "
                "frequencies, got both. Leave out one of them."
            )
        log_probs = self._calibrated(reference)
        if log_probs.shape[1] != n_classes:
            raise DataError(f"{_WHERE}: `reference` must have {n_classes} classes, got {log_probs.shape[1]}.")
        weights = row_weights(reference.weights, len(log_probs))
        return LabeledRows.of(log_probs, reference.labels, weights, reference.class_names)

    def _n_source(self) -> float:
        """Return how many rows the old frequencies are known from; without limit if they were given."""
        rows = None if self.before is None or self.trained_priors is not None else self.before._rows
        return np.inf if rows is None else max(1.0, len(rows.hashes) * 2.0**64 / rows.below)

    def _old_priors(self, n_classes: int, *, given: str = "the predictions") -> Array:
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
            raise DataError(
                f"PriorShift: {given} and `trained_priors` must have equally many classes, got {n_classes} and "
                f"{len(old)}. Give one number per class."
            )
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
        new = with_mass(counts / counts.sum(), float(weights.sum()))
        old, names = self._old_priors(len(new)), predictions.class_names
        return _found(new, old, "to the frequencies of labels", class_names=names)

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


def _found(
    new: Array,
    old: Array,
    how: str,
    *,
    interval: Array | None = None,
    offset: Array | float = 0.0,
    shift: float = 1.0,
    warnings: tuple[str, ...] = (),
    class_names: Sequence[str] | None = None,
) -> FitResult:
    """Return the result: log-odds change by ``shift`` times the ratio of frequencies, from 0 (not at all) to 1."""
    lower, upper = (new, new) if interval is None else interval
    largest = int(np.argmax(np.abs(np.log(new / old))))
    name = class_text(largest, class_names)
    change = f"{name} changes most, from {100 * old[largest]:.3g}% to {100 * new[largest]:.3g}%"
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


def _shown_shift(ratio: Array, weights: Array, n_source: float, n_classes: int) -> float:
    """Return how far to adapt, from 0 to 1, given the likelihood ratio of every row.

    Below the limit of the test chance explains the difference, and adapting to chance would cost log-loss. Above it the
    answer rises quickly to 1. The statistic is scaled down because the old frequencies are known from a sample, too.
    """
    n_rows = effective_rows(weights)
    statistic = 2 * n_rows * float(np.average(np.log(ratio), weights=weights)) / (1 + n_rows / n_source)
    limit = float(chdtri(n_classes - 1, _NO_SHIFT_LEVEL))
    return 0.0 if statistic <= limit else 1.0 - (limit / statistic) ** 2


def _checked(priors: Sequence[float] | Array, *, name: str) -> Array:
    """Return frequencies that sum to 1; a class without mass is an error."""
    try:
        values = np.asarray(priors, np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise DataError(f"PriorShift: `{name}` must be one number per class, at least two, got {priors!r}.")
    if not (values > 0).all():
        raise DataError(
            f"PriorShift: `{name}` must be above 0, got {values.min():g} for class {int(values.argmin())}. A class "
            "without rows cannot be adapted; give it a small frequency, such as 1e-4."
        )
    total = float(values.sum())
    if values.max() < 1 and abs(total - 1) > _MOST_ROUNDING:
        raise DataError(
            f"PriorShift: `{name}` must be shares that sum to 1, or counts, got shares that sum to {total:.4g}. "
            "Correct them."
        )
    frequencies: Array = values / total
    return frequencies


def _allowed(adapted: Array, weights: Array, interval: Array, level: float) -> Array:
    """Return between which ends the shares of labels agree with adapted probabilities, ``(2, k)``."""
    probs = adapted / adapted.sum(axis=1, keepdims=True)
    share = weights / weights.sum()
    expected = share @ probs
    # Labels differ from frequencies by chance, and estimates of these by what the interval says.
    error = np.sqrt(
        share**2 @ (probs * (1 - probs)) + ((interval[1] - interval[0]) / 2 / ndtri(1 - TAIL)) ** 2
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
            f"{_WHERE}: labels contradict the adapted probabilities: {class_text(worst, predictions.class_names)} is "
            f"{100 * found[worst]:.3g}% of the labels, where {low:.3g}% to {high:.3g}% are expected. More than class "
            "frequencies has changed: fit a new calibrator on these rows."
        )


def _check_recognition(predictions: Predictions, reference: Predictions) -> None:
    """Raise if rows of the same class are recognized better or worse than the reference rows.

    If inputs of each class are distributed as before, so is the probability of the true class before calibration, which
    no reference row was used for. Means within classes are compared, with the variance of the rows of both files.
    """
    hits, probs, weights = [], [], []
    for rows in (predictions, reference):
        hits.append(np.equal(rows.labels[:, None], np.arange(rows.probs.shape[1])))
        probs.append(rows.probs[hits[-1]])
        weights.append(row_weights(rows.weights, len(rows)))
    share, old_share = (one * weight[:, None] for one, weight in zip(hits, weights, strict=True))
    count, old_count = share.sum(axis=0), old_share.sum(axis=0)
    mean, old_mean = probs[0] @ share / np.maximum(count, 1e-300), probs[1] @ old_share / old_count
    pooled = (mean * count + old_mean * old_count) / (count + old_count)
    squares = sum(
        ((one[:, None] - pooled) ** 2 * part).sum(axis=0)
        for one, part in zip(probs, (share, old_share), strict=True)
    )
    # Rows of one class are equal under the assumption: this is the variance when they are mixed.
    scatter = squares / np.maximum(count + old_count - 1, 1)
    n_rows, n_old = (
        one.sum(axis=0) ** 2 / np.maximum((one**2).sum(axis=0), 1e-300) for one in (share, old_share)
    )
    part = count / count.sum()
    error = float(np.sqrt(part**2 @ (scatter * (1 / np.maximum(n_rows, 1) + 1 / n_old))))
    difference = float(part @ (mean - old_mean))
    if abs(difference) > ndtri(1 - _LEVEL / 2) * error:
        raise DataError(
            f"{_WHERE}: labels contradict the assumption that the inputs of each class are distributed as before: the "
            f"true class has a mean probability of {float(part @ mean):.3f} before calibration, where rows of the same "
            f"classes in the reference have {float(part @ old_mean):.3f}. Fit a new calibrator on these rows."
        )
