"""The header of NumPy's own format, read without trust."""

from __future__ import annotations

import io
import struct
import tokenize
from dataclasses import dataclass
from math import prod
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError, first_line

__all__ = ["LONGEST_HEADER", "Header", "check_dtype", "check_text", "read_header"]

_MAGIC = b"\x93NUMPY"

#: NumPy itself writes headers of a few hundred bytes; version 2 could claim four gigabytes.
LONGEST_HEADER = 1 << 16


@dataclass(frozen=True)
class Header:
    """What an array's header promises.

    Attributes:
        shape: Its shape.
        fortran_order: True if the first axis varies fastest.
        dtype: Its type.
        offset: Where the numbers begin.
    """

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[np.generic]
    offset: int

    @property
    def n_bytes(self) -> int:
        """The number of bytes that must follow the header."""
        return prod(self.shape) * self.dtype.itemsize


def read_header(stream: BinaryIO, *, where: str) -> Header:
    """Read an array's header, and nothing else.

    Args:
        stream: Stands at the beginning of the array; afterwards at its first number.
        where: The file, and the array in it, for messages.

    Raises:
        DataError: If this is no array, or its header is damaged or absurd.

    Example:
        >>> stream = io.BytesIO()
        >>> np.save(stream, np.zeros((2, 3)))
        >>> _ = stream.seek(0)
        >>> read_header(stream, where="doc").shape
        (2, 3)
    """
    start = stream.read(8)
    if start[:6] != _MAGIC[: len(start[:6])] or not start:
        raise DataError(f"{where} is no NumPy array: it does not begin with the bytes of one. Save it again.")
    width, layout = {1: (2, "<H"), 2: (4, "<I")}.get(start[6] if len(start) == 8 else 1, (0, ""))
    if not width:
        raise DataError(f"{where} is in version {start[6]} of NumPy's format, which is not known here.")
    length = stream.read(width)
    size = struct.unpack(layout, length)[0] if len(length) == width else 0
    if size > LONGEST_HEADER - 12:
        raise DataError(f"{where} has a header of {size} bytes, which no array needs. Save it again.")
    text = stream.read(size)
    if len(start) < 8 or len(length) < width or len(text) < size:
        raise DataError(f"{where} ends within its header. The file is cut off: copy it again.")
    return _parse(start + length + text, version=start[6], where=where)


def _parse(content: bytes, *, version: int, where: str) -> Header:
    stream = io.BytesIO(content)
    npy.read_magic(stream)
    parse = npy.read_array_header_1_0 if version == 1 else npy.read_array_header_2_0
    try:
        shape, fortran_order, dtype = parse(stream)
    except (
        ValueError,
        TypeError,
        KeyError,
        SyntaxError,
        MemoryError,
        RecursionError,
        OverflowError,
    ) as error:
        raise _damaged(where, error) from None
    except (tokenize.TokenError, AttributeError, IndexError) as error:
        raise _damaged(where, error) from None
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise DataError(f"{where} has a damaged header: the shape {shape} is impossible. Save it again.")
    return Header(tuple(shape), fortran_order, dtype, len(content))


def _damaged(where: str, error: Exception) -> DataError:
    return DataError(f"{where} has a damaged header ({first_line(error)}). Save it again.")


def check_dtype(dtype: np.dtype[np.generic], *, where: str) -> None:
    """Raise unless a type is numbers or text.

    Raises:
        DataError: With what to save instead.

    Example:
        >>> check_dtype(np.dtype(object), where="a.npz: `labels`")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: a.npz: `labels` holds Python objects, a pickle, which is never loaded. ...
    """
    if dtype.hasobject:
        raise DataError(
            f"{where} holds Python objects, a pickle, which is never loaded. Save plain numbers: pass "
            "array.astype(float), .astype(int) or .astype(str) to numpy."
        )
    if dtype.kind not in "fiubU" or dtype.itemsize == 0:
        raise DataError(
            f"{where} must hold numbers or text, its type is {dtype}. Save each field as its own array."
        )


def check_text(array: Array, *, where: str) -> Array:
    """Return an array; raise if it is text of impossible characters, which Python could not handle.

    Raises:
        DataError: For numbers that are no characters.

    Example:
        >>> check_text(np.array(["a"]), where="doc")
        array(['a'], dtype='<U1')
    """
    if array.dtype.kind == "U" and array.size:
        codes = (
            np.ascontiguousarray(array)
            .reshape(-1)
            .view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        )
        if codes.max() > 0x10FFFF or ((codes >= 0xD800) & (codes < 0xE000)).any():
            raise DataError(
                f"{where} holds text with impossible characters. The file is damaged: save it again."
            )
    return array
