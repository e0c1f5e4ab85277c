"""Vectors of numbers in compiled kernels: what a compiler does not find by itself in a loop over a short row.

A block is 64 bytes, one register of the widest processors; for narrower ones the compiler splits it. Rows are walked
in whole blocks, and the last one reaches back over numbers already seen, so that no row has a slow tail. Of rows
shorter than a block what is behind them is read as well, and not used.

Imported by kernels only, because numba takes a second to import. Numba's cache looks at the file of a kernel and not
at this one: after a change here delete the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = [
    "BLOCK",
    "Block",
    "Row",
    "Running",
    "Vector",
    "add_number",
    "add_pair",
    "at",
    "behind",
    "doubles_at",
    "floats_at",
    "folded",
    "keep",
    "number_at",
    "numbers_at",
    "over_blocks",
]

#: Bytes of a block.
BLOCK: Final = 64

# How many bytes ahead memory is asked for.
_AHEAD = 2048

# Sums may be reordered and fused; NaN and infinities keep their meaning.
_FREE = ("reassoc", "contract", "nsz", "arcp")
_FUSED = ("contract",)


@final
class Vector:
    """Some lanes of one type in the code being generated, with the operators of numbers.

    Args:
        builder: Where instructions go.
        value: An LLVM vector.
        flags: What arithmetic on it may do; ``strict`` gives a vector that may only be fused, not reordered.
    """

    def __init__(self, builder: Any, value: Any, flags: tuple[str, ...] = _FREE) -> None:
        self.builder, self.value, self.flags = builder, value, flags
        self.lanes: int = value.type.count
        element = value.type.element
        self.is_float = isinstance(element, (ir.FloatType, ir.DoubleType))
        self.width: int = {"float": 32, "double": 64}[str(element)] if self.is_float else element.width

    @classmethod
    def filled(cls, builder: Any, scalar: Any, lanes: int) -> Vector:
        """Return a vector with one scalar of the generated code in every lane."""
        typ = ir.VectorType(scalar.type, lanes)
        nothing = ir.Constant(typ, ir.Undefined)
        first = builder.insert_element(nothing, scalar, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        return cls(builder, builder.shuffle_vector(first, nothing, zeros))

    def strict(self) -> Vector:
        """Return the same lanes for arithmetic in the order in which it is written."""
        return self._like(self.value, _FUSED)

    def _like(self, value: Any, flags: tuple[str, ...] | None = None) -> Vector:
        return Vector(self.builder, value, self.flags if flags is None else flags)

    def constant(self, number: float) -> Vector:
        """Return a vector of the same type that holds a number known now, rounded to that type."""
        if self.width == 32 and self.is_float:
            number = float(np.float32(number))
        return self._like(ir.Constant(self.value.type, [number] * self.lanes))

    def _other(self, other: Any) -> Any:
        return other.value if isinstance(other, Vector) else self.constant(other).value

    def __add__(self, other: Any) -> Vector:
        if self.is_float:
            return self._like(self.builder.fadd(self.value, self._other(other), flags=self.flags))
        return self._like(self.builder.add(self.value, self._other(other)))

    def __sub__(self, other: Any) -> Vector:
        if self.is_float:
            return self._like(self.builder.fsub(self.value, self._other(other), flags=self.flags))
        return self._like(self.builder.sub(self.value, self._other(other)))

    def __mul__(self, other: Any) -> Vector:
        if not self.is_float:
            return self._like(self.builder.mul(self.value, self._other(other)))
        return self._like(self.builder.fmul(self.value, self._other(other), flags=self.flags))

    def __truediv__(self, other: Any) -> Vector:
        return self._like(self.builder.fdiv(self.value, self._other(other), flags=self.flags))

    def __and__(self, other: Any) -> Vector:
        return self._like(self.builder.and_(self.value, self._other(other)))

    def __invert__(self) -> Vector:
        return self._like(self.builder.not_(self.value))

    def __lshift__(self, bits: int) -> Vector:
        return self._like(self.builder.shl(self.value, self._other(bits)))

    def __rshift__(self, bits: int) -> Vector:
        return self._like(self.builder.ashr(self.value, self._other(bits)))

    def _compare(self, sign: str, other: Any) -> Vector:
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed
        return self._like(compare(sign, self.value, self._other(other)))

    def __gt__(self, other: Any) -> Vector:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Vector:
        return self._compare(">=", other)

    def __le__(self, other: Any) -> Vector:
        return self._compare("<=", other)

    def __lt__(self, other: Any) -> Vector:
        return self._compare("<", other)

    def where(self, mask: Vector, other: Any) -> Vector:
        """Return these lanes where the mask is set, the other's elsewhere."""
        return self._like(self.builder.select(mask.value, self.value, self._other(other)))

    def highest(self, other: Any) -> Vector:
        """Return the larger of each pair of lanes; of a pair with a NaN, the other's."""
        return self.where(self > other, other)

    def lowest(self, other: Any) -> Vector:
        """Return the smaller of each pair of lanes; of a pair with a NaN, the other's."""
        return self.where(self < other, other)

    def shuffled(self, other: Vector, picks: list[int]) -> Vector:
        """Return some lanes of two vectors, by number; those of the other are numbered behind these."""
        chosen = ir.Constant(ir.VectorType(ir.IntType(32), len(picks)), picks)
        return self._like(self.builder.shuffle_vector(self.value, other.value, chosen))

    def as_bits(self) -> Vector:
        """Return the same memory as signed integers."""
        return self._like(self.builder.bitcast(self.value, ir.VectorType(ir.IntType(self.width), self.lanes)))

    def as_floats(self) -> Vector:
        """Return the same memory, of integers, as numbers of that width."""
        element = ir.DoubleType() if self.width == 64 else ir.FloatType()
        return self._like(self.builder.bitcast(self.value, ir.VectorType(element, self.lanes)))

    def to_places(self) -> Vector:
        """Return floating-point lanes, not negative, as int32, cut off."""
        return self._like(self.builder.fptosi(self.value, ir.VectorType(ir.IntType(32), self.lanes)))

    def to_doubles(self) -> Vector:
        """Return floating-point lanes as float64."""
        if self.value.type.element == ir.DoubleType():
            return self
        return self._like(self.builder.fpext(self.value, ir.VectorType(ir.DoubleType(), self.lanes)))

    def ones(self, width: int) -> Vector:
        """Return a mask as integers of a width: 1 where set, 0 elsewhere."""
        return self._like(self.builder.zext(self.value, ir.VectorType(ir.IntType(width), self.lanes)))

    @classmethod
    def counting(cls, builder: Any, lanes: int) -> Vector:
        """Return 0, 1, 2, ... as int32."""
        return cls(builder, ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(lanes))))

    def compressed(self, mask: Vector) -> Vector:
        """Return the int32 lanes that a mask picks, in order, and zeros behind them; for processors that can."""
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(self.value.type, [self.value.type, self.value.type, mask.value.type]),
            f"llvm.x86.avx512.mask.compress.v{self.lanes}i32",
        )
        return self._like(self.builder.call(function, [self.value, self.constant(0).value, mask.value]))

    def packed(self) -> Any:
        """Return a mask as one integer scalar, the first lane its lowest bit."""
        return self.builder.bitcast(self.value, ir.IntType(self.lanes))

    def _folded(self, operation: str, *start: Any, flags: tuple[str, ...] = ()) -> Any:
        element = self.value.type.element
        suffix = {"float": "f32", "double": "f64"}.get(str(element), str(element))
        arguments = [*start, self.value]
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(element, [argument.type for argument in arguments]),
            f"llvm.vector.reduce.{operation}.v{self.lanes}{suffix}",
        )
        return self.builder.call(function, arguments, fastmath=flags)

    def total(self) -> Any:
        """Return the sum of the lanes, a scalar."""
        if self.is_float:
            return self._folded("fadd", ir.Constant(self.value.type.element, 0.0), flags=_FREE)
        return self._folded("add")

    def largest(self) -> Any:
        """Return the largest floating-point lane, a scalar, if none is NaN."""
        return self._folded("fmax", flags=("nnan", "nsz"))


@final
class Running:
    """A vector that changes from block to block.

    Args:
        start: What it holds at first; a constant, or made before the blocks.
    """

    def __init__(self, start: Vector) -> None:
        self.builder, self.flags = start.builder, start.flags
        self.place = cgutils.alloca_once_value(start.builder, start.value)

    def now(self) -> Vector:
        """Return what it holds here."""
        return Vector(self.builder, self.builder.load(self.place), self.flags)

    def become(self, vector: Vector) -> None:
        """Hold something else from here on."""
        self.builder.store(vector.value, self.place)


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
        # Whether the processor compiled for can pack picked lanes of a vector.
        self.compresses = "+avx512vl" in context.codegen().magic_tuple()[2]
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

    def fetch(self, start: Any) -> None:
        """Ask for what will soon be read; where that is no memory of ours nothing happens."""
        ahead = self.builder.add(start, ir.Constant(start.type, _AHEAD // self.itemsize))
        place = self.builder.bitcast(self.builder.gep(self.data, [ahead]), ir.IntType(8).as_pointer())
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
        builder, kind = self.builder, ir.IntType(32)
        first, bits = builder.trunc(block.start, kind), mask.packed()
        picked = builder.zext(builder.ctpop(bits), count.type)
        if self.compresses:
            places = Vector.counting(builder, mask.lanes) + Vector.filled(builder, first, mask.lanes)
            self.store(count, places.compressed(mask))
            return builder.add(count, picked)
        left = cgutils.alloca_once_value(builder, builder.zext(bits, kind))
        with cgutils.for_range(builder, picked) as loop:
            now = builder.load(left)
            place = builder.add(first, builder.cttz(now, ir.Constant(ir.IntType(1), 1)))
            builder.store(place, builder.gep(self.data, [builder.add(count, loop.index)]))
            builder.store(builder.and_(now, builder.sub(now, ir.Constant(kind, 1))), left)
        return builder.add(count, picked)


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


@intrinsic
def at(_typing, array, start):  # type: ignore[no-untyped-def]
    """Return a pointer into a contiguous array; unlike a view it costs nothing and keeps nothing alive.

    An array of the function's own is let go after its last use: see :func:`keep`.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.gep(data, [arguments[1]])

    return types.CPointer(array.dtype)(array, types.int64), generate


@intrinsic
def keep(_typing, array):  # type: ignore[no-untyped-def]
    """Use an array, so that it lives until here."""

    def generate(context, _builder, _signature, _arguments):  # type: ignore[no-untyped-def]
        return context.get_dummy_value()

    return types.void(array), generate


@intrinsic
def floats_at(_typing, address, start):  # type: ignore[no-untyped-def]
    """Return a pointer to float32 numbers, some places behind an address such as a tensor's ``data_ptr()``."""
    return types.CPointer(types.float32)(types.int64, types.int64), _behind(ir.FloatType())


@intrinsic
def doubles_at(_typing, address, start):  # type: ignore[no-untyped-def]
    """Return a pointer to float64 numbers, some places behind an address such as a tensor's ``data_ptr()``."""
    return types.CPointer(types.float64)(types.int64, types.int64), _behind(ir.DoubleType())


@intrinsic
def numbers_at(_typing, address, start, like):  # type: ignore[no-untyped-def]
    """Return a pointer to numbers of the type of another, some places behind an address."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _behind(context.get_data_type(like))(context, builder, signature, arguments)

    return types.CPointer(like)(types.int64, types.int64, like), generate


def _behind(element: Any) -> Callable[..., Any]:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.gep(builder.inttoptr(arguments[0], element.as_pointer()), [arguments[1]])

    return generate


@intrinsic
def behind(_typing, pointer, places):  # type: ignore[no-untyped-def]
    """Return a pointer some places behind another."""

    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), generate


@intrinsic
def number_at(_typing, pointer, place):  # type: ignore[no-untyped-def]
    """Return the number some places behind a pointer."""

    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(builder.gep(arguments[0], [arguments[1]]))

    return pointer.dtype(pointer, types.int64), generate


@intrinsic
def add_number(_typing, pointer, place, number):  # type: ignore[no-untyped-def]
    """Add a number to one some places behind a pointer."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        where = builder.gep(arguments[0], [arguments[1]])
        add = builder.fadd if isinstance(signature.args[2], types.Float) else builder.add
        builder.store(add(builder.load(where), arguments[2]), where)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, pointer.dtype), generate


@intrinsic
def add_pair(_typing, pointer, place, first, second):  # type: ignore[no-untyped-def]
    """Add two float64 to two neighbours some places behind a pointer."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        row = Row(context, builder, signature.args[0], arguments[0])
        pair = ir.Constant(ir.VectorType(ir.DoubleType(), 2), ir.Undefined)
        for lane in (0, 1):
            pair = builder.insert_element(pair, arguments[2 + lane], ir.Constant(ir.IntType(32), lane))
        row.store(arguments[1], row.load(arguments[1], 2) + Vector(builder, pair))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, types.float64, types.float64), generate
