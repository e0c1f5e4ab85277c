"""The compiled look at rows of probabilities: is there anything that the checks must name?"""

from __future__ import annotations

import numpy as np

from equipoise.compiled.jit import jit
from equipoise.compiled.openmp_team import over_pieces

__all__ = ["any_odd_row"]

# Sums may be reordered; NaN must still propagate, because the row's sum is what reveals it.
_SUMS = {"reassoc", "contract", "nsz", "arcp"}


@jit(fastmath=_SUMS)
def _total(row):  # type: ignore[no-untyped-def]
    total = row[0] * 0
    for j in range(row.shape[0]):
        total += row[j]
    return total


@jit()
def _range(bits):  # type: ignore[no-untyped-def]
    low = bits[0]
    high = bits[0]
    for j in range(bits.shape[0]):
        low = min(low, bits[j])
        high = max(high, bits[j])
    return low, high


@jit()
def _look(piece, n_pieces, probs, bits, largest, margin, odd):  # type: ignore[no-untyped-def]
    n = probs.shape[0]
    for i in range(n * piece // n_pieces, n * (piece + 1) // n_pieces):
        low, high = _range(bits[i])
        total = _total(probs[i])
        if low < 0 or high > largest or not (abs(total - 1) <= margin):
            odd[piece] = True
            return


@jit()
def any_odd_row(probs, bits, largest, margin, threads):  # type: ignore[no-untyped-def]
    """Return whether some row is not surely a distribution.

    Args:
        probs: ``(m, k)``, contiguous, float32 or float64.
        bits: The same memory as signed integers: negative where a number is, and in its order where it is not.
        largest: The bits of the largest entry allowed.
        margin: How far a row's sum may be from one.
        threads: From :func:`equipoise.compiled.threads.find_team`.
    """
    team, n_pieces = threads
    odd = np.zeros(n_pieces, np.bool_)
    over_pieces(team, n_pieces, _look, (n_pieces, probs, bits, largest, margin, odd))
    return odd.any()
