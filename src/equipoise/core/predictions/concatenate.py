"""Several predictions as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.rows import Rows

__all__ = ["check_alike", "concatenate"]


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
