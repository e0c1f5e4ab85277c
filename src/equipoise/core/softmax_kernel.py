"""The compiled softmax of a row of logits, with what the log-likelihood needs on the side."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from equipoise.core.elementary import LOWEST, exponential
from equipoise.core.lanes import Block, Row, Running, Vector, number_at, over_blocks

__all__ = ["softmax_row"]


@intrinsic
def _highest(_typing, row, size):  # type: ignore[no-untyped-def]
    """Return the largest of the first numbers of a row, without NaN."""

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
def _exponentials(_typing, row, size, highest, out):  # type: ignore[no-untyped-def]
    """Write exp(row - highest), zero where that is hardly a normal number, and return the sum in float64."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        logits, written = (Row(context, builder, signature.args[n], arguments[n]) for n in (0, 3))
        top = Vector.filled(builder, arguments[2], logits.lanes)
        lowest = LOWEST[top.width]
        total = Running(logits.zeros().to_doubles())

        def body(block: Block) -> None:
            x = logits.load(block.start, logits.lanes) - top
            exp = exponential(x.highest(lowest)).where(x > lowest, 0.0)
            written.store(block.start, exp)
            if block.fresh is not None:
                exp = exp.where(block.fresh, 0.0)
            total.become(total.now() + exp.to_doubles())

        over_blocks(builder, arguments[1], logits.lanes, body)
        return total.now().total()

    return types.float64(row, size, highest, out), generate


@intrinsic
def _scale(_typing, row, size, factor):  # type: ignore[no-untyped-def]
    """Multiply a row by a factor."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        numbers = Row(context, builder, signature.args[0], arguments[0])
        factor = arguments[2] if numbers.itemsize == 8 else builder.fptrunc(arguments[2], numbers.element)
        each = Vector.filled(builder, factor, numbers.lanes)

        def body(block: Block) -> None:
            x = numbers.load(block.start, numbers.lanes)
            numbers.store(block.start, x * each if block.fresh is None else (x * each).where(block.fresh, x))

        over_blocks(builder, arguments[1], numbers.lanes, body)
        return context.get_dummy_value()

    return types.void(row, size, factor), generate


@njit(cache=True, nogil=True)
def softmax_row(row, size, label, probs):  # type: ignore[no-untyped-def]
    """Write the softmax of a row; the negative log-likelihood is the logarithm of the first result plus the second.

    Args:
        row: Pointer to finite logits, float32 or float64; at least one block of memory.
        size: How many of them are the row.
        label: The true class.
        probs: Pointer, written, of the same type; at least one block.

    Returns:
        The sum of exponentials below the highest logit, and how far the true class is below it.
    """
    highest = _highest(row, size)
    total = _exponentials(row, size, highest, probs)
    _scale(probs, size, 1.0 / total)
    return total, np.float64(highest) - np.float64(number_at(row, label))
