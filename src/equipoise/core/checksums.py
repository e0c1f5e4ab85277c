"""Checksums: of a file, and of values and arrays whatever file they are stored in."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["content_checksum", "file_checksum"]

_PLAIN = (bool, int, float, str, bytes)


def file_checksum(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's content.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "a"
        >>> _ = file.write_bytes(b"abc")
        >>> file_checksum(file)[:8]
        'ba7816bf'
    """
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_checksum(content: Any) -> str:
    """Return the SHA-256 of nested tables and lists of plain values, numpy arrays and tensors.

    The order of keys does not matter, and lists and tuples are the same, so that content that went through JSON keeps
    its checksum.

    Raises:
        TypeError: For any other value.

    Example:
        >>> content_checksum({"a": 1, "b": [2]}) == content_checksum({"b": (2,), "a": 1})
        True
        >>> content_checksum({"a": 1}) == content_checksum({"a": True})
        False
    """
    digest = hashlib.sha256()
    _add(digest, content)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Add a value with its kind and size, so that no two nests of values look alike."""
    if value is None or isinstance(value, _PLAIN):
        # Subclasses, such as numpy's float64, count as what JSON makes of them.
        kind: Any = next((kind for kind in _PLAIN if isinstance(value, kind)), type(None))
        digest.update(f"{kind.__name__} {kind.__repr__(value)};".encode())
    elif isinstance(value, Mapping):
        digest.update(f"table {len(value)};".encode())
        for key in sorted(value, key=repr):
            _add(digest, key)
            _add(digest, value[key])
    elif isinstance(value, (list, tuple)):
        digest.update(f"list {len(value)};".encode())
        for item in value:
            _add(digest, item)
    elif isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<"), copy=False))
        digest.update(f"array {array.dtype.name} {array.shape};".encode())
        digest.update(array.tobytes())
    elif "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
        tensor = value.detach().cpu().contiguous()
        digest.update(f"array {str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)};".encode())
        if tensor.numel():
            digest.update(tensor.reshape(-1).view(sys.modules["torch"].uint8).numpy().data)
    else:
        raise TypeError(f"content_checksum: expected plain values and arrays, got {type(value).__name__}.")
