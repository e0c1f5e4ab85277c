"""NumPy's own format: the header, read without trust, and files that hold one array each."""

from __future__ import annotations

import io
import struct
import tokenize
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from equipoise.core.arrays import Array
from equipoise.core.atomic_files import atomic_path
from equipoise.core.errors import DataError, first_line
from equipoise.core.reading.formats.base import ArrayReader, WrittenColumns
from equipoise.core.reading.formats.immutable_file import ImmutableFile

__all__ = [
    "LONGEST_HEADER",
    "Header",
    "NpyReader",
    "check_dtype",
    "check_text",
    "read_header",
    "write_npy",
]


_MAGIC = b"\x93NUMPY"

#: NumPy itself writes headers of a few hundred bytes; version 2 could claim four gigabytes.
LONGEST_HEADER = 1 << 16


@dataclass(frozen=True)
class Header:
    """Content of an array's header.

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
        DataError: If this is not an array, or its header is damaged or absurd.

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


class NpyReader(ArrayReader):
    """Several .npy files as the columns of one table, copied chunk by chunk."""

    def __init__(self, paths: Mapping[str, Path], max_bytes: int | None = None) -> None:
        with ExitStack() as stack:
            self._files = {name: stack.enter_context(ImmutableFile(path)) for name, path in paths.items()}
            self._headers = {name: _checked_header(file) for name, file in self._files.items()}
            self._open = stack.pop_all()
        size = sum(file.length for file in self._files.values())
        where = " and ".join(path.name for path in paths.values())
        super().__init__(where, self._headers, size=size, max_bytes=max_bytes)

    def close(self) -> None:
        """Let go of the files."""
        self._open.close()

    def is_text(self, name: str) -> bool:
        """Say whether a column holds text."""
        return self._headers[name].dtype.kind == "U"

    def rows_of(self, name: str) -> Callable[[int, int], Any]:
        """Return a function that gives the rows from start to stop."""
        header, file = self._headers[name], self._files[name]
        check_dtype(header.dtype, where=file.where)
        take = _by_column if header.fortran_order else _by_row
        return lambda start, stop: check_text(take(file, header, start, stop), where=file.where)


def _by_row(file: ImmutableFile, header: Header, start: int, stop: int) -> Array:
    width = header.dtype.itemsize * prod(header.shape[1:])
    content = file.take(header.offset + start * width, (stop - start) * width)
    return content.view(header.dtype).reshape(stop - start, *header.shape[1:])


def _by_column(file: ImmutableFile, header: Header, start: int, stop: int) -> Array:
    """Return rows of an array whose first axis varies fastest: a piece of each column."""
    item, (length, *rest) = header.dtype.itemsize, header.shape
    starts = (header.offset + item * (column * length + start) for column in range(prod(rest)))
    columns = np.stack([file.take(place, (stop - start) * item).view(header.dtype) for place in starts])
    return np.ascontiguousarray(columns.T.reshape(stop - start, *rest, order="F"))


def _checked_header(file: ImmutableFile) -> Header:
    header = read_header(
        io.BytesIO(file.take(0, min(file.length, LONGEST_HEADER)).tobytes()), where=file.where
    )
    held = file.length - header.offset
    if held != header.n_bytes and not header.dtype.hasobject:
        raise DataError(
            f"{file.where} is cut off or damaged: its header claims {header.n_bytes} bytes of numbers, "
            f"{held} are there. Copy it again."
        )
    return header


def write_npy(paths: Mapping[str, Path], columns: WrittenColumns) -> None:
    """Write each column to its own file; either all files appear or, should writing fail, none.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "labels.npy"
        >>> write_npy({"labels": path}, {"labels": np.array([0, 1])})
        >>> np.load(path)
        array([0, 1])
    """
    with ExitStack() as stack:
        for name, path in paths.items():
            np.save(stack.enter_context(atomic_path(path)), columns[name], allow_pickle=False)
