"""Predictions: the currency of the package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final, get_args

import numpy as np

from equipoise.core.arrays import Array, freeze
from equipoise.core.bins import Precision, lower_edges, precision_of
from equipoise.core.checks import (
    check_confidence,
    check_integer,
    check_labels,
    check_logits,
    check_probs,
    check_weights,
)
from equipoise.core.errors import DataError
from equipoise.core.frames import check_same_order
from equipoise.core.names import check_choice
from equipoise.core.predictions import as_rows
from equipoise.core.predictions.arguments import (
    Kind,
    agreed_classes,
    as_scores,
    check_no_classes,
    check_several_classes,
    class_names_of,
    class_numbers_of,
    frozen_map,
    groups_of,
    kind_of,
    labels_of,
    outcomes_of,
    tolerance_of,
    weights_of,
)
from equipoise.core.predictions.html import html_of_predictions
from equipoise.core.probabilities import (
    log_softmax,
    positive_logits,
    softmax,
    top_of_logits,
    top_of_rows,
    two_columns,
)
from equipoise.core.rows import Rows
from equipoise.core.splits import check_split

__all__ = ["Kind", "Predictions"]

_WHERE = "Predictions"


@final
@dataclass(frozen=True, eq=False, init=False)
class Predictions:
    """Scores that a classifier gave to some rows, and their true classes.

    Give exactly one of ``logits``, ``probs``, ``predicted`` with ``confidence``, or ``confidence`` with ``correct``.
    Everything is checked once, here; memory is shared with the caller's arrays where their type allows, and given back
    read-only.

    Args:
        labels: True classes ``(n,)``, integers of any width, or names among ``class_names``; ``(n, d1, ...)`` for
            dense outputs. Left out where they are not known, as in production: calibrators can be applied to such rows,
            but nothing scored or fitted.
        logits: Unnormalized scores ``(n, k)``, dense ``(n, k, d1, ...)``, or one column ``(n,)`` or ``(n, 1)`` of
            log-odds of class 1. NumPy or torch, any device, half precision included; or a data frame.
        probs: Probabilities in the same shapes; rows sum to one.
        predicted: Top-1 form: the class named, ``(n,)``.
        confidence: Top-1 form: its probability, ``(n,)``. By itself: the probability that the prediction is right.
        correct: With ``confidence`` alone, whether each prediction was right ``(n,)``: booleans, 0 and 1, or "true" and
            "false". There are no classes then, and no labels. Left out where it is not known.
        weights: One weight per row; a row of weight 2 counts as two rows.
        groups: Named columns ``(n,)`` to slice by: a dictionary or a data frame.
        class_names: One name per class.
        ids: One integer or text per row that identifies the sample across files, to detect leaks exactly.
        split: ``train``, ``tune``, ``calib`` or ``test``.
        ignore_index: Rows with this label are left out.
        n_classes: Number of classes, in the top-1 form, where no column count tells it.
        fitted_on: The rows that a calibrator behind these scores was fitted on; scoring them raises.
        precision: Type in which probabilities were computed, if they were converted since: ``"bfloat16"``, which NumPy
            does not have, ``"float16"``, ``"float32"`` or ``"float64"``. By default the type of the array.

    Example:
        >>> predictions = Predictions(probs=[[0.9, 0.1], [0.4, 0.6]], labels=[0, 0], split="test")
        >>> predictions
        Predictions(probs, n=2, k=2, split=test)
        >>> predictions.confidence
        array([0.9, 0.6])
        >>> predictions.correct
        array([ True, False])
    """

    kind: Kind
    scores: Array | None
    weights: Array | None
    groups: Mapping[str, Array]
    class_names: tuple[str, ...] | None
    split: str | None
    n_classes: int | None
    fitted_on: Rows | None
    precision: Precision
    _labels: Array | None
    _why_unlabelled: DataError | None
    _top: tuple[Array, Array] | None
    _correct: Array | None
    _ids: Rows | None
    n_dropped: int

    def __init__(
        self,
        *,
        labels: Any = None,
        logits: Any = None,
        probs: Any = None,
        predicted: Any = None,
        confidence: Any = None,
        correct: Any = None,
        weights: Any = None,
        groups: Mapping[str, Any] | None = None,
        class_names: Sequence[str] | None = None,
        ids: Any = None,
        split: str | None = None,
        ignore_index: int | None = None,
        n_classes: int | None = None,
        fitted_on: Rows | None = None,
        precision: Precision | None = None,
    ) -> None:
        named = {"logits": logits, "probs": probs, "predicted": predicted, "confidence": confidence}
        kind = kind_of(**named, correct=correct, labels=labels)
        check_no_classes(kind, class_names=class_names, n_classes=n_classes, ignore_index=ignore_index)
        check_integer(n_classes, where=_WHERE, name="n_classes", least=1)
        check_integer(ignore_index, where=_WHERE, name="ignore_index")
        if not isinstance(fitted_on, Rows | None):
            raise TypeError(f"{_WHERE}: `fitted_on` must be Rows, got {type(fitted_on).__name__}.")
        labels, predicted = (
            class_numbers_of(value, class_names, name=name)
            for name, value in (("labels", labels), ("predicted", predicted))
        )
        named["predicted"] = predicted
        check_same_order(_WHERE, **named, correct=correct, labels=labels, weights=weights, ids=ids)
        precision = precision or precision_of(confidence if probs is None else probs)
        check_choice(precision, get_args(Precision), where=_WHERE, name="precision")
        given, top = as_scores(kind, **named)
        true = labels_of(labels, given, ignore_index)
        keep = as_rows.kept_rows(true, ignore_index)
        scores = None
        if kind == "confidence":
            as_rows.check_same_length(true, confidence=given)
            top = freeze(np.empty(0, np.int64)), freeze(given)
        elif top is not None:
            as_rows.check_same_length(true, predicted=top[0], confidence=top[1])
            top = freeze(keep(top[0])), freeze(keep(top[1]))
        else:
            scores = freeze(keep(as_rows.score_rows(given, true, name=kind)))
            if labels is not None:
                check_several_classes(given, true, kind)
            n_classes = agreed_classes(n_classes, 2 if scores.ndim == 1 else scores.shape[1])
        names = class_names_of(class_names, n_classes)
        self._fill(
            kind=kind,
            scores=scores,
            _top=top,
            _correct=None if correct is None else freeze(outcomes_of(correct, given)),
            _labels=None if labels is None else freeze(keep(true.reshape(-1))),
            _why_unlabelled=None,
            weights=weights_of(weights, true, keep),
            groups=groups_of(groups, true, keep),
            class_names=names,
            split=check_split(split, where=_WHERE),
            n_classes=len(names) if names else n_classes,
            fitted_on=fitted_on,
            precision="float64" if kind == "logits" else precision,
            _ids=None if ids is None else as_rows.row_ids(ids, true, keep),
            n_dropped=0,
        )
        try:
            self._check(tolerance_of(precision))
        except DataError as error:
            if error.row is None or ignore_index is None:
                raise
            raise error.at(row=int(keep(np.arange(true.size))[error.row])) from None

    def _fill(self, **fields: Any) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, fields[name])

    def _check(self, tolerance: float) -> None:
        if len(self) == 0:
            raise DataError("no rows to score. Is the file empty, or every label ignored?", where=_WHERE)
        if self.kind == "logits":
            check_logits(self._scores, where=_WHERE)
        elif self.kind == "probs":
            check_probs(self._scores, where=_WHERE, tolerance=tolerance)
        else:
            check_confidence(self._likeliest[1], where=_WHERE)
        if self.kind == "top1":
            check_labels(self.predicted, n_classes=self.n_classes, where=_WHERE, name="predicted")
        if self._labels is not None:
            check_labels(self._labels, n_classes=self.n_classes, where=_WHERE)
        if self.weights is not None:
            check_weights(self.weights, where=_WHERE)

    def __len__(self) -> int:
        column = self.scores if self._top is None else self._top[1]
        return 0 if column is None else len(column)

    def __repr__(self) -> str:
        parts = [self.kind, f"n={len(self)}"]
        if self.n_classes is not None:
            parts.append(f"k={self.n_classes}")
        if self.split:
            parts.append(f"split={self.split}")
        if not self.has_labels:
            parts.append("no outcomes" if self.kind == "confidence" else "no labels")
        return f"Predictions({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return html_of_predictions(self)

    @property
    def has_labels(self) -> bool:
        """Whether it is known what was true: the classes, or which predictions were right.

        Without it nothing can be scored or fitted.
        """
        return self._labels is not None or self._correct is not None

    @property
    def has_scores(self) -> bool:
        """Whether the scores of every class are known, not only a confidence."""
        return self.scores is not None

    @property
    def labels(self) -> Array:
        """True classes ``(n,)``.

        Raises:
            DataError: If they are not known.
        """
        if self.kind == "confidence" and self._correct is not None:
            raise DataError(
                "only the confidence and whether a prediction was right are known here, not its class. "
                "Save logits or probabilities, with labels, to get this number.",
                where=_WHERE,
            )
        if self._labels is None:
            raise self._unlabelled
        return self._labels

    @property
    def _unlabelled(self) -> DataError:
        if self._why_unlabelled is not None:
            return self._why_unlabelled.at()
        if self.kind == "confidence":
            return DataError(
                "it is not known which of these predictions were right, so they can be neither scored nor fitted on. "
                "Give {correct}.",
                where=_WHERE,
                arguments={"correct": ""},
            )
        return DataError(
            "these rows have no labels, so they can be neither scored nor fitted on. Give {labels}.",
            where=_WHERE,
            arguments={"labels": ""},
        )

    @property
    def _scores(self) -> Array:
        if self.scores is None:
            known = "the predicted class and its confidence are" if self.kind == "top1" else "a confidence is"
            raise DataError(
                f"only {known} known here, not the scores of every class. Save logits or probabilities to get this "
                "number.",
                where=_WHERE,
            )
        return self.scores

    @property
    def one_column(self) -> bool:
        """True for a binary classifier given as one column of the positive class."""
        return self.scores is not None and self.scores.ndim == 1

    @cached_property
    def probs(self) -> Array:
        """Probabilities ``(n, k)``; computed on first use if logits were given."""
        if self.kind == "logits":
            return freeze(softmax(self.logits))
        return freeze(two_columns(self._scores)) if self.one_column else self._scores

    @cached_property
    def logits(self) -> Array:
        """Logits ``(n, k)``: as given, or the logarithm of the probabilities, clipped at the smallest float32."""
        if self.kind == "logits":
            return freeze(positive_logits(self._scores)) if self.one_column else self._scores
        return freeze(np.log(np.maximum(self.probs, np.finfo(np.float32).tiny)))

    @cached_property
    def log_probs(self) -> Array:
        """Logarithms of the probabilities ``(n, k)``, finite for finite logits."""
        return freeze(log_softmax(self.logits)) if self.kind == "logits" else self.logits

    @cached_property
    def predicted(self) -> Array:
        """The class with the highest score ``(n,)``; the first of equals."""
        if self.kind == "confidence":
            raise DataError(
                "only the confidence is known here, not the class it belongs to. Give {predicted} and {labels} for "
                "results by class.",
                where=_WHERE,
                arguments={"predicted": "", "labels": ""},
            )
        return freeze(self._likeliest[0])

    @cached_property
    def confidence(self) -> Array:
        """The probability of the predicted class ``(n,)``; rounding beyond one is cut off. In float64 from logits."""
        values = self._likeliest[1]
        return freeze(np.minimum(values, 1)) if values.max(initial=0) > 1 else freeze(values)

    def lower_edges(self, n_bins: int, closed: str) -> Array:
        """Return thresholds of bins for :attr:`confidence`, as :func:`equipoise.core.bins.lower_edges` does.

        Probabilities are compared with edges in the precision in which they were given.

        Example:
            >>> Predictions(probs=np.float32([0.3]), labels=[1]).lower_edges(10, "right")[7] == np.float32(0.7)
            np.True_
        """
        return lower_edges(n_bins, closed, self.precision)

    @cached_property
    def _likeliest(self) -> tuple[Array, Array]:
        """The predicted class and its probability, computed once.

        Logits are compared themselves: different ones may have the same probability after rounding.
        """
        if self._top is not None:
            return self._top
        return top_of_logits(self.logits) if self.kind == "logits" else top_of_rows(self.probs)

    @property
    def is_top_known(self) -> bool:
        """Whether the predicted class and its probability are at hand; otherwise their first use computes them."""
        return "_likeliest" in self.__dict__ or self._top is not None

    def keep_top(self, predicted: Array, confidence: Array) -> None:
        """Keep the predicted class and its probability, where a pass over the logits computed them anyway.

        Args:
            predicted: What :func:`equipoise.core.probabilities.top_of_logits` returns first;
            confidence: and second.
        """
        self.__dict__["_likeliest"] = predicted, confidence

    @cached_property
    def correct(self) -> Array:
        """Whether the predicted class is the true one ``(n,)``."""
        if self._correct is not None:
            return self._correct
        if self.kind == "confidence":
            raise self._unlabelled
        return freeze(self.predicted == self.labels)

    @cached_property
    def rows(self) -> Rows:
        """Which samples these are; survives calibration."""
        if self._ids is not None:
            return self._ids
        outcomes = self._labels if self._correct is None else self._correct.astype(np.int64)
        return Rows.from_values(self.confidence if self.scores is None else self.scores, outcomes)

    @property
    def rows_without_outcomes(self) -> Rows:
        """The same, but rows with labels can be compared with rows without."""
        if self._ids is not None:
            return self._ids
        return Rows.from_values(self.confidence if self.scores is None else self.scores, None)

    @property
    def has_kept_rows(self) -> bool:
        """True if the rows are known by more than the scores held here: by ids, or by scores before a calibrator."""
        return self._ids is not None

    @property
    def fingerprint(self) -> str:
        """A short text that identifies the set of rows."""
        return self.rows.fingerprint

    def take(self, index: Any) -> Predictions:
        """Return some of the rows: a slice, a mask or row numbers.

        Example:
            >>> len(Predictions(probs=[0.9, 0.2, 0.4], labels=[1, 0, 0]).take([0, 2]))
            2
        """
        picked = index if isinstance(index, slice) else as_rows.row_numbers(index)
        changes: dict[str, Any] = {"n_dropped": 0}
        for name in ("scores", "_labels", "_correct", "weights"):
            column = getattr(self, name)
            changes[name] = None if column is None else freeze(column[picked])
        if self._top is not None:
            named, confidence = self._top
            changes["_top"] = (
                named if self.kind == "confidence" else freeze(named[picked]),
                freeze(confidence[picked]),
            )
        changes["groups"] = frozen_map({name: column[picked] for name, column in self.groups.items()})
        if self._ids is not None or self.fitted_on is not None:
            changes["_ids"] = Rows(self.rows.hashes[picked], self.rows.named)
        return self._copy(**changes)

    def blocks(self, n_rows: int) -> Iterator[Predictions]:
        """Yield the rows in order, ``n_rows`` at a time.

        Example:
            >>> [len(block) for block in Predictions(probs=[0.9, 0.2, 0.4], labels=[1, 0, 0]).blocks(2)]
            [2, 1]
        """
        if n_rows < 1:
            raise ValueError(f"Predictions.blocks: `n_rows` must be 1 or more, got {n_rows}.")
        for start in range(0, len(self), n_rows):
            yield self.take(slice(start, start + n_rows))

    def with_scores(
        self, *, logits: Any = None, probs: Any = None, fitted_on: Rows | None = None
    ) -> Predictions:
        """Return the same rows with other scores, as a calibrator gives them.

        Args:
            logits: New logits; or
            probs: new probabilities.
            fitted_on: The rows the calibrator was fitted on; scoring them raises. Rows of an earlier calibrator
                are kept too.

        Returns:
            Predictions that keep labels, weights, groups, names, split and the identity of their rows.

        Example:
            >>> raw = Predictions(logits=[[2.0, 0.0]], labels=[0])
            >>> raw.with_scores(logits=raw.logits / 2).fingerprint == raw.fingerprint
            True
        """
        fresh = Predictions(
            labels=self._labels,
            logits=logits,
            probs=probs,
            weights=self.weights,
            class_names=self.class_names,
        )
        return self._copy(
            kind=fresh.kind,
            scores=fresh.scores,
            n_classes=fresh.n_classes,
            precision=fresh.precision,
            fitted_on=self.fitted_on if fitted_on is None else fitted_on.union(self.fitted_on),
            _top=None,
            _ids=self.rows,
        )

    def with_weights(self, weights: Any) -> Predictions:
        """Return the same predictions with other sample weights; all may be zero, as in one chunk of many.

        Example:
            >>> Predictions(probs=[0.9, 0.2], labels=[1, 0]).with_weights([0, 2]).weights
            array([0., 2.])
        """
        fresh = weights_of(weights, labels_of(None, np.empty(len(self)), None), lambda column: column)
        if fresh is not None and fresh.any():
            check_weights(fresh, where=_WHERE)
        return self._copy(weights=fresh)

    def with_reason(self, why: DataError | None) -> Predictions:
        """Return the same predictions with the error to raise where their labels are needed and missing.

        Example:
            >>> Predictions(probs=[0.9]).with_reason(DataError("holds no labels.", where="a.csv")).labels
            Traceback (most recent call last):
            ...
            equipoise.core.errors.DataError: a.csv: holds no labels.
        """
        return self._copy(_why_unlabelled=why)

    def with_confidence(self, confidence: Any, *, fitted_on: Rows | None = None) -> Predictions:
        """Return the same rows with other confidences, as a calibrator gives them where only these are known.

        Args:
            confidence: New probabilities of being right.
            fitted_on: The rows the calibrator was fitted on; scoring them raises.

        Returns:
            Predictions that keep everything else, and the identity of their rows.

        Example:
            >>> raw = Predictions(predicted=[3], confidence=[0.99], labels=[3])
            >>> raw.with_confidence([0.8]).fingerprint == raw.fingerprint
            True
        """
        fresh = Predictions(confidence=confidence)
        named = self._top[0] if self._top is not None else self.predicted
        return self._copy(
            _top=(named, fresh._likeliest[1]),
            precision=fresh.precision,
            fitted_on=self.fitted_on if fitted_on is None else fitted_on.union(self.fitted_on),
            _ids=self.rows,
        )

    def with_dropped(self, n_dropped: int) -> Predictions:
        """Return the same predictions with the number of rows that were left out when they were read.

        Example:
            >>> Predictions(probs=[0.9], labels=[1]).with_dropped(2).n_dropped
            2
        """
        return self._copy(n_dropped=n_dropped)

    def with_split(self, split: str | None) -> Predictions:
        """Return the same predictions under another split name.

        Example:
            >>> Predictions(probs=[0.9], labels=[1]).with_split("calib").split
            'calib'
        """
        return self._copy(split=check_split(split, where=_WHERE))

    def __getstate__(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "groups": dict(self.groups)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        top = state["_top"] and tuple(freeze(column) for column in state["_top"])
        arrays = {name: freeze(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        self._fill(**{**state, **arrays, "_top": top, "groups": frozen_map(state["groups"])})

    def _copy(self, **changes: Any) -> Predictions:
        fresh = object.__new__(Predictions)
        fresh._fill(**{**{name: getattr(self, name) for name in self.__dataclass_fields__}, **changes})
        return fresh
