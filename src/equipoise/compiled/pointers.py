"""Pointers in compiled functions: to arrays, to addresses of tensors, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

from equipoise.compiled.blocks import Row
from equipoise.compiled.simd import Vector

__all__ = [
    "add_number",
    "add_pair",
    "at",
    "behind",
    "doubles_at",
    "fetch",
    "keep",
    "number_at",
    "numbers_at",
]


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
def fetch(_typing, pointer, place):  # type: ignore[no-untyped-def]
    """Ask for the memory some places behind a pointer, which will soon be used."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        Row(context, builder, signature.args[0], arguments[0]).fetch(arguments[1])
        return context.get_dummy_value()

    return types.void(pointer, types.int64), generate


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
