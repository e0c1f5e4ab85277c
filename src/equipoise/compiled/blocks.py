"""Rows of numbers in generated code, walked a block at a time.

A block is as long as the widest register: 64 bytes where there is AVX-512, else 32. Longer blocks than registers were
measured: the running sums of a scan no longer fit the sixteen registers of AVX2, and go through memory. The last block
of a row reaches back over numbers already seen, so that no row has a slow tail. Of rows shorter than a block what is
behind them is read as well, and not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from llvmlite import ir
from numba.core import cgutils
from numba.core.registry import cpu_target

from equipoise.compiled.simd import Vector

__all__ = ["BLOCK", "FEATURES", "Block", "Row", "folded", "over_blocks"]

#: What the processor that is compiled for can do, as LLVM names it.
FEATURES: Final[str] = cpu_target.target_context.codegen().magic_tuple()[2]

#: Bytes of a block.
BLOCK: Final = 64 if "+avx512vl" in FEATURES else 32

# From how many lanes on those that are picked can be packed by one instruction; None if by none.
_COMPRESSES_FROM = 4 if "+avx512vl" in FEATURES else None

# The longest mask that is looked up in a table; one for sixteen lanes would be a megabyte.
_TABLE_LANES = 8

# How many bytes ahead memory is asked for.
_AHEAD = 2048


@final
@dataclass(frozen=True)
class Block:
    """Where in a row generated code is.

    Attributes:
        number: Which block, a scalar.
        start: The number of its first lane in the row, a scalar.
        within: Which lanes are of the row, a mask; None if all.
        fresh: Which of these were not seen before, a mask; None if all.
    """

    number: Any
    start: Any
    within: Vector | None = None
    fresh: Vector | None = None


@final
class Row:
    """Numbers one after the other in generated code.

    Args:
        context: Of the code generator.
        builder: Where instructions go.
        typ: Numba's type of a pointer from :func:`at`.
        pointer: To the first of them.
    """

    def __init__(self, context: Any, builder: Any, typ: Any, pointer: Any) -> None:
        self.builder, self.data = builder, pointer
        self.element = context.get_data_type(typ.dtype)
        self.itemsize = typ.dtype.bitwidth // 8
        self.lanes = BLOCK // self.itemsize

    def _at(self, start: Any, lanes: int) -> Any:
        place = self.builder.gep(self.data, [start])
        return self.builder.bitcast(place, ir.VectorType(self.element, lanes).as_pointer())

    def load(self, start: Any, lanes: int) -> Vector:
        """Return lanes from some number on."""
        return Vector(self.builder, self.builder.load(self._at(start, lanes), align=self.itemsize))

    def gather(self, places: Vector) -> Vector:
        """Return the numbers at some places, int32."""
        kind, long = ir.VectorType(self.element, places.lanes), ir.IntType(64)
        start = Vector.filled(self.builder, self.builder.ptrtoint(self.data, long), places.lanes)
        steps = self.builder.sext(places.value, ir.VectorType(long, places.lanes))
        addresses = start + Vector(self.builder, steps) * self.itemsize
        pointers = self.builder.inttoptr(
            addresses.value, ir.VectorType(self.element.as_pointer(), places.lanes)
        )
        name = {"float": "f32", "double": "f64"}.get(str(self.element), str(self.element))
        mask, number = ir.VectorType(ir.IntType(1), places.lanes), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(kind, [pointers.type, number, mask, kind]),
            f"llvm.masked.gather.v{places.lanes}{name}.v{places.lanes}p0",
        )
        everywhere, nothing = ir.Constant(mask, [1] * places.lanes), ir.Constant(kind, ir.Undefined)
        align = ir.Constant(number, self.itemsize)
        return Vector(self.builder, self.builder.call(function, [pointers, align, everywhere, nothing]))

    def zeros(self) -> Vector:
        """Return a block of zeros."""
        return Vector(self.builder, ir.Constant(ir.VectorType(self.element, self.lanes), [0.0] * self.lanes))

    def fetch_ahead(self, start: Any) -> None:
        """Ask for what will be read some blocks later."""
        self.fetch(self.builder.add(start, ir.Constant(start.type, _AHEAD // self.itemsize)))

    def fetch(self, start: Any) -> None:
        """Ask for what will soon be read; where that is no memory of ours nothing happens."""
        place = self.builder.bitcast(self.builder.gep(self.data, [start]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(ir.VoidType(), [place.type, number, number, number]),
            "llvm.prefetch.p0",
        )
        # For reading, to be kept in all caches, data.
        self.builder.call(function, [place, *(ir.Constant(number, flag) for flag in (0, 3, 1))])

    def store(self, start: Any, vector: Vector) -> None:
        """Write lanes from some number on."""
        self.builder.store(vector.value, self._at(start, vector.lanes), align=self.itemsize)

    def append_places(self, count: Any, block: Block, mask: Vector) -> Any:
        """Write the places in a row of the lanes that a mask picks, one after the other; this row holds int32.

        What is behind them, up to a block of places, may be overwritten.

        Args:
            count: The number from which on to write, a scalar.
            block: Where the lanes are.
            mask: Which of them are picked.

        Returns:
            The number from which on to write the next, a scalar.
        """
        builder = self.builder
        start = builder.trunc(block.start, ir.IntType(32))
        if _COMPRESSES_FROM is not None and mask.lanes >= _COMPRESSES_FROM:
            places = Vector.counting(builder, mask.lanes) + Vector.filled(builder, start, mask.lanes)
            self.store(count, places.compressed(mask))
            return builder.add(count, builder.zext(builder.ctpop(mask.packed()), count.type))
        # A table says which lanes a mask picks: a loop over them would be as long as nobody can guess.
        lanes = min(mask.lanes, _TABLE_LANES)
        for first in range(0, mask.lanes, lanes):
            bits = mask.shuffled(mask, list(range(first, first + lanes))).packed()
            from_here = builder.add(start, ir.Constant(ir.IntType(32), first))
            places = _picked_lanes(builder, bits, lanes) + Vector.filled(builder, from_here, lanes)
            self.store(count, places)
            count = builder.add(count, builder.zext(builder.ctpop(bits), count.type))
        return count


def _picked_lanes(builder: Any, bits: Any, lanes: int) -> Vector:
    """Return the numbers of the lanes whose bits are set, one after the other, as int32; zeros behind them."""
    name, byte = f"equipoise.picked_lanes.{lanes}", ir.IntType(8)
    table = builder.module.globals.get(name)
    if table is None:
        picked = [[lane for lane in range(lanes) if mask >> lane & 1] for mask in range(1 << lanes)]
        content = [number for row in picked for number in row + [0] * (lanes - len(row))]
        table = cgutils.global_constant(builder, name, ir.Constant(ir.ArrayType(byte, len(content)), content))
    long = ir.IntType(64)
    place = builder.mul(builder.zext(bits, long), ir.Constant(long, lanes))
    start = builder.gep(table, [ir.Constant(long, 0), place])
    row = builder.load(builder.bitcast(start, ir.VectorType(byte, lanes).as_pointer()), align=1)
    return Vector(builder, builder.zext(row, ir.VectorType(ir.IntType(32), lanes)))


def folded(vectors: list[Vector], combine: Callable[[Vector, Vector], Vector]) -> Vector:
    """Return a vector whose lanes are as many vectors, each folded to one number.

    Folding them together takes a third of the work of one after the other.

    Args:
        vectors: As many as each has lanes.
        combine: Of two vectors makes one, lane by lane.
    """
    lanes, width = vectors[0].lanes, vectors[0].lanes
    while len(vectors) > 1:
        groups, half = range(0, 2 * lanes, width), width // 2
        low = [group + lane for group in groups for lane in range(half)]
        high = [place + half for place in low]
        vectors = [
            combine(one.shuffled(two, low), one.shuffled(two, high))
            for one, two in zip(vectors[::2], vectors[1::2], strict=True)
        ]
        width = half
    return vectors[0]


def over_blocks(builder: Any, size: Any, lanes: int, body: Callable[[Block], None]) -> None:
    """Generate ``body`` for blocks that cover a row.

    The last block ends where the row ends, so it may begin with lanes that were seen before. Of a row shorter than a
    block the lanes behind its end are not fresh; there must be memory to read.

    Args:
        builder: Where instructions go.
        size: Numbers in the row, a scalar.
        lanes: Numbers in a block.
        body: Generates the work for one block; called for whole blocks and for the last.
    """
    step, nothing = ir.Constant(size.type, lanes), ir.Constant(size.type, 0)
    whole = builder.sdiv(size, step)
    with cgutils.for_range(builder, whole) as loop:
        body(Block(loop.index, builder.mul(loop.index, step)))
    done = builder.mul(whole, step)
    with builder.if_then(builder.icmp_signed(">", size, done)):
        back = builder.sub(size, step)
        start = builder.select(builder.icmp_signed(">", back, nothing), back, nothing)
        seen = builder.sub(done, start)
        numbers = Vector.counting(builder, lanes)

        def everywhere(scalar: Any) -> Vector:
            return Vector.filled(builder, builder.trunc(scalar, ir.IntType(32)), lanes)

        within = numbers < everywhere(builder.sub(size, start))
        body(Block(whole, start, within, (numbers >= everywhere(seen)) & within))
