"""Torch's own threads for compiled work: they are awake between its operations, where others would have to be woken.

Torch shares its work out to a team of OpenMP threads. Threads of ours would compete with that team for the same
processors, because its members wait for the next operation without sleeping; so compiled work goes to the team itself.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

import torch

__all__ = ["Team", "find_team"]

#: Addresses of functions of the OpenMP library that torch runs on: to start a parallel region, to ask for a thread's
#: number, and for how many there are. All zero if there is none. Kernels are given it, and a named tuple would cost
#: every call a fifth of what the smallest takes.
Team = tuple[int, int, int]

_NOBODY: Team = (0, 0, 0)
_NAMES = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
_SUFFIX = {"linux": ".so", "darwin": ".dylib"}


def find_team() -> tuple[Team, int]:
    """Return torch's team, and how many threads of it to use: as many as torch does, or 1 if it cannot be reached.

    Example:
        >>> team, n_threads = find_team()
        >>> len(team), 1 <= n_threads <= torch.get_num_threads()
        (3, True)
    """
    team = _NOBODY if _forked else _team()
    return team, torch.get_num_threads() if team[0] else 1


def _go_on_alone() -> None:
    """Use one thread from here on, in a process forked from one that may have used several.

    Such a process, like a worker of a data loader or of a web server, has the team but not its threads, and both
    compiled work and torch's own operations would wait for them for ever.
    """
    global _forked  # noqa: PLW0603 - a process is forked or is not
    _forked = True
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)


_forked = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_go_on_alone)


@cache
def _team() -> Team:
    library = Path(torch.__file__).parent / "lib" / f"libtorch_cpu{_SUFFIX.get(sys.platform, '')}"
    try:
        # Looked up through torch, because a process may hold several OpenMP libraries.
        loaded = ctypes.CDLL(str(library), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        first, second, third = (
            ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0 for name in _NAMES
        )
    except (AttributeError, OSError):  # a torch without these threads: on Windows, or built in another way
        return _NOBODY
    return first, second, third
