"""Tensors as safetensors files; a disk that is full is an ``OSError``, as for every other file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from equipoise.core.errors import require

__all__ = ["save_tensors"]


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    *,
    framework: Literal["numpy", "torch"],
    metadata: Mapping[str, str] | None,
    purpose: str,
) -> None:
    """Write tensors to a file; inside :func:`~equipoise.core.atomic_files.atomic_path`, to the temporary one.

    Args:
        path: The file.
        tensors: By name, contiguous.
        framework: What the tensors are of.
        metadata: Text to keep with them.
        purpose: What the package is needed for, as the end of "... is needed to".

    Raises:
        OSError: If the file cannot be written.
        MissingExtraError: If the package is not installed.
    """
    package = require("safetensors", extra="safetensors", purpose=purpose)
    writer = require(f"safetensors.{framework}", extra="safetensors", purpose=purpose)
    try:
        writer.save_file(dict(tensors), path, metadata=metadata)
    except package.SafetensorError as error:
        raise OSError(str(error)) from None
