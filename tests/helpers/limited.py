"""Commands of several processes that fail instead of hanging."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

#: Variables by which launchers tell processes apart; a test must not inherit them.
_LAUNCHERS = (
    "RANK",
    "LOCAL_RANK",
    "NODE_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)


def run_limited(command: Sequence[str], *, folder: Path, seconds: float = 240) -> str:
    """Run Python with some arguments and return what it printed; kill the whole process group after some time.

    The limit is far above what a run takes on a busy machine: it tells a hang from a slow run.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _LAUNCHERS}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _, err = process.communicate()
            pytest.fail(f"{' '.join(command)} hangs: not done after {seconds:g} s.\n{err[-2000:]}")
        assert process.returncode == 0, err[-4000:]
        return out
