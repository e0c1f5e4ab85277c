"""Predictions of several models for the same samples: rows in one order, classes in one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.core.arrays import Array, freeze
from equipoise.core.errors import DataError
from equipoise.core.predictions.predictions import Predictions

__all__ = ["UnmatchedIdsError", "align", "align_all", "order_classes", "same_outcomes"]


class UnmatchedIdsError(DataError):
    """Two sets of predictions have different ids; of each, the hashes of the first few.

    Attributes:
        missing: Hashes of ids of the reference that the other predictions lack.
        extra: Hashes of ids that only the other predictions have.
    """

    missing: Array
    extra: Array


def same_outcomes(first: Predictions, second: Predictions) -> bool:
    """Return whether two models may have been given the same rows in the same order.

    True classes tell. In the form "confidence" they are not known, and models may be right on different rows, so that
    only the number of rows can be compared.

    Example:
        >>> one, two = (Predictions(probs=[0.9, 0.2], labels=labels) for labels in ([1, 0], [1, 1]))
        >>> same_outcomes(one, two)
        False
    """
    if len(first) != len(second):
        return False
    if "confidence" in (first.kind, second.kind):
        return len(first.correct) == len(second.correct)  # raises if outcomes are not known
    return np.array_equal(first.labels, second.labels)


def align(reference: Predictions, other: Predictions, *, where: str) -> tuple[Predictions, Predictions]:
    """Return two models' predictions with the same order of classes and, if both have ids, the same order of rows.

    Args:
        reference: Predictions that decide the order.
        other: Predictions for the same samples.
        where: Prefix of error messages.

    Returns:
        The reference and the other predictions. Classes that only one top-1 file names are added to both.

    Raises:
        UnmatchedIdsError: If an id occurs in one of them only.
        DataError: If they have other classes.

    Example:
        >>> one = Predictions(probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 1], class_names=["cat", "dog"], ids=[1, 2])
        >>> two = Predictions(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 1], class_names=["dog", "cat"], ids=[2, 1])
        >>> align(one, two, where="doc")[1].probs
        array([[0.6, 0.4],
               [0.3, 0.7]])
    """
    reference, other = order_classes(reference, other, where=where)
    if not all(part.has_kept_rows and part.rows.named for part in (reference, other)):
        return reference, other
    mine, theirs = reference.rows.hashes, other.rows.hashes
    if np.array_equal(mine, theirs):
        return reference, other
    missing, extra = ~np.isin(mine, theirs), ~np.isin(theirs, mine)
    if missing.any() or extra.any():
        parts = [
            f"{int(mask.sum()):,} of {len(mask):,} ids of {whose} (first in row {int(np.argmax(mask))})"
            for mask, whose in (
                (missing, "the first are not in the second"),
                (extra, "the second are not in the first"),
            )
            if mask.any()
        ]
        error = UnmatchedIdsError(
            f"both predictions must have the same ids, and {' and '.join(parts)}. Compare the rows that both have: "
            "leave the others out of both files.",
            where=where,
        )
        error.missing, error.extra = mine[missing][:3], theirs[extra][:3]
        raise error
    if len(np.unique(mine)) < len(mine) or len(mine) != len(theirs):
        raise DataError(
            f"{where}: ids must identify every row to bring rows into one order, and some occur twice."
        )
    order = np.argsort(theirs, kind="stable")[np.searchsorted(np.sort(theirs), mine)]
    return reference, other.take(order).with_dropped(other.n_dropped)


def align_all(parts: Sequence[Predictions], *, where: str) -> list[Predictions]:
    """Return several models' predictions with rows and classes in the order of the first.

    Raises:
        DataError: If they are not of the same rows.

    Example:
        >>> one, two = (Predictions(probs=[0.9, 0.2], labels=[1, 0], ids=ids) for ids in ([1, 2], [1, 3]))
        >>> align_all([one, two], where="doc")
        Traceback (most recent call last):
        ...
        equipoise.core.predictions.alignment.UnmatchedIdsError: doc: both predictions must have the same ids, and ...
    """
    reference = parts[0]
    for part in parts[1:]:
        reference = align(reference, part, where=where)[0]
    aligned = [reference, *(align(reference, part, where=where)[1] for part in parts[1:])]
    for part in aligned[1:]:
        if not same_outcomes(reference, part):
            raise DataError(
                f"{where}: all predictions must be of the same rows in the same order, got {reference!r} and {part!r} "
                "with other labels. Save the outputs of all models for the same data."
            )
    return aligned


def order_classes(
    reference: Predictions, other: Predictions, *, where: str
) -> tuple[Predictions, Predictions]:
    """Return two models' predictions with the same order of classes, if both name them.

    Raises:
        DataError: If they have other classes.

    Example:
        >>> one, two = (Predictions(probs=[[0.9, 0.1]], class_names=names) for names in (["a", "b"], ["b", "a"]))
        >>> order_classes(one, two, where="doc")[1].probs
        array([[0.1, 0.9]])
    """
    mine, theirs = reference.class_names, other.class_names
    if mine is None or theirs is None or mine == theirs:
        return reference, other
    if set(mine) == set(theirs):
        return reference, _reordered(other, mine)
    if reference.kind == other.kind == "top1":
        names = (*mine, *(name for name in theirs if name not in mine))
        return _reordered(reference, names), _reordered(other, names)
    lone = sorted(set(mine) ^ set(theirs))[:4]
    raise DataError(
        f"{where}: both predictions must be of the same classes, and only one of them has "
        f"{', '.join(repr(name[:40]) for name in lone)}. Name the classes of both alike."
    )


def _reordered(predictions: Predictions, names: tuple[str, ...]) -> Predictions:
    """Return the same predictions with classes in another order."""
    own = predictions.class_names or ()
    if len(set(own)) < len(own):
        return predictions  # names that are not unique cannot be matched
    number = {name: place for place, name in enumerate(names)}
    codes = np.array([number[name] for name in own])
    changes: dict[str, Any] = {"class_names": names, "n_classes": len(names), "_ids": predictions.rows}
    if predictions._labels is not None:
        changes["_labels"] = freeze(codes[predictions._labels])
    if predictions._top is not None:
        changes["_top"] = (freeze(codes[predictions._top[0]]), predictions._top[1])
    elif predictions.kind == "logits":
        changes["scores"] = freeze(np.ascontiguousarray(predictions.logits[:, np.argsort(codes)]))
    else:
        changes["scores"] = freeze(np.ascontiguousarray(predictions.probs[:, np.argsort(codes)]))
    return predictions._copy(**changes)
