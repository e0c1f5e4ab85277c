"""The exponential and the logarithm of many numbers at once, as polynomials in plain arithmetic."""

from __future__ import annotations

import math

from numba import types
from numba.extending import intrinsic

from equipoise.compiled.blocks import Block, Row, over_blocks
from equipoise.compiled.simd import Vector

__all__ = ["LOWEST", "exponential", "exponentials", "logarithms"]

#: By width in bits: below this the exponential is hardly a normal number.
LOWEST = {32: -87.0, 64: -708.0}

_LOG2_E = 1.4426950408889634
# By width in bits: the degree of Taylor's series; the explicit bits of a number; the exponent of one; ln 2 in two
# parts, the first with few bits, so that its multiples are exact.
_DEGREE = {32: 6, 64: 13}
_MANTISSA = {32: 23, 64: 52}
_BIAS = {32: 127, 64: 1023}
_LN2 = {32: (0.693359375, -2.12194440e-4), 64: (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
# The bits of the root of one half: mantissas are taken from there to its double, around one.
_ROOT_HALF = 0x3FE6A09E00000000
# The bits of 1.5 * 2**52.
_ROUND_OFF_BITS = 0x4338000000000000


def _round_off(width: int) -> float:
    # Adding 1.5 times the number whose last bit is one rounds to a whole number and leaves it in the low bits.
    return 1.5 * 2.0 ** _MANTISSA[width]


def _round_off_biased(width: int) -> float:
    # The same, and what is left in the low bits is the whole number as an exponent.
    return _round_off(width) + _BIAS[width]


def exponential(x: Vector) -> Vector:
    """Generate exp of lanes between the lowest and 0; relative error below 2e-7 in float32 and 4e-16 in float64.

    Args:
        x: float32 or float64.
    """
    x = x.strict()
    shifted = x * _LOG2_E + _round_off_biased(x.width)
    n = shifted - _round_off_biased(x.width)
    high, low = _LN2[x.width]
    r = x - n * high
    r = r - n * low
    series = r.constant(1 / math.factorial(_DEGREE[x.width]))
    for power in reversed(range(_DEGREE[x.width])):
        series = series * r + 1 / math.factorial(power)
    return series * (shifted.as_bits() << _MANTISSA[x.width]).as_floats()


def _logarithm(x: Vector) -> Vector:
    """Generate log of positive normal float64 lanes; relative error below 4e-16."""
    x = x.strict()
    bits = x.as_bits()
    exponent = (bits - _ROOT_HALF) >> 52
    mantissa = (bits - (exponent << 52)).as_floats()
    n = (exponent + _ROUND_OFF_BITS).as_floats() - _round_off(64)
    # log m = 2 artanh(s), s = (m - 1) / (m + 1).
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = square.constant(2 / 21)
    for odd in range(19, 1, -2):
        series = series * square + 2 / odd
    high, low = _LN2[64]
    return n * high + (s * (series * square) + (n * low + s * 2.0))


@intrinsic
def exponentials(_typing, numbers, size, factor, out):  # type: ignore[no-untyped-def]
    """Write exp(factor * number) of numbers whose product is at most zero; zero below the lowest."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, written = (Row(context, builder, signature.args[n], arguments[n]) for n in (0, 3))
        each = Vector.filled(builder, arguments[2], read.lanes)

        def body(block: Block) -> None:
            x = read.load(block.start, read.lanes) * each
            lowest = LOWEST[x.width]
            written.store(block.start, exponential(x.highest(lowest)).where(x > lowest, 0.0))

        over_blocks(builder, arguments[1], read.lanes, body)
        return context.get_dummy_value()

    return types.void(numbers, size, factor, out), generate


@intrinsic
def logarithms(_typing, numbers, size, out):  # type: ignore[no-untyped-def]
    """Write the logarithms of positive normal float64 numbers; at least one block of memory."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, written = (Row(context, builder, signature.args[n], arguments[n]) for n in (0, 2))

        def body(block: Block) -> None:
            written.store(block.start, _logarithm(read.load(block.start, read.lanes)))

        over_blocks(builder, arguments[1], read.lanes, body)
        return context.get_dummy_value()

    return types.void(numbers, size, out), generate
