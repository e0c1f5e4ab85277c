"""One labelled set as two: rows to fit a calibrator on, and rows to judge it by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator

__all__ = ["divide"]

_WHERE = "divide"


def divide(
    parts: Sequence[Predictions], share: float, *, seed: int = 0
) -> list[tuple[Predictions, Predictions]]:
    """Divide predictions at random into rows to fit on and rows to judge by.

    Rows with the same id, or without ids with the same scores and label, stay together, so that the two sides share
    none. Several models' predictions of the same rows are divided alike, as the first is.

    Args:
        parts: Predictions, all of the same rows in the same order.
        share: How much of them is to fit on, between 0 and 1.
        seed: The same seed divides the same rows in the same way.

    Returns:
        For each of the predictions, those to fit on, of the split ``calib``, and those to judge by, of ``test`` unless
        the rows are known to be from ``train`` or ``tune``.

    Raises:
        ValueError: If the share is not between 0 and 1.
        DataError: If there are too few different rows, or models have other rows.

    Example:
        >>> rows = Predictions(probs=np.linspace(0, 1, 10), labels=[0, 1] * 5)
        >>> divide([rows], 0.3)
        [(Predictions(probs, n=3, k=2, split=calib), Predictions(probs, n=7, k=2, split=test))]
    """
    if not 0 < share < 1:
        raise ValueError(f"{_WHERE}: `share` must be between 0 and 1, got {share}. Half of the rows is 0.5.")
    first = parts[0]
    for part in parts[1:]:
        if not np.array_equal(part.labels, first.labels):
            raise DataError(
                f"{_WHERE}: all predictions must be of the same rows, got {first!r} and {part!r}."
            )
    different, number = np.unique(first.rows.hashes, return_inverse=True)
    if len(different) < 2:
        raise DataError(f"{_WHERE}: one row cannot be divided, and {first!r} holds no two that differ.")
    n_fit = min(max(1, round(share * len(different))), len(different) - 1)
    chosen = np.zeros(len(different), bool)
    chosen[numpy_generator(seed, _WHERE).permutation(len(different))[:n_fit]] = True
    fit = chosen[number]
    judge = first.split if first.split in ("train", "tune") else "test"
    return [(part.take(fit).with_split("calib"), part.take(~fit).with_split(judge)) for part in parts]
