"""Vectors in generated code: what a compiler does not find by itself in a loop over a short row.

A `Vector` wraps an LLVM vector and has the operators of numbers, so that a kernel reads as arithmetic. Everything here
runs while code is generated, never while it works. How rows are walked is told in :mod:`equipoise.compiled.blocks`.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from llvmlite import ir
from numba.core import cgutils

__all__ = ["Running", "Vector"]

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

    def halved(self) -> Vector:
        """Return half as many lanes, each the sum of two."""
        half = self.lanes // 2
        return self.shuffled(self, list(range(half))) + self.shuffled(self, list(range(half, self.lanes)))

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

    def to_numbers(self) -> Vector:
        """Return integer lanes as floating-point numbers of the same width."""
        element = ir.DoubleType() if self.width == 64 else ir.FloatType()
        return self._like(self.builder.sitofp(self.value, ir.VectorType(element, self.lanes)))

    def minus_ones(self, width: int) -> Vector:
        """Return a mask as integers of a width: -1 where set, 0 elsewhere; this is how registers hold it."""
        return self._like(self.builder.sext(self.value, ir.VectorType(ir.IntType(width), self.lanes)))

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
