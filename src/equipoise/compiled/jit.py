"""The decorator of every compiled function."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numba

from equipoise.compiled.cache import cache_folder

__all__ = ["jit"]

_TURN = threading.Lock()


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, or load what an earlier process compiled of the same files.

    Args:
        **options: For ``numba.njit``, such as ``fastmath``. Other threads of Python run meanwhile, always.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        folder = cache_folder()
        # Numba reads this setting when it is given a function, not when it compiles.
        with _TURN:
            before = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = str(folder or "")
            try:
                return numba.njit(nogil=True, cache=folder is not None, **options)(function)
            finally:
                numba.config.CACHE_DIR = before

    return decorate
