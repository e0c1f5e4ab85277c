"""The parts of the pass over predictions that are written in vectors: scan a row, fold, find bins, pick entries."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from equipoise.compiled.blocks import Block, Row, folded, over_blocks
from equipoise.compiled.simd import Running, Vector

__all__ = ["BATCH", "FOLDED", "find_bins", "fold", "pick", "scan"]

#: How many rows are worked on at once, at most.
BATCH = 64
#: How many numbers of each row are folded from blocks.
FOLDED = 6


@intrinsic
def scan(_typing, row, factor, size, scores, label, weight, threshold, columns, found, owner, gathered):  # type: ignore[no-untyped-def]
    """Read a row once, for all that needs every entry.

    Args:
        row: Pointer to probabilities, at least one block of memory; or to blocks of exponentials, with
        factor: what to multiply them by. None for probabilities.
        size: How many of them are the row.
        scores: Pointer to logits or probabilities of the row, by which classes are ranked.
        label: The true class.
        weight: Of the row, of the type of its numbers.
        threshold: Entries above it are to be found.
        columns: Pointer to a block for each of the row; those entries, weighted, that are not to be found are added.
        found: Pointers to int32, and how many entries were found before: places of these are written behind the first
            pointer, and ``owner`` as often behind the second.
        owner: The number of this row.
        gathered: Pointer to the blocks that :func:`fold` folds, written.

    Returns:
        How many entries are found by now.
    """
    signature = types.int64(
        row, factor, size, scores, label, weight, threshold, columns, found, types.int64, gathered
    )

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        places, owners, count = cgutils.unpack_tuple(builder, arguments[8])
        probs, order, sums, kept = (
            Row(context, builder, signature.args[place], arguments[place]) for place in (0, 3, 7, 10)
        )
        listed, owned = (
            Row(context, builder, signature.args[8][n], pointer) for n, pointer in enumerate((places, owners))
        )
        lanes, zeros = probs.lanes, probs.zeros()

        def everywhere(scalar: Any) -> Vector:
            return Vector.filled(builder, scalar, lanes)

        own = everywhere(builder.load(builder.gep(order.data, [arguments[4]])))
        each, lowest = everywhere(arguments[5]), everywhere(arguments[6])
        scale = None if factor is types.none else everywhere(arguments[1])
        running = [Running(zeros) for _ in range(4)] + [Running(zeros.as_bits()) for _ in range(2)]
        total, squares, high, low, above, not_below = running
        end = cgutils.alloca_once_value(builder, count)

        def body(block: Block) -> None:
            order.fetch_ahead(block.start)
            # Each block has a place of its own: what was stored across two of them could be read only much later.
            slot = builder.mul(block.number, ir.Constant(ir.IntType(64), lanes))
            score = order.load(block.start, lanes)
            x = probs.load(block.start, lanes) if scale is None else probs.load(slot, lanes) * scale
            larger, as_large = score > own, score >= own
            if block.fresh is not None:
                x, larger, as_large = x.where(block.fresh, 0.0), larger & block.fresh, as_large & block.fresh
            above.become(above.now() - larger.minus_ones(x.width))
            not_below.become(not_below.now() - as_large.minus_ones(x.width))
            total.become(total.now() + x)
            squares.become(squares.now() + x * x)
            high.become(x.highest(high.now()))
            low.become(x.lowest(low.now()))
            picked = x > lowest
            builder.store(listed.append_places(builder.load(end), block, picked), end)
            sums.store(slot, sums.load(slot, lanes) + zeros.where(picked, x) * each)

        over_blocks(builder, arguments[2], lanes, body)
        for place, vector in enumerate(running):
            block = vector.now()
            block = block if block.is_float else block.as_floats()
            kept.store(ir.Constant(ir.IntType(64), place * lanes * lanes), block)
        last, step = builder.load(end), ir.Constant(ir.IntType(64), lanes)
        mine = everywhere(builder.trunc(arguments[9], ir.IntType(32)))
        with cgutils.for_range_slice(builder, count, last, step) as (start, _):
            owned.store(start, mine)
        return last

    return signature, generate


@intrinsic
def fold(_typing, gathered, results):  # type: ignore[no-untyped-def]
    """Fold blocks that :func:`scan` gathered of as many rows as a block has lanes.

    Args:
        gathered: Pointer to the blocks: those of all rows, for each of the results.
        results: Pointer, written, a block each, ``BATCH`` apart: sums, sums of squares, the largest, the smallest, how
            many scores are above that of the true class, and how many are not below it.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, written = (Row(context, builder, signature.args[n], arguments[n]) for n in (0, 1))
        lanes = read.lanes
        for number in range(FOLDED):
            first = number * lanes * lanes
            blocks = [
                read.load(ir.Constant(ir.IntType(64), first + place * lanes), lanes) for place in range(lanes)
            ]
            if number < 4:
                combine = {2: Vector.highest, 3: Vector.lowest}.get(number, Vector.__add__)
                result = folded(blocks, combine)
            else:  # counts
                result = folded([block.as_bits() for block in blocks], Vector.__add__).to_numbers()
            written.store(ir.Constant(ir.IntType(64), number * BATCH), result)
        return context.get_dummy_value()

    return types.void(gathered, results), generate


@intrinsic
def find_bins(_typing, numbers, size, edges, n_bins, bins):  # type: ignore[no-untyped-def]
    """Write the bins of numbers from 0 to 1.

    Args:
        numbers: Pointer to at least one block of memory.
        size: How many of them there are.
        edges: Pointer to ``n_bins + 1`` thresholds of the same type.
        n_bins: How many bins.
        bins: Pointer to int32, written; as much memory.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, table, written = (Row(context, builder, signature.args[n], arguments[n]) for n in (0, 2, 4))
        lanes, kind = read.lanes, ir.IntType(32)
        last = Vector.filled(
            builder, builder.trunc(builder.sub(arguments[3], ir.Constant(ir.IntType(64), 1)), kind), lanes
        )
        factor = Vector.filled(builder, builder.sitofp(arguments[3], read.element), lanes)

        def body(block: Block) -> None:
            x = read.load(block.start, lanes)
            if block.within is not None:
                x = x.where(block.within, 0.0)
            # The product is at most one bin off, at an edge; the comparisons put it right.
            near = (x * factor).to_places().lowest(last)
            up, down = x > table.gather(near + 1), x <= table.gather(near)
            written.store(block.start, near + up.ones(32) - down.ones(32))

        over_blocks(builder, arguments[1], lanes, body)
        return context.get_dummy_value()

    return types.void(numbers, types.int64, edges, types.int64, bins), generate


@intrinsic
def pick(_typing, row, owners, stride, places, jump, size, numbers):  # type: ignore[no-untyped-def]
    """Write some entries of some rows.

    Args:
        row: Pointer to the first row.
        owners: Pointer to int32: which rows.
        stride: How far rows are apart.
        places: Pointer to int32: which entries.
        jump: From which entry on, and by how much, they lie further behind.
        size: How many to pick.
        numbers: Pointer, written; at least one block of memory.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, which, where, written = (
            Row(context, builder, signature.args[n], arguments[n]) for n in (0, 1, 3, 6)
        )
        lanes = read.lanes

        def everywhere(scalar: Any) -> Vector:
            return Vector.filled(builder, builder.trunc(scalar, ir.IntType(32)), lanes)

        step, (behind_which, by) = everywhere(arguments[2]), cgutils.unpack_tuple(builder, arguments[4])
        first, further = everywhere(behind_which), everywhere(by)

        def body(block: Block) -> None:
            entry = where.load(block.start, lanes)
            place = which.load(block.start, lanes) * step + entry + further.where(entry >= first, 0)
            if block.within is not None:
                place = place.where(block.within, 0)
            written.store(block.start, read.gather(place))

        over_blocks(builder, arguments[5], lanes, body)
        return context.get_dummy_value()

    return types.void(
        row, owners, types.int64, places, types.UniTuple(types.int64, 2), types.int64, numbers
    ), generate
