"""Prior shift: calibrated probabilities for other class frequencies than those that they were calibrated for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy.stats import chi2, norm

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
        A bootstrap interval for the frequencies, which treats the calibrator as right; labels at hand are compared
        with the result. Frequencies stay as they were unless a likelihood-ratio test shows a change. Those that are
        estimated as 0 are set to half a row.
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
        """The new class frequencies, ``(k,)``."""
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
        return self._set(new, np.stack([new, new], axis=1), "to known class frequencies")

    def fit_unlabeled(
        self, predictions: Predictions, *, calibrated: bool = False, n_resamples: int = 200, seed: int = 0
    ) -> Self:
        """Estimate the new class frequencies from rows without labels, and adapt to them.

        Args:
            predictions: Uncalibrated predictions, which ``before`` calibrates. Labels, where there are some, only test
                the result.
            calibrated: Whether the probabilities are calibrated already, so that no ``before`` is needed.
            n_resamples: Bootstrap resamples for the interval.
            seed: Random seed for the bootstrap.

        Returns:
            The calibrator itself.

        Raises:
            DataError: If nothing calibrates the probabilities, or labels contradict the adapted probabilities.
        """
        if (self.before is None or isinstance(self.before, Identity)) and not calibrated:
            raise DataError(
                "PriorShift.fit_unlabeled: the probabilities are not calibrated, so frequencies cannot be estimated "
                "from them. Pass before=, a fitted calibrator, or calibrated=True if they are."
            )
        scores = predictions.logits.astype(np.float64, copy=False)
        probs = softmax(scores if self.before is None else _log_probs(self.before, scores))
        old = self._old_priors(probs.shape[1])
        weights = row_weights(predictions.weights, len(probs))
        n_rows = weights.sum() ** 2 / (weights**2).sum()
        new = _with_mass(estimate_priors(probs, old, weights), n_rows)
        draws = numpy_generator(seed, "prior_shift").multinomial(
            len(probs), weights / weights.sum(), size=n_resamples
        )
        resampled = estimate_priors(probs, old, draws.T.astype(np.float64))
        interval = np.quantile(resampled, [0.025, 0.975], axis=1).T
        gain = 2 * n_rows * float(np.average(np.log(probs @ (new / old)), weights=weights))
        if gain < chi2.isf(_NO_SHIFT_LEVEL, len(new) - 1):
            new = old  # chance explains the difference, and adapting to chance would cost log-loss
        self._set(new, interval, "to unlabeled rows")
        if predictions.has_labels:
            _check_against_labels(softmax(_shifted(np.log(probs), new, old)), predictions)
        return self

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

    def _set(self, new: Array, interval: Array, how: str) -> Self:
        self._result = self._described(new, interval, how)
        self._n_classes = len(new)
        self._frequencies = new
        self._rows = None if self.before is None else self.before._rows
        self._fingerprint = None if self.before is None else self.before.fingerprint
        return self

    def _described(self, new: Array, interval: Array, how: str) -> FitResult:
        old = self._old_priors(len(new))
        largest = int(np.argmax(np.abs(np.log(new / old))))
        change = f"class {largest} changes most, from {100 * old[largest]:.3g}% to {100 * new[largest]:.3g}%"
        return FitResult(
            parameters={
                "log_ratio": np.log(new / old),
                "priors": new,
                "lower": interval[:, 0],
                "upper": interval[:, 1],
            },
            words=f"adapts {how}: {'no change is shown' if np.array_equal(new, old) else change}",
            nll_before=0.0,
            nll_after=0.0,
        )

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        return dict.fromkeys(("log_ratio", "priors", "lower", "upper"), (n_classes,))

    def _learn(self, predictions: Predictions) -> FitResult:
        weights = row_weights(predictions.weights, len(predictions))
        counts = np.bincount(predictions.labels, weights, predictions.logits.shape[1])
        new = _with_mass(counts / counts.sum(), float(weights.sum()))
        return self._described(new, np.stack([new, new], axis=1), "to the frequencies of labels")

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


def _log_probs(calibrator: Calibrator, logits: Array) -> Array:
    scores = calibrator._mapped(logits)
    log_probs: Array = (
        log_softmax(scores) if calibrator.gives == "logits" else np.log(np.maximum(scores, _IMPOSSIBLE))
    )
    return log_probs


def _shifted(log_probs: Array, new: Array, old: Array) -> Array:
    shifted: Array = log_probs + np.log(new / old)
    return shifted


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


def _check_against_labels(probs: Array, predictions: Predictions) -> None:
    """Raise if a class is more or less frequent among labels than adapted probabilities allow by chance."""
    weights = row_weights(predictions.weights, len(probs))
    hits = np.equal(predictions.labels[:, None], np.arange(probs.shape[1]))
    gap = weights @ (hits - probs)
    error = np.sqrt(weights**2 @ (probs * (1 - probs)))
    # Estimated frequencies follow the rows, which only makes gaps smaller.
    score = np.abs(gap) / np.maximum(error, 1e-12)
    worst = int(score.argmax())
    if score[worst] > norm.isf(_LEVEL / 2 / len(score)):
        total = weights.sum()
        raise DataError(
            f"PriorShift.fit_unlabeled: labels contradict the adapted probabilities: class {worst} is "
            f"{100 * weights @ hits[:, worst] / total:.3g}% of the labels, where "
            f"{100 * weights @ probs[:, worst] / total:.3g}% are expected. More than class frequencies has changed: "
            "fit a new calibrator on these rows."
        )
