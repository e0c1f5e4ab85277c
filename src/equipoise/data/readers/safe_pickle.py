"""Read a pickle of plain values and NumPy arrays without giving it the power to run code."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.errors import DataError

__all__ = ["read_plain_pickle"]


def _encode(text: str, codec: str = "latin1") -> bytes:
    # The real function looks codecs up by importing modules; these files need one codec only.
    if codec not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"codec {codec!r} is not allowed")
    return text.encode("latin-1")


_reconstruct: Callable[..., Any] = np.zeros(0).__reduce__()[0]  # type: ignore[assignment]

_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("_codecs", "encode"): _encode,
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which data never needs") from None


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
    try:
        with path.open("rb") as stream:
            return _PlainUnpickler(stream, encoding="latin1").load()
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
    ) as error:
        raise DataError(
            f"{path}: a pickle of plain arrays was wanted, but it cannot be read: {error}. Get the file "
            "again."
        ) from error
