"""Compiled passes over images in the channels-last layout: batch norm, a sum and a rectifier in as few reads as can be.

Rows are pixels, columns are channels; images are float32, sums are float64. Time goes with the memory touched: where
the rectifier let numbers pass is seen from what is read anyway. Images are given by address, because a view of one in
NumPy costs more than some of the passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from equipoise.compiled.blocks import BLOCK, Row
from equipoise.compiled.openmp_team import over_pieces
from equipoise.compiled.pointers import at, doubles_at, floats_at
from equipoise.compiled.simd import Running, Vector

__all__ = ["LANES", "backward", "forward"]

#: Channels come in multiples of this.
LANES: Final = BLOCK // 4

# So many pixels are worked on for some channels before the next ones: what is read stays in the first cache.
_CHUNK = 64


def _over_pixels(builder: Any, n_pixels: Any, stride: Any, body: Callable[[Any], None]) -> None:
    with cgutils.for_range(builder, n_pixels) as loop:
        body(builder.mul(loop.index, stride))


def _rows(context: Any, builder: Any, signature: Any, arguments: Any, places: tuple[int, ...]) -> list[Row]:
    return [Row(context, builder, signature.args[place], arguments[place]) for place in places]


def _rectified(value: Vector) -> Vector:
    # In this order a NaN stays one.
    return value.where(~(value <= 0.0), 0.0)


@intrinsic
def _moments(_typing, x, n_pixels, stride, sums, squares):  # type: ignore[no-untyped-def]
    """Add numbers and their squares to sums, for one block of channels."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        read, first, second = _rows(context, builder, signature, arguments, (0, 3, 4))
        none = ir.Constant(ir.IntType(64), 0)
        total, square = Running(first.load(none, LANES)), Running(second.load(none, LANES))

        def body(start: Any) -> None:
            read.fetch(start)
            value = read.load(start, LANES).to_doubles()
            total.become(total.now() + value)
            square.become(square.now() + value * value)

        _over_pixels(builder, arguments[1], arguments[2], body)
        first.store(none, total.now())
        second.store(none, square.now())
        return context.get_dummy_value()

    return types.void(x, n_pixels, stride, sums, squares), generate


@intrinsic
def _joint_moments(_typing, gradient, x, n_pixels, stride, sums, products):  # type: ignore[no-untyped-def]
    """Add the gradient and its product with x to sums."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        given, read, first, second = _rows(context, builder, signature, arguments, (0, 1, 4, 5))
        _add_gated(builder, arguments[2], arguments[3], given, read, None, None, first, second)
        return context.get_dummy_value()

    return types.void(gradient, x, n_pixels, stride, sums, products), generate


@intrinsic
def _gated_moments(_typing, gradient, output, x, n_pixels, stride, gated, sums, products):  # type: ignore[no-untyped-def]
    """Write the gradient where the output is positive, and add it and its product with x to sums."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        given, out, read, *others = _rows(context, builder, signature, arguments, (0, 1, 2, 5, 6, 7))

        def gate(start: Any, _: Vector) -> Vector:
            return ~(out.load(start, LANES) <= 0.0)

        _add_gated(builder, arguments[3], arguments[4], given, read, gate, *others)
        return context.get_dummy_value()

    return types.void(gradient, output, x, n_pixels, stride, gated, sums, products), generate


@intrinsic
def _regated_moments(_typing, gradient, x, n_pixels, stride, scale, shift, gated, sums, products):  # type: ignore[no-untyped-def]
    """Write the gradient where scale * x + shift is positive, and add it and its product with x to sums."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        given, read, factor, offset, *others = _rows(
            context, builder, signature, arguments, (0, 1, 4, 5, 6, 7, 8)
        )
        none = ir.Constant(ir.IntType(64), 0)
        a, b = factor.load(none, LANES), offset.load(none, LANES)

        def gate(_: Any, value: Vector) -> Vector:
            return ~(value * a + b <= 0.0)

        _add_gated(builder, arguments[2], arguments[3], given, read, gate, *others)
        return context.get_dummy_value()

    return types.void(gradient, x, n_pixels, stride, scale, shift, gated, sums, products), generate


def _add_gated(
    builder: Any,
    n_pixels: Any,
    stride: Any,
    given: Row,
    read: Row,
    gate: Callable[[Any, Vector], Vector] | None,
    written: Row | None,
    first: Row,
    second: Row,
) -> None:
    none = ir.Constant(ir.IntType(64), 0)
    total, product = Running(first.load(none, LANES)), Running(second.load(none, LANES))

    def body(start: Any) -> None:
        read.fetch(start)
        given.fetch(start)
        x = read.load(start, LANES)
        value = given.load(start, LANES)
        if gate is not None and written is not None:
            value = value.where(gate(start, x), 0.0)
            written.store(start, value)
        wide = value.to_doubles()
        total.become(total.now() + wide)
        product.become(product.now() + wide * x.to_doubles())

    _over_pixels(builder, n_pixels, stride, body)
    first.store(none, total.now())
    second.store(none, product.now())


def _write_line(
    builder: Any,
    n_pixels: Any,
    stride: Any,
    finish: Callable[[Any, Vector], Vector],
    read: Row,
    factor: Row,
    offset: Row,
    written: Row,
) -> None:
    none = ir.Constant(ir.IntType(64), 0)
    a, b = factor.load(none, LANES), offset.load(none, LANES)

    def body(start: Any) -> None:
        read.fetch(start)
        written.store(start, finish(start, read.load(start, LANES) * a + b))

    _over_pixels(builder, n_pixels, stride, body)


@intrinsic
def _scaled(_typing, x, n_pixels, stride, scale, shift, out):  # type: ignore[no-untyped-def]
    """Write max(scale * x + shift, 0), for one block of channels."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        rows = _rows(context, builder, signature, arguments, (0, 3, 4, 5))
        _write_line(builder, arguments[1], arguments[2], lambda _, value: _rectified(value), *rows)
        return context.get_dummy_value()

    return types.void(x, n_pixels, stride, scale, shift, out), generate


@intrinsic
def _shifted(_typing, x, n_pixels, stride, scale, shift, out):  # type: ignore[no-untyped-def]
    """Write scale * x + shift, for one block of channels."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        rows = _rows(context, builder, signature, arguments, (0, 3, 4, 5))
        _write_line(builder, arguments[1], arguments[2], lambda _, value: value, *rows)
        return context.get_dummy_value()

    return types.void(x, n_pixels, stride, scale, shift, out), generate


@intrinsic
def _scaled_with(_typing, x, added, n_pixels, stride, scale, shift, out):  # type: ignore[no-untyped-def]
    """Write max(scale * x + shift + added, 0), for one block of channels."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        beside, *rows = _rows(context, builder, signature, arguments, (1, 0, 4, 5, 6))

        def finish(start: Any, value: Vector) -> Vector:
            return _rectified(value + beside.load(start, LANES))

        _write_line(builder, arguments[2], arguments[3], finish, *rows)
        return context.get_dummy_value()

    return types.void(x, added, n_pixels, stride, scale, shift, out), generate


@intrinsic
def _combined(_typing, gated, x, n_pixels, stride, a, b, c, out):  # type: ignore[no-untyped-def]
    """Write a * gated + b * x + c, for one block of channels."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        given, read, first, second, third, written = _rows(
            context, builder, signature, arguments, (0, 1, 4, 5, 6, 7)
        )
        none = ir.Constant(ir.IntType(64), 0)
        factors = [row.load(none, LANES) for row in (first, second, third)]

        def body(start: Any) -> None:
            read.fetch(start)
            given.fetch(start)
            value = given.load(start, LANES) * factors[0] + read.load(start, LANES) * factors[1] + factors[2]
            written.store(start, value)

        _over_pixels(builder, arguments[2], arguments[3], body)
        return context.get_dummy_value()

    return types.void(gated, x, n_pixels, stride, a, b, c, out), generate


@njit(cache=True, nogil=True)
def _share(piece, n_pieces, n_pixels):  # type: ignore[no-untyped-def]
    n_chunks = (n_pixels + _CHUNK - 1) // _CHUNK
    first, last = n_chunks * piece // n_pieces, n_chunks * (piece + 1) // n_pieces
    return first * _CHUNK, min(last * _CHUNK, n_pixels)


@njit(cache=True, nogil=True)
def _sum_forward(piece, n_pieces, x, n_pixels, k, sums):  # type: ignore[no-untyped-def]
    start, stop = _share(piece, n_pieces, n_pixels)
    mine = sums[piece]
    for first in range(start, stop, _CHUNK):
        n = min(_CHUNK, stop - first)
        for c in range(0, k, LANES):
            _moments(floats_at(x, first * k + c), n, k, at(mine, c), at(mine, k + c))


@njit(cache=True, nogil=True)
def _write_forward(piece, n_pieces, x, added, rectify, n_pixels, k, line, out):  # type: ignore[no-untyped-def]
    start, stop = _share(piece, n_pieces, n_pixels)
    for first in range(start, stop, _CHUNK):
        n = min(_CHUNK, stop - first)
        for c in range(0, k, LANES):
            place, scale, shift = first * k + c, at(line, c), at(line, k + c)
            given, written = floats_at(x, place), floats_at(out, place)
            if added:
                _scaled_with(given, floats_at(added, place), n, k, scale, shift, written)
            elif rectify:
                _scaled(given, n, k, scale, shift, written)
            else:
                _shifted(given, n, k, scale, shift, written)


@njit(cache=True, nogil=True)
def forward(x, added, rectify, n_pixels, k, norm, eps, momentum, out, kept, threads):  # type: ignore[no-untyped-def]
    """Write relu(batch norm of x + added), and move the running statistics as torch does.

    Args:
        x: Address of the images.
        added: Address of images to add, or 0.
        rectify: Whether to rectify; what is added always is.
        n_pixels: Of all images.
        k: Channels, a multiple of ``LANES``.
        norm: Addresses of the norm's factors, offsets, running mean and running variance, which is unbiased.
        eps: Added to variances.
        momentum: Share of this batch in the running statistics.
        out: Address of the images to write.
        kept: Address of ``4 k`` float64, written, for the way back: mean, 1/deviation, scale, shift.
        threads: From :func:`equipoise.compiled.threads.find_team`.
    """
    (weight, bias, mean, variance), (team, n_pieces) = norm, threads
    sums, line = np.zeros((n_pieces, 2 * k)), np.empty((2, k), np.float32)
    over_pieces(team, n_pieces, _sum_forward, (n_pieces, x, n_pixels, k, sums))
    weights, offsets, unit = (
        carray(floats_at(weight, 0), k),
        carray(floats_at(bias, 0), k),
        carray(doubles_at(kept, 0), (4, k)),
    )
    running_mean, running_variance = carray(floats_at(mean, 0), k), carray(floats_at(variance, 0), k)
    for c in range(k):
        total, squares = 0.0, 0.0
        for piece in range(n_pieces):
            total += sums[piece, c]
            squares += sums[piece, k + c]
        centre = total / n_pixels
        spread = max(squares / n_pixels - centre * centre, 0.0)
        rate = 1.0 / math.sqrt(spread + eps)
        line[0, c] = weights[c] * rate
        line[1, c] = offsets[c] - centre * weights[c] * rate
        unit[0, c], unit[1, c], unit[2, c], unit[3, c] = centre, rate, line[0, c], line[1, c]
        running_mean[c] += momentum * (centre - running_mean[c])
        running_variance[c] += momentum * (spread * n_pixels / (n_pixels - 1) - running_variance[c])
    over_pieces(team, n_pieces, _write_forward, (n_pieces, x, added, rectify, n_pixels, k, line, out))


@njit(cache=True, nogil=True)
def _sum_backward(piece, n_pieces, gradient, output, rectified, x, n_pixels, k, line, gated, sums):  # type: ignore[no-untyped-def]
    start, stop = _share(piece, n_pieces, n_pixels)
    mine = sums[piece]
    for first in range(start, stop, _CHUNK):
        n = min(_CHUNK, stop - first)
        for c in range(0, k, LANES):
            place = first * k + c
            given, read, written = floats_at(gradient, place), floats_at(x, place), floats_at(gated, place)
            totals, products = at(mine, c), at(mine, k + c)
            if output:
                _gated_moments(given, floats_at(output, place), read, n, k, written, totals, products)
            elif rectified:
                _regated_moments(given, read, n, k, at(line, c), at(line, k + c), written, totals, products)
            else:
                _joint_moments(given, read, n, k, totals, products)


@njit(cache=True, nogil=True)
def _write_backward(piece, n_pieces, gated, x, n_pixels, k, factors, slope):  # type: ignore[no-untyped-def]
    start, stop = _share(piece, n_pieces, n_pixels)
    for first in range(start, stop, _CHUNK):
        n = min(_CHUNK, stop - first)
        for c in range(0, k, LANES):
            place = first * k + c
            passed, read, written = floats_at(gated, place), floats_at(x, place), floats_at(slope, place)
            _combined(passed, read, n, k, at(factors, c), at(factors, k + c), at(factors, 2 * k + c), written)


@njit(cache=True, nogil=True)
def backward(gradient, output, rectified, x, n_pixels, k, weight, kept, gated, slope, slopes, threads):  # type: ignore[no-untyped-def]
    """Write the slopes of everything that went into :func:`forward`.

    Args:
        gradient: Address of the slope of the output.
        output: Address of the output, positive where a gradient passes; 0 if nothing was added, when x tells it.
        rectified: Whether there was a rectifier.
        x: Address of the images.
        n_pixels: Of all images.
        k: Channels.
        weight: Address of the norm's factors.
        kept: Address of what :func:`forward` kept.
        gated: Address for the gradient that passes, which is the slope of what was added; without a rectifier the
            address of ``gradient``.
        slope: Address for the slope of x; may be that of ``gated``.
        slopes: Address for the slopes of weight and bias, ``2 k`` float32.
        threads: From :func:`equipoise.compiled.threads.find_team`.
    """
    team, n_pieces = threads
    sums, factors = np.zeros((n_pieces, 2 * k)), np.empty((3, k), np.float32)
    weights, unit, found = (
        carray(floats_at(weight, 0), k),
        carray(doubles_at(kept, 0), (4, k)),
        carray(floats_at(slopes, 0), (2, k)),
    )
    line = unit[2:].astype(np.float32)
    over_pieces(
        team,
        n_pieces,
        _sum_backward,
        (n_pieces, gradient, output, rectified, x, n_pixels, k, line, gated, sums),
    )
    for c in range(k):
        total, product = 0.0, 0.0
        for piece in range(n_pieces):
            total += sums[piece, c]
            product += sums[piece, k + c]
        mean, rate = unit[0, c], unit[1, c]
        turn = rate * (product - mean * total)
        a = weights[c] * rate
        b = -a * rate * turn / n_pixels
        factors[0, c], factors[1, c], factors[2, c] = a, b, -a * total / n_pixels - b * mean
        found[0, c], found[1, c] = turn, total
    over_pieces(team, n_pieces, _write_backward, (n_pieces, gated, x, n_pixels, k, factors, slope))
