"""The compiled softmax for blocks of float32 logits, with the log-likelihood on the side.

The exponential is a polynomial in plain arithmetic, so that the compiler can work on many classes at once. Its
relative error is below 2e-7, as good as the type of the input.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["softmax_rows"]

_F = np.float32
_LOG2_E = _F(1.4426950408889634)
# ln 2 in two parts, the first exact in few bits, so that n * ln 2 can be subtracted without rounding.
_LN2_HIGH, _LN2_LOW = _F(0.693359375), _F(-2.12194440e-4)
_LOWEST = _F(-87.0)
_REORDER = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True)
def _highest(bits):  # type: ignore[no-untyped-def]
    """Return the bits of the largest float32; flipping negative ones makes bit patterns order like numbers."""
    high = np.int32(-(2**31))
    for j in range(bits.shape[0]):
        high = max(high, bits[j] ^ ((bits[j] >> np.int32(31)) & np.int32(0x7FFFFFFF)))
    return high ^ ((high >> np.int32(31)) & np.int32(0x7FFFFFFF))


@njit(cache=True, nogil=True, fastmath={"contract"})
def _exponentials(row, highest, mantissa, exponent):  # type: ignore[no-untyped-def]
    """Split exp(row - highest) into a polynomial and the bits of a power of two."""
    for j in range(row.shape[0]):
        x = max(row[j] - highest, _LOWEST)
        n = np.int32(x * _LOG2_E - _F(0.5))
        r = x - _F(n) * _LN2_HIGH
        r = r - _F(n) * _LN2_LOW
        p = _F(1 / 720) * r + _F(1 / 120)
        p = p * r + _F(1 / 24)
        p = p * r + _F(1 / 6)
        p = p * r + _F(0.5)
        p = p * r + _F(1.0)
        mantissa[j] = p * r + _F(1.0)
        exponent[j] = (n + np.int32(127)) << np.int32(23)


@njit(cache=True, nogil=True, fastmath=_REORDER)
def _total(row, highest, mantissa, power):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(row.shape[0]):
        value = mantissa[j] * power[j] if row[j] - highest > _LOWEST else _F(0.0)
        mantissa[j] = value
        total += float(value)
    return total


@njit(cache=True, nogil=True, fastmath=_REORDER)
def _scale(row, factor):  # type: ignore[no-untyped-def]
    for j in range(row.shape[0]):
        row[j] *= factor


@njit(cache=True, nogil=True)
def softmax_rows(logits, bits, labels, probs, nll):  # type: ignore[no-untyped-def]
    """Write softmax and negative log-likelihood of rows of float32 logits.

    Args:
        logits: ``(m, k)`` float32, finite.
        bits: The same memory as int32.
        labels: ``(m,)`` int64.
        probs: ``(m, k)`` float32, written.
        nll: ``(m,)`` float64, written; finite for any finite logits.
    """
    exponent = np.empty(logits.shape[1], np.int32)
    power = exponent.view(np.float32)
    value = np.empty(1, np.float32)
    value_bits = value.view(np.int32)
    for i in range(logits.shape[0]):
        value_bits[0] = _highest(bits[i])
        highest = value[0]
        _exponentials(logits[i], highest, probs[i], exponent)
        total = _total(logits[i], highest, probs[i], power)
        nll[i] = math.log(total) - (float(logits[i, labels[i]]) - float(highest))
        _scale(probs[i], _F(1.0 / total))
