"""One file holds a whole run: written at once or not at all, read without running any code in it.

The file carries a digest of its content, so that content and digest belong together whenever the process is
killed, and a bit that flipped on the disk is noticed instead of trained on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from equipoise.core.atomic_files import atomic_path
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError, FileError

__all__ = ["load_weights", "read_checkpoint", "write_checkpoint"]

_FORMAT = 2


def write_checkpoint(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write tensors, numbers, text and nests of them; a crash leaves the old file or the new one, whole.

    Args:
        path: Where to.
        content: What :func:`read_checkpoint` shall give back.

    Raises:
        FileError: If the disk is full, or the folder may not be written to.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "last.pt"
        >>> write_checkpoint(path, {"epoch": 3})
        >>> read_checkpoint(path)["epoch"]
        3
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    whole = {"format": _FORMAT, "digest": content_checksum(content), **content}
    with atomic_path(path) as temporary:
        try:
            torch.save(whole, temporary)
        except (
            RuntimeError
        ) as error:  # what torch makes of a write that the system refused; all was read above
            reason = str(error).partition("\n")[0]
            raise FileError(f"{path}: cannot be written ({reason}). Is the disk full?") from error


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a checkpoint to the CPU, with ``weights_only=True``: an untrusted file cannot run code.

    Raises:
        FileNotFoundError: If there is none.
        DataError: If it is of another program or version, or damaged.

    Example:
        >>> read_checkpoint("nowhere.pt")
        Traceback (most recent call last):
        ...
        FileNotFoundError: ...
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0].partition(". ")[0]  # torch goes on with advice over many lines
        raise DataError(
            f"{path}: expected a checkpoint of this package, got a file that cannot be read ({reason}). "
            "Delete it to start over."
        ) from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(
            f"{path}: expected a checkpoint of format {_FORMAT}, got something else. Was it written by another "
            "program or version? Delete it to start over."
        )
    del content["format"]
    if not _is_sound(content.pop("digest", None), content):
        raise DataError(f"{path}: damaged: its content does not match its digest. Delete it to start over.")
    return content


def load_weights(module: nn.Module, state: Mapping[str, Any]) -> None:
    """Load a ``state_dict`` in the precision it was saved in; ``load_state_dict`` alone rounds it to the module's own.

    Args:
        module: What takes the weights; its parameters and buffers are cast to the types in ``state``.
        state: What ``state_dict`` of such a module gave.

    Example:
        >>> module, saved = nn.Linear(2, 2), nn.Linear(2, 2).double()
        >>> load_weights(module, saved.state_dict())
        >>> module.weight.dtype
        torch.float64
    """
    owners = dict(module.named_modules(remove_duplicate=False))
    for path, value in state.items():
        place, _, name = path.rpartition(".")
        owner = owners.get(place)
        for table in () if owner is None else (owner._parameters, owner._buffers):
            found = table.get(name)
            if isinstance(found, Tensor) and isinstance(value, Tensor) and found.is_floating_point():
                found.data = found.data.to(value.dtype)
    module.load_state_dict(state)


def _is_sound(digest: Any, content: Any) -> bool:
    try:
        return bool(digest == content_checksum(content))
    except (RuntimeError, TypeError, ValueError):  # nests without end and odd tensors, which we never wrote
        return False
