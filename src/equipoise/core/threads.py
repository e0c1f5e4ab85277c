"""Threads for compiled loops over rows, as many as torch uses."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

import numpy as np
import torch

__all__ = ["over_ranges"]

T = TypeVar("T")

# Below this many numbers a second thread costs more than it saves.
_ALONE = 1 << 20


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="equipoise")


# A forked process, such as a worker of a data loader, has the pool but not its threads, and would wait for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def over_ranges(work: Callable[[int, int], T], n_rows: int, *, n_numbers: int) -> list[T]:
    """Call ``work(start, stop)`` for ranges that make up all rows, at the same time if they are many.

    Args:
        work: What to do with a range; it must let go of the interpreter's lock to gain anything.
        n_rows: How many rows there are.
        n_numbers: How many numbers they hold.

    Returns:
        The results, in the order of the ranges.

    Example:
        >>> over_ranges(lambda start, stop: stop - start, 10, n_numbers=10)
        [10]
    """
    n_threads = 1 if n_numbers < _ALONE else max(1, torch.get_num_threads())
    if n_threads == 1:
        return [work(0, n_rows)]
    cuts = np.linspace(0, n_rows, n_threads + 1).astype(int).tolist()
    # The caller takes the first range itself, which saves waking a thread.
    others = [_pool(n_threads).submit(work, *span) for span in itertools.pairwise(cuts[1:])]
    try:
        return [work(*cuts[:2]), *(other.result() for other in others)]
    finally:
        wait(others)
