"""Read a pickle of plain values and NumPy arrays without giving it the power to run code."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import DataError

__all__ = ["read_plain_pickle"]

_LARGEST = 512 << 20
_MOST_ARRAYS = 64

#: What a pickle of plain values consists of. Everything that makes or changes objects is missing, but for REDUCE and
#: BUILD, which know arrays only.
_PLAIN = """
    PROTO FRAME STOP MARK POP POP_MARK DUP GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE
    NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS
    GLOBAL STACK_GLOBAL REDUCE BUILD
"""


@final
class _Named:
    """A name that a pickle may ask for; it stands for itself and can be neither called nor changed by the pickle."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


@final
class _Dtype:
    """A type in the making: the kind and width of its numbers, then their byte order."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


@final
class _Array:
    """An array whose content comes with the next BUILD."""

    __slots__ = ()


_ENCODE, _DTYPE, _NDARRAY, _RECONSTRUCT = (
    _Named(name) for name in ("encode", "dtype", "ndarray", "_reconstruct")
)

_ALLOWED: Mapping[tuple[str, str], _Named] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _DTYPE,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("_codecs", "encode"): _ENCODE,
}

_NUMBERS = re.compile("b1|[iu][1248]|f[248]")
_ORDERS = {"|": "|", "<": "<", ">": ">", "=": "=", b"|": "|", b"<": "<", b">": ">", b"=": "="}


# The one written in Python: its memory grows with the pickle, never with the numbers in it.
class _PlainUnpickler(pickle._Unpickler):
    """Builds arrays itself, from checked parts; NumPy's own way trusts what it is given with raw memory."""

    stack: list[Any]
    memo: dict[int, Any]
    _count = 0

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except (KeyError, TypeError):
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which data never needs") from None

    def _reduce(self) -> None:
        arguments = self.stack.pop()
        function = self.stack[-1]
        if not isinstance(function, _Named) or not isinstance(arguments, tuple):
            raise pickle.UnpicklingError("it calls something that is no part of an array")
        self.stack[-1] = _called(function, arguments)

    def _build(self) -> None:
        state = self.stack.pop()
        made = self.stack[-1]
        if isinstance(made, _Dtype):
            made.text = _ordered(made.text, state)
        elif isinstance(made, _Array):
            self._put(made, _filled(state))
        else:
            raise pickle.UnpicklingError(f"it changes a value of type {type(made).__name__}")

    def _put(self, made: _Array, array: NDArray[Any]) -> None:
        """Put an array where its name stood: on the stack and in the memory for later use."""
        self._count += 1
        if self._count > _MOST_ARRAYS:
            raise pickle.UnpicklingError(f"it holds more than {_MOST_ARRAYS} arrays")
        self.stack[-1] = array
        for place in [place for place, value in self.memo.items() if value is made]:
            self.memo[place] = array


_CODES = [getattr(pickle, name)[0] for name in _PLAIN.split()]
_OWN: dict[int, Any] = {pickle.REDUCE[0]: _PlainUnpickler._reduce, pickle.BUILD[0]: _PlainUnpickler._build}
_PlainUnpickler.dispatch = {code: pickle._Unpickler.dispatch[code] for code in _CODES} | _OWN


def _called(function: _Named, arguments: tuple[Any, ...]) -> Any:
    if (
        function is _ENCODE
        and isinstance(arguments[0], str)
        and arguments[1:] in ((), ("latin1",), ("latin-1",))
    ):
        return arguments[0].encode("latin-1")
    if function is _DTYPE and isinstance(arguments[0], str) and _NUMBERS.fullmatch(arguments[0]):
        return _Dtype(arguments[0])
    if function is _RECONSTRUCT and arguments and arguments[0] is _NDARRAY:
        return _Array()
    raise pickle.UnpicklingError(f"it calls {function.name} in a way that plain arrays do not need")


def _ordered(text: str, state: Any) -> str:
    version, order, *rest = state
    # No fields, no shape, no size of its own, no flags: numbers and nothing else.
    plain = rest[:6] == [None, None, None, -1, -1, 0] and len(rest) == 6
    if version not in (3, 4) or not plain or order not in _ORDERS or not _NUMBERS.fullmatch(text):
        raise pickle.UnpicklingError("it holds an array of something else than numbers")
    return _ORDERS[order] + text


def _filled(state: Any) -> NDArray[Any]:
    _version, shape, dtype, fortran, content = state
    if not isinstance(dtype, _Dtype) or not isinstance(content, (bytes, str)):
        raise pickle.UnpicklingError("it holds an array of something else than numbers")
    raw = content.encode("latin-1") if isinstance(content, str) else content
    order: Any = "F" if fortran is True or fortran == 1 else "C"
    if not isinstance(shape, tuple) or any(type(size) is not int or size < 0 for size in shape):
        raise pickle.UnpicklingError("it holds an array of an impossible shape")
    return np.frombuffer(raw, np.dtype(dtype.text)).reshape(shape, order=order)


def read_plain_pickle(path: Path) -> Any:
    """Read a pickle that holds only numbers, text, lists, dictionaries and arrays.

    Whatever else a pickle asks for is refused before it is called.

    Args:
        path: The file.

    Returns:
        The object.

    Raises:
        DataError: If the file is damaged, truncated, or asks for anything else; it is named.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "batch"
        >>> _ = file.write_bytes(pickle.dumps({"labels": [1, 2]}))
        >>> read_plain_pickle(file)
        {'labels': [1, 2]}
    """
    if path.stat().st_size > _LARGEST:
        raise DataError(f"{path}: is larger than {_LARGEST} bytes, which no batch is. Get the file again.")
    try:
        return _PlainUnpickler(io.BytesIO(path.read_bytes()), encoding="latin1").load()
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        MemoryError,
        OverflowError,
        ImportError,
        RecursionError,
    ) as error:
        reason = (
            f"it does {error.args[0]}" if isinstance(error, KeyError) and error.args else str(error)[:200]
        )
        raise DataError(
            f"{path}: a pickle of plain arrays was wanted, but it cannot be read: {reason}. Get the file "
            "again."
        ) from error
