"""Threads for passes over predictions, with results in a fixed order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["map_in_order", "n_threads"]

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
_forked = False


def n_threads() -> int:
    """Return how many threads a pass may use: torch's setting if torch is loaded, else OMP_NUM_THREADS, else all CPUs.

    Example:
        >>> n_threads() >= 1
        True
    """
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "get_num_threads"):
        return int(torch.get_num_threads())
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    return 1 if _forked else _n_cpus()


def _n_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_order(task: Callable[[_Part], _Result], parts: Iterable[_Part]) -> list[_Result]:
    """Return the results of a task for every part, in the order of the parts, on :func:`n_threads` threads.

    How work is divided into parts must not depend on the number of threads; then no result does.

    Args:
        task: A function that releases Python's lock most of the time, as NumPy and compiled code do.
        parts: Its arguments, one call each.

    Example:
        >>> map_in_order(lambda part: part**2, range(4))
        [0, 1, 4, 9]
    """
    items = list(parts)
    count = min(n_threads(), len(items))
    if count <= 1:
        return [task(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(task, items))


def _use_one_thread() -> None:
    """Use one thread in a forked process, such as a worker of a data loader or of a web server.

    Such a process has torch's pool but not the threads in it, and an operation on several threads would wait for them
    forever.
    """
    global _forked  # noqa: PLW0603 - a process is forked or is not
    _forked = True
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "set_num_threads") and torch.get_num_threads() > 1:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)
