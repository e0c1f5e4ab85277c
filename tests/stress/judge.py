"""How a try is made and judged; shared by the short daily tests and the long campaign.

A try is named by its kind, a seed and a number, and can be repeated from these. It may end in two ways: with the
right numbers, or with one of our errors. Everything else is a failure: a foreign exception, a wrong number, a hang,
much memory for a small input, the death of the process.
"""

import contextlib
import faulthandler
import linecache
import os
import re
import resource
import select
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import equipoise
from equipoise.core.errors import EquipoiseError

PACKAGE = str(Path(equipoise.__file__).parent)
MEMORY = 2 << 30


class Wrong(Exception):
    """A try ended without an error, and with something that is not right."""


@dataclass(frozen=True)
class Kind:
    """One kind of tries.

    Attributes:
        prepare: Makes, once per process, what the tries start from, and warms up what they use.
        attempt: One try: given what was prepared, a source of chance, and an empty folder.
        seconds: Processor time that a try may take.
        plain: Whether a plain ValueError or TypeError that the package raises on purpose is an answer too, as it is
            for arguments of functions; for files it is not.
        memory: Bytes that a try may add to what the process uses.
    """

    prepare: Callable[[Path], Any]
    attempt: Callable[[Any, np.random.Generator, Path], None]
    seconds: float = 5.0
    plain: bool = False
    memory: int = MEMORY


def is_ours(error: BaseException, *, plain: bool) -> bool:
    """Whether the package raised this on purpose: its own family, or a plain error by a ``raise`` in its files."""
    if isinstance(error, EquipoiseError):
        return True
    if not plain or not isinstance(error, ValueError | TypeError) or error.__traceback__ is None:
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    return last.filename.startswith(PACKAGE) and linecache.getline(
        last.filename, last.lineno or 0
    ).strip().startswith("raise")


def judge(kind: Kind, prepared: Any, seed: int, number: int, folder: Path) -> str | None:
    """Make one try, and say in one line what was wrong with it, if anything was."""
    place = folder / f"try{number}"
    place.mkdir()
    start, before = time.process_time(), _reset_peak()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind.attempt(prepared, np.random.default_rng([seed, number]), place)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
        if not is_ours(error, plain=kind.plain):
            return _describe(error)
        if "\n" in str(error).strip() or not str(error).strip():
            return f"not one sentence: {str(error)[:200]!r}"
    finally:
        took, grown = time.process_time() - start, _peak() - before
        shutil.rmtree(place, ignore_errors=True)
    if took > kind.seconds:
        return f"took {took:.1f} s"
    if grown > kind.memory:
        return f"took {grown / 2**30:.1f} GB"
    return None


def _describe(error: BaseException) -> str:
    """An exception in one line, with the place in the package that it went through last."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(PACKAGE)]
    where = f" at {frames[-1].filename[len(PACKAGE) + 1 :]}:{frames[-1].lineno}" if frames else ""
    return re.sub(r"\s+", " ", f"{type(error).__name__}{where}: {error}")[:300]


def _reset_peak() -> int:
    """Forget the highest memory so far, where the system can, and return what is in use."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    return 1024 * (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def in_child(work: Callable[[], None], *, seconds: float = 30.0) -> tuple[int, str]:
    """Do something in a forked process; return its exit code (minus the signal, if one ended it) and what it said.

    What it said is how its exception reads, with the module of its class; nothing, if there was none.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 0
        # A child that hangs says where: the watch is a thread of C, which needs no lock of Python's.
        faulthandler.dump_traceback_later(seconds, file=writing, exit=True)
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the parent judges
            code = 1
            ours = "ours" if isinstance(error, EquipoiseError) else "foreign"
            os.write(writing, f"{ours} {_describe(error)}".encode()[:4000])
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        ready, _, _ = select.select([told], [], [], seconds + 5)
        if not ready:
            os.kill(child, signal.SIGKILL)
        said = told.read().decode()
    _, status = os.waitpid(child, 0)
    if not ready or said.startswith("Timeout"):
        raise Wrong(f"no end after {seconds:.0f} s in a forked process: {' < '.join(said.split())}")
    return os.waitstatus_to_exitcode(status), said
