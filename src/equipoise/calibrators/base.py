"""The one base of all calibrators: checks, split rules, forms in and out, the promise never to make it worse."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np

from equipoise.calibrators import artifact
from equipoise.calibrators.artifact_checks import Axes
from equipoise.calibrators.fit_warnings import fit_warnings
from equipoise.calibrators.forms import (
    ONE_CONFIDENCE,
    as_claims,
    as_rows,
    blocks,
    is_claims,
    one_column,
    restore,
)
from equipoise.calibrators.result import FitResult
from equipoise.calibrators.zeros import floor_of, floored, with_floor
from equipoise.core import array_functions
from equipoise.core.array_functions import AnyArray, asarray_like, double, log_softmax
from equipoise.core.arrays import Array, array_namespace
from equipoise.core.errors import DataError, NotFittedError, SplitError, needs
from equipoise.core.predictions import Predictions
from equipoise.core.probabilities import softmax
from equipoise.core.rows import Rows

if TYPE_CHECKING:
    from equipoise.calibrators.module import CalibratorModule

__all__ = ["Calibrator"]

_MOST_WEIGHT = 1e15


class Calibrator(ABC):
    """Maps logits to better ones; fitted on held-out predictions.

    Subclasses are final dataclasses whose fields are their settings. They write two methods: ``_learn``, from
    predictions to a :class:`FitResult`, and ``_map``, a pure function of logits and parameters in the functions that
    NumPy and torch share, which serves arrays, tensors and the exported module alike.

    Attributes:
        kind: The name in the catalogue and in files.
        gives: ``"logits"`` or ``"probs"``: what comes out.
        preserves_accuracy: The predicted class of a row never changes.
        preserves_order: Within a row, a class with a higher score never falls below one with a lower.
        needs_fit: False for maps that follow from their settings alone.
        changes_scores: False for the calibrator that leaves everything as it is, exact zeros too.
        penalized: Whether a penalty that grows with classes and shrinks with rows prevents overfitting.

    Example:
        >>> from equipoise.calibrators import TemperatureScaling
        >>> calibrator: Calibrator = TemperatureScaling()
        >>> calibrator.fit(np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 3.0]]), [0, 1, 1]).result.converged
        True
    """

    kind: str
    gives: Literal["logits", "probs"] = "logits"
    preserves_accuracy: bool = False
    preserves_order: bool = False
    needs_fit: bool = True
    changes_scores: bool = True
    penalized: bool = False

    _result: FitResult | None = None
    _n_classes: int | None = None
    _fitted_with: Predictions | None = None
    _rows: Rows | None = None
    _fingerprint: str | None = None
    _frequencies: Array | None = None

    @abstractmethod
    def _learn(self, predictions: Predictions) -> FitResult:
        """Find the parameters."""

    @abstractmethod
    def _map(self, logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
        """Map rows ``(m, k)`` of logits; what comes out is named by ``gives``."""

    @abstractmethod
    def n_parameters(self, n_classes: int) -> int:
        """Count the numbers that the calibrator learns for so many classes."""

    def _axes(self, n_classes: int) -> Mapping[str, Axes]:
        """Name the parameters that a fit gives and the lengths of their axes, for whoever reads them from a file."""
        return {}

    def _learn_claims(self, claims: Predictions) -> FitResult:
        """Find the parameters of a calibrator of one confidence, given as the probability of being right."""
        return self._learn(claims)

    def _claim_axes(self) -> Mapping[str, Axes]:
        """Name what :meth:`_learn_claims` gives, as :meth:`_axes` does for scores of every class."""
        return self._axes(2)

    @final
    def fit(self, predictions: Any, labels: Any = None, sample_weight: Any = None) -> Self:
        """Learn the calibrator.

        Args:
            predictions: :class:`~equipoise.Predictions`; or logits ``(n, k)``, one column ``(n,)`` of log-odds, or
                dense ``(n, k, d1, ...)``. Probabilities are passed as ``Predictions(probs=...)``. Of top-1 predictions
                some calibrators learn how sure to be of the class named, whichever it is.
            labels: True classes, with logits only.
            sample_weight: One weight per row, with logits only; a row of weight 2 counts as two rows.

        Returns:
            The calibrator itself; what was found is in ``result``.

        Raises:
            SplitError: If the predictions are from the split ``test``.
        """
        data, claims = self._data(predictions, labels, sample_weight), is_claims(predictions)
        self._fit_rows(data, claims=claims)
        self._result = replace(
            self.result, warnings=(*self.result.warnings, *fit_warnings(self, data, claims=claims))
        )
        return self

    @final
    def _fit_rows(self, data: Predictions, *, claims: bool = False) -> Self:
        """Learn the calibrator, without the warnings that take further fits."""
        if data.split == "test":
            raise SplitError(
                f"{type(self).__name__}.fit: the predictions are from the split 'test', which only judges. "
                "Fit on 'calib'."
            )
        if data.weights is not None and not data.weights.all():
            data = data.take(data.weights > 0)
        _check_total(data.weights, where=type(self).__name__)
        floor = floor_of(data)
        self._result = self._learned(data, floor.values, claims=claims)
        if floor.note:
            self._result = replace(self._result, notes=(floor.note,))
        self._n_classes = ONE_CONFIDENCE if claims else data.n_classes
        self._rows, self._fingerprint = None, None
        self._fitted_with = data
        self._frequencies = None
        return self

    @final
    @np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")
    def _learned(self, data: Predictions, floor: tuple[float, ...], *, claims: bool) -> FitResult:
        """Return what a fit finds if zeros count as the floor; the calibrator stays as it is."""
        rows = with_floor(data, floor) if floor else data
        found = self._learn_claims(rows) if claims else self._learn(rows)
        return replace(self._judged(found, rows), floor=floor)

    @final
    def __call__(self, predictions: Any) -> Any:
        """Apply the calibrator.

        Args:
            predictions: :class:`~equipoise.Predictions`, or logits in any form that :meth:`fit` takes.

        Returns:
            Predictions for Predictions; for an array or tensor one of the same type, precision and shape, holding
            logits or probabilities as ``gives`` says.

        Raises:
            NotFittedError: If there is no calibrator yet.
            ValueError: If the number of classes is not the one fitted.
        """
        self._check_form(predictions)
        if isinstance(predictions, Predictions) and self._leaves_scores:
            if predictions.has_scores:
                self._check_classes(predictions.probs.shape[1])
            fitted_on = self.fitted_on(predictions.rows).union(predictions.fitted_on)
            return predictions._copy(fitted_on=fitted_on, _ids=predictions.rows)
        if is_claims(predictions):
            claims = as_claims(predictions)
            mapped = self._mapped_rows(claims.logits, claims)
            right = (mapped if self.gives == "probs" else softmax(mapped))[:, 1]
            return predictions.with_confidence(
                np.ascontiguousarray(right), fitted_on=self.fitted_on(predictions.rows)
            )
        if isinstance(predictions, Predictions):
            rows = self._mapped_rows(predictions.logits, predictions)
            column = one_column(rows, gives=self.gives) if predictions.one_column else rows
            return predictions.with_scores(**{self.gives: column}, fitted_on=self.fitted_on(predictions.rows))
        rows = self._mapped(as_rows(predictions, where=type(self).__name__))
        return restore(rows, predictions, gives=self.gives)

    @final
    def transform(self, predictions: Any) -> Any:
        """Apply the calibrator; the same as calling it."""
        return self(predictions)

    @property
    def result(self) -> FitResult:
        """What the fit found."""
        if self._result is None:
            raise NotFittedError(
                f"{type(self).__name__}: not fitted yet. Call fit(predictions) with held-out predictions first."
            )
        return self._result

    @property
    def takes_claims(self) -> bool:
        """Whether it can be fitted on top-1 predictions: on the confidence of the class named, right or wrong."""
        return False

    @property
    def fitted(self) -> bool:
        """Whether there is a calibrator to apply."""
        return self._result is not None or not self.needs_fit

    @property
    def keeps_logit_level(self) -> bool:
        """Whether a constant added to all logits of a row still shows after the calibrator.

        Scores that read the size of the logits, such as energy and the largest logit, have a meaning only if it does.
        Calibrators that return probabilities, or begin with a softmax, lose it. The fitted
        calibrator is tried, so the answer holds for calibrators of users too.

        Example:
            >>> from equipoise.calibrators import StructuredVectorScaling, TemperatureScaling
            >>> rows = [[3.0, 0.0], [3.0, 0.0], [0.0, 3.0]], [0, 1, 1]
            >>> [one.fit(*rows).keeps_logit_level for one in (TemperatureScaling(), StructuredVectorScaling())]
            [True, False]
        """
        if self.gives == "probs" or self._n_classes == ONE_CONFIDENCE:
            return False
        logits = np.random.default_rng(0).normal(size=(8, self._n_classes or 2))
        mapped = self._mapped(logits)
        change = np.abs(self._mapped(logits + 1.0) - mapped).max()
        return bool(change > 1e-6 * np.ptp(mapped))  # whatever the temperature

    @property
    def n_classes(self) -> int | None:
        """Number of classes the calibrator was fitted for, 1 for a single confidence; None before the fit."""
        return self._n_classes

    @property
    def fingerprint(self) -> str | None:
        """Identifies the rows it was fitted on; None before the fit."""
        if self._fitted_with is not None:
            # Hashing rows takes as long as fitting a temperature, so it waits until somebody asks.
            self._rows, self._fingerprint = self._fitted_with.rows, self._fitted_with.fingerprint
            self._frequencies = self._mean_probs(self._fitted_with)
            self._fitted_with = None
        return self._fingerprint

    @property
    def class_frequencies(self) -> Array | None:
        """Mean calibrated probabilities ``(k,)`` of the fit rows; None for one confidence, and before the fit.

        These are the frequencies of classes as the calibrator answers them; calibrators with an offset per class give
        the frequencies of the labels.
        """
        _ = self.fingerprint
        return self._frequencies

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's parameters."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @final
    def as_module(self) -> CalibratorModule:
        """Give the calibrator as a torch module with buffers, to put behind a network and to export."""
        if self._n_classes == ONE_CONFIDENCE:
            raise DataError(
                f"{type(self).__name__}.as_module: a calibrator of one confidence does not go behind a network, which "
                "gives scores of every class. Fit one on logits."
            )
        with needs("torch", extra="torch", purpose="make a torch module of a calibrator"):
            from equipoise.calibrators.module import CalibratorModule
        return CalibratorModule(
            self._function(),
            self._parameters(),
            name=repr(self),
            gives=self.gives,
            n_classes=self._n_classes,
        )

    @final
    def to_artifact(self) -> dict[str, Any]:
        """Give everything worth keeping as plain numbers and text; :func:`from_artifact` reads it."""
        return artifact.pack(
            kind=self.kind,
            settings=self.settings,
            n_classes=self._n_classes,
            fingerprint=self.fingerprint,
            result=self.result,
            rows=self._rows,
            frequencies=self._frequencies,
        )

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a versioned artifact: ``.json``, or ``.safetensors`` for large maps. Never a pickle."""
        artifact.write(path, self.to_artifact())

    def __getstate__(self) -> dict[str, Any]:
        """Leave the fit rows behind when pickled or copied: their hashes are enough."""
        _ = self.fingerprint
        return dict(self.__dict__)

    @final
    def _restored(
        self,
        result: FitResult,
        n_classes: int | None,
        fingerprint: str | None,
        rows: Rows | None,
        frequencies: Array | None = None,
    ) -> Self:
        self._result, self._n_classes, self._frequencies = result, n_classes, frequencies
        self._fingerprint, self._rows = fingerprint, rows
        return self

    def _data(self, predictions: Any, labels: Any, sample_weight: Any) -> Predictions:
        if isinstance(predictions, Predictions):
            if labels is not None or sample_weight is not None:
                raise TypeError(
                    f"{type(self).__name__}.fit: Predictions carry their own labels and weights. "
                    "Pass Predictions alone, or logits with labels."
                )
            if is_claims(predictions):
                if not self.takes_claims:
                    raise DataError(
                        f"{type(self).__name__}.fit: only a confidence is known here, not the scores of every class. "
                        "Save logits or probabilities, or fit a calibrator of one confidence: platt, beta, isotonic, "
                        "histogram (each class for itself) or spline."
                    )
                _ = predictions.correct  # raises if it is not known
                return as_claims(predictions)
            _ = predictions.labels  # raises if they are not known
            return predictions
        if labels is None:
            raise TypeError(
                f"{type(self).__name__}.fit: `labels` are missing. Pass fit(logits, labels) or fit(predictions)."
            )
        return Predictions(logits=predictions, labels=labels, weights=sample_weight)

    def _judged(self, found: FitResult, data: Predictions) -> FitResult:
        """Fill in the NLL before and after; give the calibrator up if it makes the fit rows worse."""
        before = found.nll_before if math.isfinite(found.nll_before) else _mean_nll(data, None, "logits")
        after = found.nll_after
        if not math.isfinite(after):
            after = _mean_nll(data, self._bound(found), self.gives)
        # Rounding in the last digits is no evidence against a calibrator.
        if after <= before + 1e-12 * max(1.0, abs(before)):
            return replace(found, nll_before=before, nll_after=min(after, before))
        note = f"the calibrator was given up: it raises the NLL of its own fit rows from {before:.6g} to {after:.6g}"
        return replace(
            found,
            words="left alone: no calibrator of this kind improves these predictions",
            warnings=(*found.warnings, note),
            nll_before=before,
            nll_after=before,
            identity=True,
        )

    def _parameters(self) -> Mapping[str, Array]:
        return self.result.parameters if self.needs_fit else {}

    def _function(self) -> Callable[[AnyArray, Mapping[str, AnyArray]], AnyArray]:
        if self._result is not None and self._result.identity:
            return _unchanged if self.gives == "logits" else _as_probs
        floor = () if self._result is None else self._result.floor
        if not floor or self._leaves_scores:
            return self._map
        return lambda logits, parameters: self._map(floored(logits, floor), parameters)

    def _bound(self, found: FitResult) -> Callable[[Array], Array]:
        return lambda logits: self._map(logits, found.parameters)

    @np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")
    def _mapped(self, logits: AnyArray) -> AnyArray:
        """Return calibrated rows ``(m, k)``: of an array an array, of a tensor one on its device, in its precision."""
        parameters = {name: asarray_like(value, logits) for name, value in self._parameters().items()}
        function = self._function()
        n_rows, n_classes = logits.shape
        self._check_classes(n_classes)
        result = array_namespace(logits).empty_like(logits)
        for block in blocks(n_rows, n_classes):
            result[block] = function(double(logits[block]), parameters)
            if self.preserves_accuracy and self.gives == "probs":
                _keep_predictions(result[block], logits[block])
        return result

    def _mapped_rows(self, logits: Array, data: Predictions) -> Array:
        """Return calibrated rows of predictions, of which ``logits`` are the scores in the precision of the answer."""
        mapped: Array = self._mapped(logits)
        return mapped

    @property
    def _leaves_scores(self) -> bool:
        """Whether predictions are left as they are, exact zeros too."""
        return not self.changes_scores or (self._result is not None and self._result.identity)

    def _mean_probs(self, data: Predictions) -> Array | None:
        if self._n_classes == ONE_CONFIDENCE:
            return None
        total = np.zeros(data.logits.shape[1])
        weights = np.ones(len(data)) if data.weights is None else data.weights
        for block in blocks(*data.logits.shape):
            scores = self._mapped_rows(data.logits[block].astype(np.float64, copy=False), data.take(block))
            total += weights[block] @ (array_functions.softmax(scores) if self.gives == "logits" else scores)
        mean: Array = total / total.sum()
        return mean

    def _check_classes(self, n_classes: int) -> None:
        if self._n_classes not in (None, n_classes, ONE_CONFIDENCE):
            raise ValueError(
                f"{type(self).__name__}: `logits` must have {self._n_classes} classes, as in the fit, "
                f"got {n_classes}. Fit a calibrator for this network."
            )

    def _check_form(self, predictions: Any) -> None:
        """Raise if a calibrator of one confidence meets scores of every class, or the other way round."""
        if is_claims(predictions) and self._n_classes != ONE_CONFIDENCE:
            raise DataError(
                f"{type(self).__name__}: only a confidence is known here, and the calibrator was fitted on scores of "
                "every class. Fit one on confidences."
            )
        if self._n_classes == ONE_CONFIDENCE and not is_claims(predictions):
            raise DataError(
                f"{type(self).__name__}: the calibrator was fitted on one confidence alone. Apply it to confidences, "
                "or fit one on these scores."
            )

    @final
    def fitted_on(self, rows: Rows) -> Rows:
        """Return the rows behind the calibrator, as those that it is applied to are to know them.

        An empty set still shows that a calibrator was applied.

        Args:
            rows: The rows that the calibrator is applied to. If they are all that it was fitted on, they are
                returned, because the calibrator may have kept a part of them only.
        """
        known = self.fingerprint
        if known is not None and rows.fingerprint == known:
            return rows
        return self._rows or Rows(np.empty(0, np.uint64), rows.named)


def _check_total(weights: Array | None, *, where: str) -> None:
    with np.errstate(over="ignore"):
        total = 0.0 if weights is None else float(weights.sum())
    if not total <= _MOST_WEIGHT:
        raise DataError(
            f"{where}.fit: `weights` must sum to at most {_MOST_WEIGHT:.0e}, since weight 2 counts as two rows, got "
            f"{total:.3g}. Divide them by their mean."
        )


def _keep_predictions(probs: AnyArray, logits: AnyArray) -> None:
    """Part in place what rounding to the precision of the answer has tied, so that no prediction changes."""
    xp, top = array_namespace(probs), logits.argmax(-1)
    moved = probs.argmax(-1) != top
    if moved.any():
        highest = xp.max(probs[moved], axis=-1)
        probs[moved, top[moved]] = xp.nextafter(highest, xp.full_like(highest, 2.0))


def _unchanged(logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
    return logits


def _as_probs(logits: AnyArray, parameters: Mapping[str, AnyArray]) -> AnyArray:
    return array_functions.softmax(logits)


def _mean_nll(data: Predictions, function: Callable[[Array], Array] | None, gives: str) -> float:
    logits, total = data.logits, 0.0
    weights = np.ones(len(data)) if data.weights is None else data.weights
    for block in blocks(*logits.shape):
        scores = logits[block].astype(np.float64, copy=False)
        mapped = scores if function is None else function(scores)
        log_probs = log_softmax(mapped) if gives == "logits" else np.log(mapped)
        own = np.take_along_axis(log_probs, data.labels[block, None], axis=1)[:, 0]
        total -= float(own @ weights[block])
    return total / float(weights.sum())
