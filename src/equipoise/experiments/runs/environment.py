"""Where and with what a run happened."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

import torch

__all__ = ["describe_environment"]

_PACKAGES = ("equipoise", "torch", "numpy", "scipy", "numba", "lightning-fabric")


def describe_environment() -> dict[str, Any]:
    """Return versions and the machine, for the record.

    Example:
        >>> "torch" in describe_environment()["packages"]
        True
    """
    return {
        "python": platform.python_version(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda if torch.cuda.is_available() else None,
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
