"""One labelled set as two: rows to fit a calibrator on, and rows to judge it by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.alignment import same_outcomes
from equipoise.core.seeds import numpy_generator

__all__ = ["divide"]

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
