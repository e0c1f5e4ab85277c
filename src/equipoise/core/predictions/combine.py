"""Sets of predictions put together: joined, divided into parts, or of several models in one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.core.arrays import Array, freeze
from equipoise.core.errors import DataError
from equipoise.core.predictions.predictions import Predictions
from equipoise.core.rows import Rows
from equipoise.core.seeds import numpy_generator

__all__ = [
    "UnmatchedIdsError",
    "align",
    "align_all",
    "check_alike",
    "concatenate",
    "divide",
    "order_classes",
    "same_outcomes",
]


def concatenate(parts: Sequence[Predictions]) -> Predictions:
    """Return the rows of several predictions, one after the other.

    Args:
        parts: At least one; all of the same kind, classes, split and groups.

    Raises:
        DataError: If they do not belong together.

    Example:
        >>> part = Predictions(probs=[[0.9, 0.1]], labels=[0])
        >>> concatenate([part, part])
        Predictions(probs, n=2, k=2)
    """
    if not parts:
        raise DataError("concatenate: no predictions were given. Pass at least one.")
    first = parts[0]
    for number, part in enumerate(parts[1:], start=1):
        check_alike(f"concatenate: part {number}", part, "part 0", first)
    top1, outcomes = first.kind == "top1", first.kind == "confidence"
    scores = np.concatenate([_known(part.scores) for part in parts]) if first.has_scores else None
    joined = Predictions(
        labels=np.concatenate([part.labels for part in parts]) if first.has_labels and not outcomes else None,
        logits=scores if first.kind == "logits" else None,
        probs=scores if first.kind == "probs" else None,
        predicted=np.concatenate([part.predicted for part in parts]) if top1 else None,
        confidence=None if first.has_scores else np.concatenate([part.confidence for part in parts]),
        correct=np.concatenate([part.correct for part in parts]) if first.has_labels and outcomes else None,
        weights=None if first.weights is None else np.concatenate([_known(part.weights) for part in parts]),
        groups={name: np.concatenate([part.groups[name] for part in parts]) for name in first.groups},
        class_names=first.class_names,
        split=first.split,
        n_classes=first.n_classes,
        ids=_rows(parts),
        fitted_on=_fitted_on(parts),
    )
    same = len({part.precision for part in parts}) == 1
    precision = first.precision if same else joined.precision
    return joined._copy(precision=precision, n_dropped=sum(part.n_dropped for part in parts))


def check_alike(where: str, chunk: Predictions, first_where: str, first: Predictions) -> None:
    """Raise unless a chunk has the form of the first one of its stream.

    Raises:
        DataError: With what differs.

    Example:
        >>> one, two = (Predictions(probs=[[0.5, 0.5]], labels=[0], split=split) for split in ("calib", "test"))
        >>> check_alike("b.npz", two, "a.npz", one)
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: b.npz: split must be as in a.npz, 'calib', got 'test'. ...
    """
    for what in ("kind", "n_classes", "class_names", "split", "one_column", "has_labels"):
        mine, theirs = getattr(chunk, what), getattr(first, what)
        if mine != theirs:
            raise DataError(
                f"{where}: {what} must be as in {first_where}, {theirs!r}, got {mine!r}. "
                "Files of one stream belong together; read others apart."
            )
    if set(chunk.groups) != set(first.groups) or (chunk.weights is None) != (first.weights is None):
        raise DataError(f"{where}: must have the same groups and weights as {first_where}.")


def _known(column: Array | None) -> Array:
    assert column is not None
    return column


def _rows(parts: Sequence[Predictions]) -> Rows | None:
    if not any(part.has_kept_rows for part in parts):
        return None
    if len({part.rows.named for part in parts}) > 1:
        raise DataError(
            "either all parts must have ids or none, got both. Read them all with {ids}.",
            where="concatenate",
            arguments={"ids": ""},
        )
    return Rows(np.concatenate([part.rows.hashes for part in parts]), parts[0].rows.named)


def _fitted_on(parts: Sequence[Predictions]) -> Rows | None:
    found: Rows | None = None
    for part in parts:
        if part.fitted_on is not None:
            found = part.fitted_on.union(found)
    return found


_WHERE = "divide"


def divide(
    parts: Sequence[Predictions], share: float, *, seed: int = 0, clusters: Array | None = None
) -> list[tuple[Predictions, Predictions]]:
    """Divide predictions at random into rows to fit on and rows to judge by.

    Rows are drawn by their position, so that equal scores and labels do not matter. Rows with the same id stay
    together, as do those of a cluster. Several models' predictions of the same rows are divided alike.

    Args:
        parts: Predictions, all of the same rows in the same order.
        share: How much of them is to fit on, between 0 and 1.
        seed: The same seed divides the same rows in the same way.
        clusters: Number of each row's cluster ``(n,)``; whole clusters go to one side, so that the share is met as
            closely as their sizes allow.

    Returns:
        For each of the predictions, those to fit on, of the split ``calib``, and those to judge by, of ``test`` unless
        the rows are known to be from ``train`` or ``tune``.

    Raises:
        ValueError: If the share is not between 0 and 1.
        DataError: If there are fewer than two rows, ids or clusters, or models have other rows.

    Example:
        >>> rows = Predictions(probs=np.linspace(0, 1, 10), labels=[0, 1] * 5)
        >>> divide([rows], 0.3)
        [(Predictions(probs, n=3, k=2, split=calib), Predictions(probs, n=7, k=2, split=test))]
    """
    if not 0 < share < 1:
        raise ValueError(f"{_WHERE}: `share` must be between 0 and 1, got {share}. Half of the rows is 0.5.")
    first = parts[0]
    for part in parts[1:]:
        if not same_outcomes(part, first):
            raise DataError(
                f"{_WHERE}: all predictions must be of the same rows, got {first!r} and {part!r}."
            )
    unit, what = np.arange(len(first)), "row"
    if clusters is not None:
        unit, what = np.unique(clusters, return_inverse=True)[1], "cluster"
    elif first.has_kept_rows and first.rows.named:
        unit, what = np.unique(first.rows.hashes, return_inverse=True)[1], "id"
    sizes = np.bincount(unit)
    if len(sizes) < 2:
        raise DataError(f"{_WHERE}: one {what} cannot be divided, and {first!r} has no more. Pass more rows.")
    order = numpy_generator(seed, _WHERE).permutation(len(sizes))
    reached = np.cumsum(sizes[order])[:-1]
    n_fit = 1 + int(np.argmin(np.abs(reached - share * len(first))))
    chosen = np.zeros(len(sizes), bool)
    chosen[order[:n_fit]] = True
    fit = chosen[unit]
    judge = first.split if first.split in ("train", "tune") else "test"
    return [(part.take(fit).with_split("calib"), part.take(~fit).with_split(judge)) for part in parts]


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
        equipoise.core.predictions.combine.UnmatchedIdsError: doc: both predictions must have the same ids, and ...
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
