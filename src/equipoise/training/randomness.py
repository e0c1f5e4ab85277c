"""Every random state of a process, as plain numbers that a checkpoint can hold."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from equipoise.core.seeds import derive_seed

__all__ = ["random_state", "restore_random_state", "seed_epoch"]


def seed_epoch(seed: int, epoch: int, *, rank: int = 0) -> None:
    """Seed torch, NumPy and Python for an epoch of one process, so that no epoch depends on another.

    Example:
        >>> seed_epoch(0, 3)
        >>> first = torch.rand(1)
        >>> seed_epoch(0, 3)
        >>> bool(torch.rand(1) == first)
        True
    """
    number = derive_seed(seed, "epoch", epoch, rank)
    torch.manual_seed(number)
    np.random.seed(number % 2**32)  # noqa: NPY002 - for users' code that draws from the global state
    random.seed(number)


def random_state() -> dict[str, Any]:
    """Return the states of torch (CPU and every GPU), NumPy and Python.

    Example:
        >>> state = random_state()
        >>> first = torch.rand(1)
        >>> restore_random_state(state)
        >>> bool(torch.rand(1) == first)
        True
    """
    _, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": (
            torch.from_numpy(np.asarray(keys).astype(np.int64)),
            int(position),
            int(has_gauss),
            float(gauss),
        ),
        "python": random.getstate(),
    }


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Take back what :func:`random_state` gave.

    Example:
        >>> restore_random_state(random_state())
    """
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    keys, *rest = state["numpy"]
    np.random.set_state(("MT19937", keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    random.setstate(state["python"])
