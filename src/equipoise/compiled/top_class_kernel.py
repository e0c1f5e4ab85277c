"""The compiled search for the likeliest class of every row."""

from __future__ import annotations

from equipoise.compiled.jit import jit

__all__ = ["top_rows"]


@jit()
def top_rows(scores, predicted, highest):  # type: ignore[no-untyped-def]
    """Write the column of the largest number of each row, the first of equals, and that number.

    Args:
        scores: ``(m, k)``, no NaN.
        predicted: ``(m,)`` int64, written.
        highest: ``(m,)``, written.
    """
    for i in range(scores.shape[0]):
        best, place = scores[i, 0], 0
        for j in range(1, scores.shape[1]):
            if scores[i, j] > best:
                best, place = scores[i, j], j
        predicted[i], highest[i] = place, best
