"""Compiled or fallback: which backend does a piece of work.

Both backends put every row into the same bin, and their sums differ by rounding only. The fallback is NumPy alone.
It is used where numba does not exist, `EQUIPOISE_PLAIN` or `NUMBA_DISABLE_JIT` is set, and while there is too little
work to load or compile a kernel for. A forked process does not compile either: threads that it lacks may hold the
compiler's locks, and it would wait for them forever.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, Literal

from equipoise.kernels.cache import cache_folder, single_process

__all__ = ["find_kernel", "is_ready", "use_backend", "why_fallback"]

#: The kernels that callers may ask for: the file and the function in it.
_KERNELS: Final = {"state": ("state_kernel", "add_rows"), "shift": ("state_kernel", "shift_rows")}

# Importing numba takes as long as so many numbers take the fallback; compiling takes four times as long.
_WORTH_LOADING = 1 << 24
_WORTH_COMPILING = 1 << 26
# However little work there is, a call of the fallback takes as long as so many numbers.
_CALL = 1 << 12

_SWITCHED_OFF = next(
    (
        name
        for name in ("EQUIPOISE_PLAIN", "NUMBA_DISABLE_JIT")
        if os.environ.get(name, "").strip().lower() not in {"", "0", "no", "false", "off"}
    ),
    None,
)
# Of each thread its own: runs in several threads end in any order.
_forced: ContextVar[Literal["fallback", "compiled"] | None] = ContextVar("backend", default=None)
_COMPILING = threading.Lock()
_ready: dict[tuple[str, str], Callable[..., Any]] = {}
_fallback_work: Counter[tuple[str, str]] = Counter()
_forked = False


def _never_compile() -> None:
    global _forked  # noqa: PLW0603 - a process is forked or is not
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_never_compile)


def find_kernel(name: str, dtype: str, size: int) -> Callable[..., Any] | None:
    """Return a compiled function, or None if the fallback is to do this work.

    Args:
        name: A key of the table above.
        dtype: The code of the type it is compiled for, such as NumPy's ``dtype.char``.
        size: How many numbers there are to work on.

    Example:
        >>> with use_backend("fallback"):
        ...     find_kernel("state", "f", 10**9) is None
        True
    """
    forced = _forced.get()
    if forced == "fallback" or (forced is None and _SWITCHED_OFF):
        return None
    key = (name, dtype)
    found = _ready.get(key)
    if found is not None:
        return found
    # Importing numba takes longer than little work does, so that is decided first.
    if forced is None:
        _fallback_work[key] += size + _CALL
        if _fallback_work[key] < _WORTH_LOADING:
            return None
        if not is_ready(name, dtype) and (_forked or _fallback_work[key] < _WORTH_COMPILING):
            return None
    return None if why_fallback() else _load(name, dtype)


@contextmanager
def use_backend(backend: Literal["fallback", "compiled"]) -> Iterator[None]:
    """Let one backend do all work, whatever its size: where bits count, in tests, to measure."""
    before = _forced.set(backend)
    try:
        yield
    finally:
        _forced.reset(before)


@cache
def why_fallback() -> str | None:
    """Return why nothing is compiled in this process, or None if it can be.

    Example:
        >>> why_fallback() is None or "is set" in why_fallback() or "numba" in why_fallback()
        True
    """
    if _SWITCHED_OFF:
        return f"{_SWITCHED_OFF} is set"
    try:
        numba = import_module("numba")
    except Exception as error:  # noqa: BLE001 - whatever prevents it, there is a fallback
        # Not installed, or not for this Python; a NumPy that does not fit, or a damaged LLVM, raises anything.
        return f"numba cannot be loaded: {error}"
    return "numba's JIT is disabled" if numba.config.DISABLE_JIT else None


@cache
def is_ready(name: str, dtype: str) -> bool:
    """Return whether a kernel was compiled for this processor before; the answer is cached."""
    folder = cache_folder()
    # Most often there is nothing at all, and that is known without importing numba.
    if folder is None or not any(folder.glob(f"{name}-{dtype}-*.ready")) or why_fallback():
        return False
    return _mark(folder, name, dtype).exists()


def _mark(folder: Path, name: str, dtype: str) -> Path:
    from numba.core.registry import cpu_target

    processor = repr(cpu_target.target_context.codegen().magic_tuple()).encode()
    return folder / f"{name}-{dtype}-{hashlib.blake2b(processor, digest_size=6).hexdigest()}.ready"


def _load(name: str, dtype: str) -> Callable[..., Any]:
    if is_ready(name, dtype):
        # Without the lock: a thread that a forked process lacks may hold it.
        return lambda *arguments: _run_first(name, dtype, arguments)

    def run(*arguments: Any) -> Any:
        with _COMPILING:
            if (name, dtype) not in _ready:
                return _compile_and_run(name, dtype, arguments)
        return _ready[name, dtype](*arguments)

    return run


@cache
def _announce() -> None:
    sys.stderr.write(
        "equipoise: compiling for this processor, which is done once and takes some seconds "
        "(EQUIPOISE_PLAIN=1 does without)\n"
    )


def _compile_and_run(name: str, dtype: str, arguments: tuple[Any, ...]) -> Any:
    _announce()
    with single_process():
        result = _run_first(name, dtype, arguments)
    folder = cache_folder()
    if folder is not None:
        with suppress(OSError):  # the work is done; another process compiles again
            _mark(folder, name, dtype).touch()
    return result


def _run_first(name: str, dtype: str, arguments: tuple[Any, ...]) -> Any:
    """Run a kernel for the first time in this process: numba loads it, or compiles and writes it."""
    file, function = _KERNELS[name]
    kernel = getattr(import_module(f"equipoise.kernels.{file}"), function)
    try:
        result = kernel(*arguments)
    except OSError as error:
        raise OSError(
            f"machine code cannot be written to {cache_folder()}: {error}. Free some space there, or set "
            "NUMBA_CACHE_DIR to another folder; EQUIPOISE_PLAIN=1 does without machine code."
        ) from error
    except (EOFError, UnpicklingError) as error:  # a machine that lost its power while it wrote
        raise OSError(
            f"machine code in {cache_folder()} is damaged ({error}). Delete that folder; it is made again."
        ) from error
    _ready[name, dtype] = kernel
    return result
