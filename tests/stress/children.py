"""Commands in child processes: forked, which costs milliseconds, or fresh, where the environment matters."""

import contextlib
import faulthandler
import io
import os
import re
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import equipoise
from stress.judge import Wrong

SOURCE = str(Path(equipoise.__file__).parents[1])
#: More address space than this is too much for a small file; far above it, the allocation fails.
MUCH, LIMIT = 1 << 30, 6 << 30


class Finished(NamedTuple):
    """What a command did.

    Attributes:
        code: Its exit code; minus the signal, if one ended it.
        out: Standard output.
        err: Standard error.
        grown: Bytes of address space that a forked command added to those of its parent; 0 for a fresh one.
    """

    code: int
    out: str
    err: str
    grown: int = 0


def forked(action: Callable[[], int | None], folder: Path, *, seconds: float = 60.0) -> Finished:
    """Run a function in a forked process, in a folder and under a memory limit, as the body of a program."""
    out, err, size = folder / ".stdout", folder / ".stderr", folder / ".size"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for path, target in ((out, 1), (err, 2)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - the process ends
            sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
            faulthandler.disable()
            warnings.resetwarnings()
            warnings.simplefilter("ignore", DeprecationWarning)
            os.chdir(folder)
            start = _address_space("VmSize")
            resource.setrlimit(resource.RLIMIT_AS, (start + LIMIT, start + LIMIT))
            code = action() or 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:  # noqa: BLE001 - as the interpreter does
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                size.write_text(str(_address_space("VmPeak") - start))
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    code = _wait(child, seconds)
    grown = int(size.read_text()) if size.exists() else 0
    found = Finished(code, _text(out), _text(err), grown)
    for path in (out, err, size):
        path.unlink(missing_ok=True)
    return found


def _wait(child: int, seconds: float) -> int:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise Wrong(f"no end after {seconds:.0f} s in a child process")


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="backslashreplace") if path.exists() else ""


def _address_space(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    return 1024 * int(found[1]) if found else 0


def command(words: Sequence[str | Path], folder: Path, *, seconds: float = 60.0) -> Finished:
    """Run a command of the package in a forked process."""
    from equipoise.cli import main

    return forked(lambda: main([str(word) for word in words]), folder, seconds=seconds)


def warm_up(*commands: Sequence[str | Path]) -> None:
    """Run commands in this process, so that forked ones find every module imported."""
    from equipoise.cli import main

    for words in commands:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main([str(word) for word in words])


def fresh(
    words: Sequence[str | Path],
    folder: Path,
    *,
    environment: dict[str, str] | None = None,
    path: Sequence[Path] = (),
    seconds: float = 180.0,
    closed_output: bool = False,
) -> Finished:
    """Run Python in a new process that finds this package and nothing of these tests.

    Args:
        words: Arguments of Python, such as ``-m equipoise audit rows.npz``.
        folder: The working directory.
        environment: Variables to set.
        path: Folders to import from after the package.
        seconds: When to give up.
        closed_output: Whether standard output is closed, as by ``>&-``.
    """
    python_path = os.pathsep.join([SOURCE, *map(str, path)])
    values = {**os.environ, "PYTHONPATH": python_path, "OMP_NUM_THREADS": "1", **(environment or {})}
    call = [sys.executable, *map(str, words)]
    if closed_output:
        call = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *call]
    process = subprocess.Popen(
        call,
        cwd=folder,
        env=values,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Wrong(f"no end after {seconds:.0f} s: {' '.join(map(str, words))[:100]}") from None
    decoded = (stream.decode(errors="backslashreplace") for stream in (out, err))
    return Finished(process.returncode, *decoded)


def check_finished(found: Finished, what: str) -> bool:
    """Return whether a command succeeded; an error must be one line and exit code 2.

    Raises:
        Wrong: For another exit code, a traceback, several lines, or much memory.
    """
    lines = [line for line in found.err.splitlines() if line.strip() and "compiling for this" not in line]
    if found.grown > MUCH:
        raise Wrong(f"{what}: {found.grown / 2**30:.1f} GB of address space")
    if "Warning: " in found.err:
        raise Wrong(f"{what}: a warning of Python on the terminal: {' '.join(lines)[:160]}")
    if "Traceback" in found.err or found.code not in (0, 2):
        raise Wrong(f"{what}: exit code {found.code}: {' '.join(lines[-1:])[:160]}")
    if found.code == 2 and len(lines) != 1:
        raise Wrong(f"{what}: an error of {len(lines)} lines: {' | '.join(lines)[:160]}")
    return found.code == 0
