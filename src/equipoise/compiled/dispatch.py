"""Compiled or plain: which way a piece of work goes.

Both ways give the same numbers, within rounding. The plain one is torch and NumPy alone: it is taken where numba does
not exist or `EQUIPOISE_PLAIN` is set, and while nothing is compiled yet and there is too little to do to wait for it,
or the process was forked: the compiler's locks may be held by threads that it lacks, and it would wait for ever.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, Literal

from equipoise.compiled.cache import alone, cache_folder

__all__ = ["find_kernel", "going", "is_ready", "why_plain"]

#: The kernels that callers may ask for: the file and the function in it.
_KERNELS: Final = {
    "state": ("state_kernel", "add_rows_to_state"),
    "temperature": ("temperature_kernel", "likelihood_at"),
    "confidences": ("temperature_kernel", "gaps_by_bin"),
    "slices": ("slice_kernel", "add_rows_to_slices"),
    "row_check": ("row_check_kernel", "any_odd_row"),
    "top_class": ("top_class_kernel", "top_rows"),
}

# Compiling takes as long as some hundred million numbers take on the plain way, but is done once and for all; a second
# or so of plain work is what it takes to show that there will be more.
_WORTH = 1 << 23
# However little there is to do, a call on the plain way takes as long as so many numbers.
_CALL = 1 << 12

_PLAIN = os.environ.get("EQUIPOISE_PLAIN", "").strip().lower() not in {"", "0", "no", "false", "off"}
_forced: Literal["plain", "compiled"] | None = None
_COMPILING = threading.Lock()
_ready: dict[tuple[str, str], Callable[..., Any]] = {}
_plain_work: Counter[tuple[str, str]] = Counter()
_forked = False


def _never_compile() -> None:
    global _forked  # noqa: PLW0603 - a process is forked or is not
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_never_compile)


def find_kernel(name: str, dtype: str, size: int) -> Callable[..., Any] | None:
    """Return a compiled function, or None if this work is to go the plain way.

    Args:
        name: What it does, a key of the table above.
        dtype: The code of the type it is compiled for, such as NumPy's ``dtype.char``.
        size: How many numbers there are to work on.

    Example:
        >>> with going("plain"):
        ...     find_kernel("state", "f", 10**9) is None
        True
    """
    if _forced == "plain" or (_forced is None and _PLAIN):
        return None
    key = (name, dtype)
    found = _ready.get(key)
    if found is not None:
        return found
    # Loading numba takes longer than little work does, so that is decided first.
    if _forced is None and not is_ready(name, dtype):
        _plain_work[key] += size + _CALL
        if _forked or _plain_work[key] < _WORTH:
            return None
    return None if why_plain() else _load(name, dtype)


@contextmanager
def going(way: Literal["plain", "compiled"]) -> Iterator[None]:
    """Send all work one way, whatever its size: where bits count, in tests, to measure. Compiled work needs numba."""
    global _forced  # noqa: PLW0603 - the one switch there is
    before, _forced = _forced, way
    try:
        yield
    finally:
        _forced = before


@cache
def why_plain() -> str | None:
    """Return why nothing is compiled in this process, or None if it can be.

    Example:
        >>> why_plain() in (None, "EQUIPOISE_PLAIN is set") or "numba" in why_plain()
        True
    """
    if _PLAIN:
        return "EQUIPOISE_PLAIN is set"
    try:
        import_module("numba")
    except Exception as error:  # noqa: BLE001 - whatever stands in its way, there is another way
        # Not installed, or not for this Python; a NumPy that does not fit, or a damaged LLVM, raises anything.
        return f"numba cannot be loaded: {error}"
    return None


@cache
def is_ready(name: str, dtype: str) -> bool:
    """Return whether a kernel was compiled for this processor before; asked once, and the answer kept."""
    folder = cache_folder()
    # Most often there is nothing at all, and that is known without loading numba.
    if folder is None or not any(folder.glob(f"{name}-{dtype}-*.ready")) or why_plain():
        return False
    return _mark(folder, name, dtype).exists()


def _mark(folder: Path, name: str, dtype: str) -> Path:
    from numba.core.registry import cpu_target

    processor = repr(cpu_target.target_context.codegen().magic_tuple()).encode()
    return folder / f"{name}-{dtype}-{hashlib.blake2b(processor, digest_size=6).hexdigest()}.ready"


def _load(name: str, dtype: str) -> Callable[..., Any]:
    if is_ready(name, dtype):
        # Not in turns: the lock may be held by a thread that a forked process lacks.
        return lambda *arguments: _run_first(name, dtype, arguments)

    def run(*arguments: Any) -> Any:
        with _COMPILING:
            if (name, dtype) not in _ready:
                return _compile_and_run(name, dtype, arguments)
        return _ready[name, dtype](*arguments)

    return run


@cache
def _say_why_it_takes_long() -> None:
    # One line, however many kernels there are: most are done in a second or two.
    sys.stderr.write(
        "equipoise: compiling for this processor, which is done once and takes up to half a minute "
        "(EQUIPOISE_PLAIN=1 does without)\n"
    )


def _compile_and_run(name: str, dtype: str, arguments: tuple[Any, ...]) -> Any:
    _say_why_it_takes_long()
    with alone():
        result = _run_first(name, dtype, arguments)
    folder = cache_folder()
    if folder is not None:
        with suppress(OSError):  # the work is done; another process compiles again
            _mark(folder, name, dtype).touch()
    return result


def _run_first(name: str, dtype: str, arguments: tuple[Any, ...]) -> Any:
    """Run a kernel that is not at hand in this process yet: numba loads or compiles it, and writes what it compiled."""
    file, function = _KERNELS[name]
    kernel = getattr(import_module(f"equipoise.compiled.{file}"), function)
    try:
        result = kernel(*arguments)
    except OSError as error:
        raise OSError(
            f"machine code cannot be kept in {cache_folder()}: {error}. Make room there, or set NUMBA_CACHE_DIR to "
            "another folder; EQUIPOISE_PLAIN=1 does without machine code."
        ) from error
    except (EOFError, UnpicklingError) as error:  # a machine that lost its power while it wrote
        raise OSError(
            f"machine code in {cache_folder()} is damaged ({error}). Delete that folder; it is made anew."
        ) from error
    _ready[name, dtype] = kernel
    return result
