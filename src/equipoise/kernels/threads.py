"""Threads for passes over predictions: as many as torch uses, with results in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["map_in_order"]

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


def map_in_order(task: Callable[[_Part], _Result], parts: Iterable[_Part]) -> list[_Result]:
    """Return the results of a task for every part, in the order of the parts, on as many threads as torch uses.

    How work is divided into parts must not depend on the number of threads; then no result does.

    Args:
        task: A function that releases Python's lock most of the time, as NumPy and compiled code do.
        parts: Its arguments, one call each.

    Example:
        >>> map_in_order(lambda part: part**2, range(4))
        [0, 1, 4, 9]
    """
    items = list(parts)
    n_threads = min(torch.get_num_threads(), len(items))
    if n_threads <= 1:
        return [task(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(task, items))


def _use_one_thread() -> None:
    """Let torch use one thread in a forked process.

    Such a process, like a worker of a data loader or of a web server, has torch's pool but not the threads in it, and
    an operation on several threads would wait for them forever.
    """
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)
