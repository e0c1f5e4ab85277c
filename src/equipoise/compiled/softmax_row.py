"""The compiled parts of a softmax of a row of logits."""

from __future__ import annotations

import math

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from equipoise.compiled.blocks import Block, Row, over_blocks
from equipoise.compiled.elementary import LOWEST, exponential
from equipoise.compiled.simd import Running, Vector

__all__ = ["exponentials_below", "highest"]


@intrinsic
def highest(_typing, row, size):  # type: ignore[no-untyped-def]
    """Return the largest of the first numbers of a row, without NaN; at least one block of memory."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        logits = Row(context, builder, signature.args[0], arguments[0])
        nothing = logits.zeros().constant(-math.inf)
        high = Running(nothing)

        def body(block: Block) -> None:
            x = logits.load(block.start, logits.lanes)
            if block.fresh is not None:
                x = x.where(block.fresh, nothing)
            high.become(x.highest(high.now()))

        over_blocks(builder, arguments[1], logits.lanes, body)
        return high.now().largest()

    return row.dtype(row, size), generate


@intrinsic
def exponentials_below(_typing, row, size, top, out):  # type: ignore[no-untyped-def]
    """Write exp(row - top), zero where that is hardly a normal number, and return the sum in float64.

    Args:
        row: Pointer to finite logits, float32 or float64; at least one block of memory.
        size: How many of them are the row.
        top: The highest of them.
        out: Pointer, written, of the same type: a block for each of the row. The last one, if it begins before the end
            of the one before, has a place of its own, where it can be read at once.

    Returns:
        Their sum, in float64.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        logits, written = (Row(context, builder, signature.args[n], arguments[n]) for n in (0, 3))
        high = Vector.filled(builder, arguments[2], logits.lanes)
        lowest = LOWEST[high.width]
        # One addition of two numbers in their own precision, and there is half as much to widen.
        total = Running(logits.zeros().halved().to_doubles())

        def body(block: Block) -> None:
            x = logits.load(block.start, logits.lanes) - high
            exp = exponential(x.highest(lowest)).where(x > lowest, 0.0)
            written.store(builder.mul(block.number, ir.Constant(ir.IntType(64), logits.lanes)), exp)
            if block.fresh is not None:
                exp = exp.where(block.fresh, 0.0)
            total.become(total.now() + exp.halved().to_doubles())

        over_blocks(builder, arguments[1], logits.lanes, body)
        return total.now().total()

    return types.float64(row, size, top, out), generate
