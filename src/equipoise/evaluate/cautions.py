"""Signs that a file does not hold what its names say, gathered chunk by chunk and reported; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.escaping import visible
from equipoise.core.predictions import Predictions

__all__ = ["Caution", "InputDiagnostics", "input_mistakes"]

#: Labels and predictions up to this number are counted one by one.
_MOST_CLASSES = 1 << 20
#: A coincidence of more standard errors than this is reported.
_STANDARD_ERRORS = 5.0
_FEW_VALUES = 16
_GLANCE = 1000
_FORM = ("kind", "n_classes", "split", "one_column", "weighted")
_ADDED = ("_n_rows", "_correct", "_weight", "_squares", "_confidence", "_inner_confidence", "_inner_lowest")

#: Cautions which say that the input is most likely not what it is called, so that no number can be believed.
_MISTAKES = (
    "logits_are_probs",
    "logits_are_percentages",
    "softmaxed_twice",
    "labels_off_by_one",
    "labels_are_no_classes",
    "worse_than_chance",
    "impossible_confidence",
)


class Caution(NamedTuple):
    """Something a reader should know before believing the numbers.

    Attributes:
        key: A word for machines.
        text: A sentence or two for people.
    """

    key: str
    text: str


def input_mistakes(cautions: Iterable[Caution]) -> tuple[Caution, ...]:
    """Return the cautions that the input is most likely not what it is called; they are reported before any number.

    Example:
        >>> input_mistakes([Caution("few_rows", ""), Caution("logits_are_probs", "")])
        (Caution(key='logits_are_probs', text=''),)
    """
    return tuple(caution for caution in cautions if caution.key in _MISTAKES)


@final
class InputDiagnostics:
    """Signs of mistakes in how predictions were saved, in memory that does not grow with the rows.

    Every check first asks a cheap question of each chunk, and costs nothing more once the answer is no.

    Example:
        >>> diagnostics = InputDiagnostics()
        >>> probs = np.full((300, 3), 0.05) + 0.85 * np.eye(3)[np.arange(300) % 3]
        >>> diagnostics.update(Predictions(logits=probs, labels=np.arange(300) % 3))
        >>> [caution.key for caution in diagnostics.cautions()]
        ['logits_are_probs']
    """

    def __init__(self) -> None:
        self._n_rows, self._correct, self._weight, self._squares = 0, 0, 0.0, 0.0
        self._shifted = {-1: 0, 1: 0}
        self._predicted, self._labels = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._lowest = 1.0
        self._values: set[float] | None = set()
        self._totals, self._is_twice = {1, 100}, True
        self._confidence, self._inner_confidence, self._inner_lowest = 0.0, 0.0, 0.0
        self._n_classes: int | None = None
        self._kind = ""
        self._split: str | None = None
        self._one_column, self._weighted = False, False

    def update(self, predictions: Predictions) -> None:
        """Add a chunk."""
        confidence = predictions.confidence
        self._kind, self._split, self._n_classes = predictions.kind, predictions.split, predictions.n_classes
        self._one_column, self._weighted = predictions.one_column, predictions.weights is not None
        self._n_rows += len(predictions)
        self._correct += int(np.count_nonzero(predictions.correct))
        self._confidence += float(confidence.sum(dtype=np.float64))
        self._lowest = min(self._lowest, float(confidence.min()))
        weights = predictions.weights
        self._weight += len(predictions) if weights is None else float(weights.sum())
        self._squares += len(predictions) if weights is None else float(weights @ weights)
        self._add_values(confidence)
        if predictions.kind != "confidence":
            self._add_labels(predictions.predicted, predictions.labels)
        self._totals = {total for total in self._totals if _sums_to(total, predictions)}
        self._is_twice = self._is_twice and predictions.kind == "probs"
        if self._is_twice:
            self._add_inner(predictions.probs)

    @property
    def form(self) -> dict[str, Any]:
        """What chunks of one stream share: kind, number of classes, split, one column of scores, weights."""
        return {name: getattr(self, f"_{name}") for name in _FORM}

    def merge(self, other: InputDiagnostics) -> None:
        """Add the diagnostics of other rows.

        Example:
            >>> one, two = InputDiagnostics(), InputDiagnostics()
            >>> for part in (one, two):
            ...     part.update(Predictions(probs=[0.9] * 60, labels=[1] * 54 + [0] * 6))
            >>> one.merge(two)
            >>> one.cautions()
            ()
        """
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for shift in self._shifted:
            self._shifted[shift] += other._shifted[shift]
        self._predicted = _added(self._predicted, other._predicted)
        self._labels = _added(self._labels, other._labels)
        self._lowest = min(self._lowest, other._lowest)
        self._totals, self._is_twice = self._totals & other._totals, self._is_twice and other._is_twice
        if self._values is not None:
            both = None if other._values is None else self._values | other._values
            self._values = None if both is None or len(both) > _FEW_VALUES else both

    def parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return everything as plain values and arrays, for a file; :meth:`fill` takes them back."""
        plain = {name: getattr(self, name) for name in (*_ADDED, "_lowest", "_is_twice")}
        plain = {name.removeprefix("_"): value for name, value in plain.items()}
        plain |= {"shifted": [self._shifted[-1], self._shifted[1]], **self.form}
        plain["totals"] = sorted(self._totals)
        plain["values"] = None if self._values is None else sorted(self._values)
        return plain, {"predicted": self._predicted, "labels": self._labels}

    def fill(self, plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take over what :meth:`parts` gave."""
        for name in (*_ADDED, "_lowest", "_is_twice", *(f"_{key}" for key in _FORM)):
            setattr(self, name, plain[name.removeprefix("_")])
        self._shifted = dict(zip((-1, 1), plain["shifted"], strict=True))
        self._totals = set(plain["totals"])
        self._values = None if plain["values"] is None else set(plain["values"])
        self._predicted, self._labels = arrays["predicted"].copy(), arrays["labels"].copy()

    def _add_values(self, confidence: Array) -> None:
        if self._values is None:
            return
        for part in (confidence[: 4 * _FEW_VALUES], confidence[:_GLANCE], confidence):
            self._values.update(np.unique(part).tolist())
            if len(self._values) > _FEW_VALUES:
                self._values = None
                return

    def _add_labels(self, predicted: Array, labels: Array) -> None:
        difference = predicted - labels
        for shift in self._shifted:
            self._shifted[shift] += int(np.count_nonzero(difference == shift))
        if max(int(predicted.max()), int(labels.max())) < _MOST_CLASSES:
            self._predicted = _added(self._predicted, np.bincount(predicted))
            self._labels = _added(self._labels, np.bincount(labels))

    def _add_inner(self, probs: Array) -> None:
        inner = inner_probs(probs)
        self._is_twice = inner is not None
        if inner is not None:
            self._inner_confidence += float(inner.max(axis=1).sum())
            self._inner_lowest += float(inner.min(axis=1).sum()) * inner.shape[1]

    def cautions(self, class_names: Sequence[str] | None = None) -> tuple[Caution, ...]:
        """Return what was found, the gravest first; classes by their names, if they have some."""
        if self._n_rows == 0:
            return ()
        checks = (
            self._probs_as_logits,
            self._percentages_as_logits,
            self._softmaxed_twice,
            self._shifted_labels,
            self._measured_labels,
            self._worse_than_chance,
            self._impossible_confidence,
            self._few_confidences,
            partial(self._absent_classes, class_names),
            self._seen_before,
            self._uneven_weights,
            self._few_rows,
        )
        return tuple(found for check in checks if (found := check()) is not None)

    def _probs_as_logits(self) -> Caution | None:
        if 1 not in self._totals or self._n_rows < _FEW_VALUES:
            return None
        what = "All log-odds" if self._one_column else "The logits of every row"
        also = "" if self._one_column else " and sum to 1"
        return Caution(
            "logits_are_probs",
            f"{what} lie between 0 and 1{also}, as probabilities do, and a softmax has flattened them once more. "
            "If they are probabilities, say so: --probs, or probs=.",
        )

    def _percentages_as_logits(self) -> Caution | None:
        if 100 not in self._totals or self._n_rows < _FEW_VALUES:
            return None
        return Caution(
            "logits_are_percentages",
            "The logits of every row lie between 0 and 100 and sum to 100, as percentages do. If they are, divide them "
            "by 100 and say that they are probabilities: --probs, or probs=.",
        )

    def _measured_labels(self) -> Caution | None:
        """Report labels of a top-1 file, whose number of classes is not known, that are hardly ever repeated."""
        n = self._n_rows
        different = int(np.count_nonzero(self._labels)) + n - int(self._labels.sum())
        if self._kind != "top1" or self._n_classes or n < 4 * _FEW_VALUES or different < n / 4:
            return None
        return Caution(
            "labels_are_no_classes",
            f"There are about {different:,} different labels in {n:,} rows: they look like measured numbers or ids, "
            "not like classes. Regression is not supported.",
        )

    def _softmaxed_twice(self) -> Caution | None:
        """Report probabilities that a second softmax explains, and explains better.

        A model that is honestly unsure has probabilities as flat, but they fit its accuracy; and what a second softmax
        was given has entries near zero in most rows, which flat probabilities of other origin do not lead back to.
        """
        if not self._is_twice or not self._n_classes:
            return None
        n = self._n_rows
        accuracy = self._correct / n
        short = accuracy - self._confidence / n
        error = (max(accuracy * (1 - accuracy), 1 / n) / n) ** 0.5
        closer = abs(accuracy - self._inner_confidence / n) < 0.5 * short
        if short < _STANDARD_ERRORS * error or not closer or self._inner_lowest / n > 0.25:
            return None
        most = np.e / (np.e + self._n_classes - 1)
        return Caution(
            "softmaxed_twice",
            f"No probability exceeds {100 * most:.1f}%, the most that a softmax of probabilities can give over "
            f"{self._n_classes} classes, and undoing one softmax brings confidence near the accuracy. Was a softmax "
            "applied twice? Save the logits, or the output of the first.",
        )

    def _shifted_labels(self) -> Caution | None:
        """Report labels that fit far better when moved by one; two classes that are swapped are worse than chance."""
        if self._n_classes == 2:
            return None
        shift, count = max(self._shifted.items(), key=lambda item: item[1])
        if count - self._correct <= _STANDARD_ERRORS * (count + self._correct) ** 0.5:
            return None
        agreed, plain = self._agreement(shift, count), self._agreement(0, self._correct)
        if agreed < 0.25 or agreed < 2 * plain:
            return None
        n = self._n_rows
        return Caution(
            "labels_off_by_one",
            f"With labels {'lowered' if shift < 0 else 'raised'} by one, {100 * count / n:.1f}% of the rows would be "
            f"right instead of {100 * self._correct / n:.1f}%. Do labels and scores number the classes alike, both "
            "from 0? Nothing was changed.",
        )

    def _agreement(self, shift: int, count: int) -> float:
        """Return how far predictions agree with labels moved by ``shift`` beyond what their frequencies explain."""
        n = self._n_rows
        if self._predicted.sum() != n:
            return 0.0
        width = max(len(self._predicted), len(self._labels)) + 2
        labels, predicted = np.zeros(width), np.zeros(width)
        labels[1 + shift : 1 + shift + len(self._labels)] = self._labels / n
        predicted[1 : 1 + len(self._predicted)] = self._predicted / n
        chance = float(labels @ predicted)
        return (count / n - chance) / (1 - chance) if chance < 1 else 0.0

    def _worse_than_chance(self) -> Caution | None:
        n, k = self._n_rows, self._n_classes
        if (
            not k
            or self._correct / n + _STANDARD_ERRORS * (0.25 / n) ** 0.5 >= 1 / k
            or self._shifted_labels()
        ):
            return None
        remedy = (
            "Are the two classes swapped?"
            if k == 2
            else "Do labels and scores belong to the same rows and classes?"
        )
        return Caution(
            "worse_than_chance",
            f"{100 * self._correct / n:.1f}% of the rows are right, fewer than by guessing among {k} classes. "
            f"{remedy}",
        )

    def _impossible_confidence(self) -> Caution | None:
        if self._kind != "top1" or not self._n_classes or self._lowest >= 1 / self._n_classes - 1e-3:
            return None
        return Caution(
            "impossible_confidence",
            f"Confidences go down to {self._lowest:.3g}, but the likeliest of {self._n_classes} classes has at least "
            f"{1 / self._n_classes:.3g}. Are they the probabilities of the predicted class?",
        )

    def _few_confidences(self) -> Caution | None:
        if self._values is None or self._n_rows < 4 * _FEW_VALUES:
            return None
        if self._values == {1.0}:
            text = (
                "Every confidence is exactly 1: these look like decisions, not probabilities, and every calibration "
                "error is just the share of wrong rows."
            )
        elif len(self._values) == 1:
            return None
        else:
            text = (
                f"There are only {len(self._values)} different confidences. Rounded? Binned errors then depend on "
                "which side of a bin is closed."
            )
        return Caution("few_confidences", text)

    def _absent_classes(self, names: Sequence[str] | None) -> Caution | None:
        k = self._n_classes
        if not k or k > _MOST_CLASSES or self._labels.sum() != self._n_rows or self._n_rows < 10 * k:
            return None
        absent = np.flatnonzero(np.pad(self._labels, (0, max(0, k - len(self._labels))))[:k] == 0)
        if len(absent) == 0:
            return None
        if len(absent) == k - 1:
            return Caution("one_class", "All labels are of one class. Is this the whole set?")
        called = [visible(names[place]) if names else str(place) for place in absent[:5].tolist()]
        shown = ", ".join(called) + (" ..." if len(absent) > 5 else "")
        return Caution(
            "absent_classes", f"{len(absent)} of {k} classes never occur among the labels: {shown}."
        )

    def _seen_before(self) -> Caution | None:
        if self._split not in ("train", "tune", "calib"):
            return None
        why = {
            "train": "the network was fitted on them",
            "tune": "the training was steered by them",
            "calib": "they are for fitting calibrators",
        }[self._split]
        return Caution(
            "not_test", f"The rows are from the split '{self._split}': {why}, so new rows may look worse."
        )

    def _uneven_weights(self) -> Caution | None:
        effective = self._weight**2 / self._squares if self._squares else 0.0
        if effective >= 0.1 * self._n_rows:
            return None
        return Caution(
            "uneven_weights",
            f"The weights are uneven: {self._n_rows:,} rows tell as much as {effective:,.0f} of equal weight.",
        )

    def _few_rows(self) -> Caution | None:
        if self._n_rows >= 100:
            return None
        return Caution(
            "few_rows",
            f"{self._n_rows} rows can show only gross errors: even the accuracy is uncertain by about "
            f"{100 / self._n_rows**0.5:.0f} points.",
        )


def inner_probs(probs: Array) -> Array | None:
    """Return the probabilities whose softmax these are, or None if some row is no softmax of probabilities.

    Example:
        >>> twice = np.exp([[0.9, 0.1]]) / np.exp([[0.9, 0.1]]).sum()
        >>> inner_probs(twice).round(6)
        array([[0.9, 0.1]])
        >>> inner_probs(np.array([[0.9, 0.1]])) is None
        True
    """
    n_classes = probs.shape[1]
    if probs.max() > 1.01 * np.e / (np.e + n_classes - 1):
        return None
    logs = np.log(np.maximum(probs, np.finfo(np.float32).tiny), dtype=np.float64)
    inner: Array = logs + (1.0 - logs.sum(axis=1, keepdims=True)) / n_classes
    return inner if inner.min() > -0.01 else None


def _sums_to(total: int, predictions: Predictions) -> bool:
    """Return whether all logits lie between 0 and a number that every row of several classes sums to."""
    scores = predictions.scores
    if predictions.kind != "logits" or scores is None or (predictions.one_column and total > 1):
        return False
    for part in (scores[:_GLANCE], scores):
        if part.min() < 0 or part.max() > total * (1 + 1e-3):
            return False
        if not predictions.one_column and (np.abs(part.sum(axis=1) - total) > 1e-3 * total).any():
            return False
    return True


def _added(counts: Array, more: Array) -> Array:
    width = max(len(counts), len(more))
    total: Array = np.pad(counts, (0, width - len(counts))) + np.pad(more, (0, width - len(more)))
    return total
